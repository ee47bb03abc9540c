-- The hash of a receipt, a card and a stored answer is checked when it is read; older rows have none.
ALTER TABLE unified_logs ADD COLUMN hash TEXT;
ALTER TABLE context_cards ADD COLUMN hash TEXT;
ALTER TABLE semantic_cache ADD COLUMN hash TEXT;
