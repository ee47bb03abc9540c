PRAGMA user_version = 2;

-- The specification's names for the kinds of memory.
CREATE VIEW decisions AS SELECT * FROM memory_records WHERE is_present = 1 AND kind = 'decision';
CREATE VIEW facts AS SELECT * FROM memory_records
    WHERE is_present = 1 AND kind IN ('entity', 'task', 'metric', 'link', 'fact');
CREATE VIEW episodes AS SELECT * FROM memory_records WHERE is_present = 1 AND kind = 'episode';
CREATE VIEW procedures AS SELECT * FROM memory_records WHERE is_present = 1 AND kind = 'procedure';
CREATE VIEW censors AS SELECT * FROM memory_records WHERE is_present = 1 AND kind = 'censor';
CREATE VIEW facts_ledger AS
    SELECT tenant, memory_id AS id, session_id, user_id, workspace_id, kind, micro AS text, source_ref,
        tags AS topic_tags, created_at, confidence AS decay_weight, embedding
    FROM memory_records
    WHERE is_present = 1 AND kind IN ('decision', 'entity', 'task', 'metric', 'link', 'fact');
