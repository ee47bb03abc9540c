PRAGMA user_version = 5;

-- The hash of a record is checked when it is read; records of older files have none.
ALTER TABLE memory_records ADD COLUMN hash TEXT;

-- What was forgotten is not taken from the same source, and does not come back by itself.
CREATE TABLE memory_tombstones (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
