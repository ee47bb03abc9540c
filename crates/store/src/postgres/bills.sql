-- Of a selection: the input that its provider billed and what it would have been without Plimsoll, in US dollars, and whether the
-- model's price is not known. NULL where no usage was reported, and in rows that are older.
ALTER TABLE unified_logs ADD COLUMN billed DOUBLE PRECISION;
ALTER TABLE unified_logs ADD COLUMN billed_without DOUBLE PRECISION;
ALTER TABLE unified_logs ADD COLUMN billed_estimate BOOLEAN;
