PRAGMA user_version = 4;

-- Messages and cards are joined by (session_id, content_hash), 16 digits in both. The digest keeps all 64 for checks, and its index
-- serves prefixes; computed when it is read, the hash takes no room.
ALTER TABLE unified_logs RENAME COLUMN content_hash TO digest;
ALTER TABLE unified_logs ADD COLUMN content_hash TEXT
    GENERATED ALWAYS AS (substr(digest, 1, 16)) VIRTUAL;
