PRAGMA application_id = 1349282157; -- 'Plim'
PRAGMA user_version = 1;

CREATE TABLE tenants (
    tenant TEXT PRIMARY KEY,
    -- Names the tenant's tables for text search.
    number INTEGER NOT NULL UNIQUE,
    last_job INTEGER NOT NULL DEFAULT 0,
    -- Counts changes of vectors; rows carry the count at which they changed.
    generation INTEGER NOT NULL DEFAULT 0,
    -- Counts deletions of vectors.
    epoch INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_newest ON sessions (tenant, last_at DESC, session_id);

CREATE TABLE unified_logs (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    node_type TEXT NOT NULL, -- message | context_selection
    number INTEGER NOT NULL, -- position of a message, turn of a selection
    strategy TEXT NOT NULL, -- of a selection; '' for a message
    recorded_at INTEGER NOT NULL,
    -- messages
    content_hash TEXT, -- all 64 digits
    role TEXT,
    tokens INTEGER,
    turn INTEGER,
    content_json TEXT,
    -- selections
    trace_id TEXT,
    cascade_id TEXT,
    selection_type TEXT,
    full_history_size INTEGER,
    context_size INTEGER,
    masked_count INTEGER,
    anchor_hashes TEXT,
    selected_hashes TEXT,
    tokens_saved INTEGER,
    receipt TEXT
) STRICT;
CREATE UNIQUE INDEX unified_logs_key ON unified_logs (tenant, session_id, node_type, number, strategy);
CREATE INDEX unified_logs_hash ON unified_logs (tenant, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX unified_logs_time ON unified_logs (tenant, recorded_at);
CREATE INDEX unified_logs_selections ON unified_logs (tenant, cascade_id) WHERE node_type = 'context_selection';

CREATE TABLE context_cards (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session_id TEXT NOT NULL,
    content_hash TEXT NOT NULL, -- 16 digits
    summary TEXT NOT NULL,
    keywords TEXT NOT NULL,
    embedding BLOB,
    embedding_model TEXT,
    estimated_tokens INTEGER NOT NULL,
    role TEXT NOT NULL,
    phase_name TEXT,
    turn_number INTEGER,
    is_anchor INTEGER NOT NULL,
    is_callout INTEGER NOT NULL,
    callout_name TEXT,
    generated_at INTEGER NOT NULL,
    generator_model TEXT NOT NULL,
    message_timestamp INTEGER NOT NULL,
    generation INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX context_cards_key ON context_cards (tenant, session_id, content_hash);
CREATE INDEX context_cards_generation ON context_cards (tenant, generation) WHERE generation > 0;

CREATE TABLE cas_contents (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    content BLOB NOT NULL, -- zstd
    PRIMARY KEY (tenant, digest)
) STRICT;

CREATE TABLE cas_refs (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    view TEXT NOT NULL, -- '' for the content itself
    ref_id TEXT NOT NULL,
    session_id TEXT,
    created_at INTEGER NOT NULL,
    ttl_expires_at INTEGER,
    summary TEXT,
    compressed TEXT,
    freshness_score REAL NOT NULL,
    access_count INTEGER NOT NULL,
    last_accessed_at INTEGER,
    source_meta TEXT,
    PRIMARY KEY (tenant, digest, kind, view),
    FOREIGN KEY (tenant, digest) REFERENCES cas_contents (tenant, digest)
) STRICT;
CREATE INDEX cas_refs_newest ON cas_refs (tenant, created_at DESC, ref_id);
CREATE INDEX cas_refs_session ON cas_refs (tenant, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX cas_refs_ttl ON cas_refs (tenant, ttl_expires_at) WHERE ttl_expires_at IS NOT NULL;

-- Every state of every record; the present one is marked.
CREATE TABLE memory_records (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    is_present INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    is_current INTEGER NOT NULL, -- whether its state is returned unless all are asked for
    workspace_id TEXT,
    user_id TEXT,
    session_id TEXT,
    agent_id TEXT,
    micro TEXT NOT NULL,
    summary TEXT,
    full TEXT,
    origin TEXT NOT NULL,
    confidence REAL NOT NULL,
    source_ref TEXT,
    tags TEXT NOT NULL,
    event_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    superseded_by TEXT,
    embedding BLOB,
    embedding_model TEXT,
    details TEXT NOT NULL,
    generation INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX memory_records_key ON memory_records (tenant, memory_id, updated_at);
CREATE UNIQUE INDEX memory_records_present ON memory_records (tenant, memory_id) WHERE is_present = 1;
CREATE INDEX memory_records_newest ON memory_records (tenant, updated_at DESC, memory_id) WHERE is_present = 1;
CREATE INDEX memory_records_generation ON memory_records (tenant, generation) WHERE generation > 0;
CREATE INDEX memory_records_session ON memory_records (tenant, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE memory_tags (
    tenant TEXT NOT NULL,
    tag TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES memory_records (id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, tag, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tags_record ON memory_tags (record);

CREATE TABLE summarize_jobs (
    tenant TEXT NOT NULL,
    id INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT,
    ref_id TEXT,
    priority INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempt_count INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until INTEGER,
    error_message TEXT,
    completed_at INTEGER,
    token_cost INTEGER,
    result TEXT,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX summarize_jobs_key ON summarize_jobs (tenant, key);
CREATE INDEX summarize_jobs_due ON summarize_jobs (tenant, priority DESC, next_attempt_at, id)
    WHERE state IN ('queued', 'failed', 'running');
CREATE INDEX summarize_jobs_session ON summarize_jobs (tenant, session_id, token_cost);
CREATE INDEX summarize_jobs_ref ON summarize_jobs (tenant, ref_id, token_cost);
CREATE INDEX summarize_jobs_day ON summarize_jobs (tenant, completed_at, token_cost);

CREATE TABLE tool_schemas (
    tenant TEXT NOT NULL,
    server_name TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    schema_json TEXT NOT NULL,
    version TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    token_count INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, server_name, tool_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE semantic_cache (
    tenant TEXT NOT NULL,
    cache_key TEXT NOT NULL,
    query_text TEXT NOT NULL,
    query_embedding BLOB,
    query_embedding_model TEXT,
    answer_text TEXT NOT NULL,
    context_signature TEXT NOT NULL,
    used_refs TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ttl_expires_at INTEGER,
    hit_count INTEGER NOT NULL,
    last_hit_at INTEGER,
    PRIMARY KEY (tenant, cache_key)
) STRICT;
CREATE INDEX semantic_cache_signature ON semantic_cache (tenant, context_signature);

CREATE TABLE semantic_cache_refs (
    tenant TEXT NOT NULL,
    used_ref TEXT NOT NULL,
    cache_key TEXT NOT NULL,
    PRIMARY KEY (tenant, used_ref, cache_key),
    FOREIGN KEY (tenant, cache_key) REFERENCES semantic_cache (tenant, cache_key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX semantic_cache_refs_key ON semantic_cache_refs (tenant, cache_key);
