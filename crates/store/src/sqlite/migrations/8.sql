PRAGMA user_version = 8;

-- The words of messages come into the text indexes later than their rows, in groups: so far those of rows up to this one.
CREATE TABLE indexed_messages (
    last_row INTEGER NOT NULL
) STRICT;
INSERT INTO indexed_messages SELECT coalesce(max(id), 0) FROM unified_logs;
