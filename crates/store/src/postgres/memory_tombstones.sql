-- The hash of a record is checked when it is read; older records have none.
ALTER TABLE memories ADD COLUMN hash TEXT;
ALTER TABLE memory_states ADD COLUMN hash TEXT;

-- What was forgotten is not taken from the same source, and does not come back by itself.
CREATE TABLE memory_tombstones (
    tenant TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);
