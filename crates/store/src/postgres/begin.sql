-- Version 1. Every key begins with the tenant. Times are milliseconds since 1970; ids, times and orders are given from outside
-- but for arrival, row_id and space, which count up.
CREATE EXTENSION IF NOT EXISTS vector;
DO $$
DECLARE
    found_version TEXT := (SELECT extversion FROM pg_extension WHERE extname = 'vector');
BEGIN
    -- Older ones cannot go on where a filtered search has found too few.
    IF string_to_array(found_version, '.')::INTEGER[] < '{0,8}' THEN
        RAISE EXCEPTION 'pgvector % is too old: 0.8 or newer is needed', found_version
            USING ERRCODE = 'feature_not_supported';
    END IF;
END $$;

-- One row a session: what is locked while it grows.
CREATE TABLE sessions (
    tenant TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    messages BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, session_id)
);
CREATE INDEX sessions_newest ON sessions (tenant, last_at DESC, session_id);

-- Messages (number is the position) and context decisions (number is the turn).
CREATE TABLE unified_logs (
    tenant TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    node_type TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    strategy_key BYTEA NOT NULL DEFAULT '',
    arrival BIGINT GENERATED ALWAYS AS IDENTITY,
    recorded_at BIGINT NOT NULL,
    content_hash TEXT COLLATE "C",
    digest TEXT COLLATE "C",
    role TEXT,
    tokens BIGINT,
    turn BIGINT,
    cascade_id TEXT,
    full_history_size BIGINT,
    context_size BIGINT,
    tokens_saved BIGINT,
    content_json TEXT NOT NULL,
    PRIMARY KEY (tenant, session_id, node_type, number, strategy_key)
);
CREATE INDEX unified_logs_content ON unified_logs (tenant, session_id, content_hash);
CREATE INDEX unified_logs_digest ON unified_logs (tenant, digest) WHERE digest IS NOT NULL;
CREATE INDEX unified_logs_time ON unified_logs (tenant, recorded_at, arrival);
CREATE INDEX unified_logs_session_time ON unified_logs (tenant, session_id, recorded_at, arrival);

CREATE TABLE context_cards (
    tenant TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    row_id BIGINT GENERATED ALWAYS AS IDENTITY,
    summary TEXT NOT NULL,
    keywords TEXT[] NOT NULL,
    embedding vector,
    embedding_model TEXT,
    model_key BYTEA,
    estimated_tokens BIGINT NOT NULL,
    role TEXT NOT NULL,
    phase_name TEXT,
    turn_number BIGINT,
    is_anchor BOOLEAN NOT NULL,
    is_callout BOOLEAN NOT NULL,
    callout_name TEXT,
    generated_at BIGINT NOT NULL,
    generator_model TEXT NOT NULL,
    message_timestamp BIGINT NOT NULL,
    PRIMARY KEY (tenant, session_id, content_hash)
);
CREATE INDEX context_cards_row ON context_cards (tenant, row_id);

-- The words of messages and of cards. Each lexeme begins with a digest of its tenant, so the index does as well. Without
-- fastupdate an append costs twice the time (2,150 messages/s in groups of 200 instead of 4,280), and a search after appends a
-- tenth (p50 5 ms instead of 74 at 6,300 messages; measured): nobody reads other tenants' pending entries.
CREATE TABLE log_words (
    tenant TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    part INTEGER NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (tenant, session_id, content_hash, source, part)
);
CREATE INDEX log_words_words ON log_words USING gin (words) WITH (fastupdate = off);

CREATE TABLE cas_contents (
    tenant TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    content_zstd BYTEA NOT NULL,
    PRIMARY KEY (tenant, digest)
);
CREATE TABLE cas_refs (
    tenant TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    -- Empty where there is none: no view has an empty name.
    view TEXT COLLATE "C" NOT NULL,
    ref_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    ttl_expires_at BIGINT,
    summary TEXT,
    compressed TEXT,
    freshness_score REAL NOT NULL,
    access_count BIGINT NOT NULL,
    last_accessed_at BIGINT,
    source_meta TEXT,
    PRIMARY KEY (tenant, digest, kind, view),
    FOREIGN KEY (tenant, digest) REFERENCES cas_contents (tenant, digest)
);
CREATE INDEX cas_refs_newest ON cas_refs (tenant, created_at DESC, ref_id);
CREATE INDEX cas_refs_session ON cas_refs (tenant, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX cas_refs_ttl ON cas_refs (tenant, ttl_expires_at) WHERE ttl_expires_at IS NOT NULL;

-- Memory records of every kind; `record` is the whole but for its vector.
CREATE TABLE memories (
    tenant TEXT COLLATE "C" NOT NULL,
    id_key BYTEA NOT NULL,
    row_id BIGINT GENERATED ALWAYS AS IDENTITY,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    is_current BOOLEAN NOT NULL,
    workspace_id TEXT,
    user_id TEXT,
    session_id TEXT COLLATE "C",
    agent_id TEXT,
    micro TEXT NOT NULL,
    source_ref TEXT,
    tags TEXT[] NOT NULL,
    confidence REAL NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    embedding vector,
    embedding_model TEXT,
    model_key BYTEA,
    record TEXT NOT NULL,
    PRIMARY KEY (tenant, id_key)
);
CREATE INDEX memories_row ON memories (tenant, row_id);
CREATE INDEX memories_newest ON memories (tenant, updated_at DESC);
CREATE INDEX memories_session ON memories (tenant, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE memory_states (
    tenant TEXT COLLATE "C" NOT NULL,
    id_key BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    confidence REAL NOT NULL,
    embedding vector,
    embedding_model TEXT,
    record TEXT NOT NULL,
    PRIMARY KEY (tenant, id_key, updated_at),
    FOREIGN KEY (tenant, id_key) REFERENCES memories (tenant, id_key) ON DELETE CASCADE
);

CREATE TABLE memory_words (
    tenant TEXT COLLATE "C" NOT NULL,
    id_key BYTEA NOT NULL,
    part INTEGER NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (tenant, id_key, part),
    FOREIGN KEY (tenant, id_key) REFERENCES memories (tenant, id_key) ON DELETE CASCADE
);
CREATE INDEX memory_words_words ON memory_words USING gin (words) WITH (fastupdate = off);

CREATE VIEW decisions AS SELECT * FROM memories WHERE kind = 'decision';
CREATE VIEW facts AS
    SELECT * FROM memories WHERE kind IN ('entity', 'task', 'metric', 'link', 'fact');
CREATE VIEW episodes AS SELECT * FROM memories WHERE kind = 'episode';
CREATE VIEW procedures AS SELECT * FROM memories WHERE kind = 'procedure';
CREATE VIEW censors AS SELECT * FROM memories WHERE kind = 'censor';
CREATE VIEW facts_ledger AS
    SELECT tenant, id, session_id, user_id, workspace_id, kind, micro AS text, source_ref,
           tags AS topic_tags, created_at, confidence AS decay_weight, embedding
    FROM memories
    WHERE kind IN ('decision', 'entity', 'task', 'metric', 'link', 'fact');

CREATE TABLE job_counters (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    last_id BIGINT NOT NULL
);
CREATE TABLE summarize_jobs (
    tenant TEXT COLLATE "C" NOT NULL,
    id BIGINT NOT NULL,
    job_key BYTEA NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT COLLATE "C",
    ref_id TEXT,
    priority SMALLINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    attempt_count BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    error_message TEXT,
    completed_at BIGINT,
    token_cost BIGINT,
    result TEXT,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, job_key)
);
CREATE INDEX summarize_jobs_queue ON summarize_jobs (tenant, priority DESC, next_attempt_at, id)
    WHERE state IN ('queued', 'failed', 'running');
CREATE INDEX summarize_jobs_session ON summarize_jobs (tenant, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX summarize_jobs_cost ON summarize_jobs (tenant, completed_at) WHERE token_cost IS NOT NULL;

CREATE TABLE tool_schemas (
    tenant TEXT COLLATE "C" NOT NULL,
    schema_key BYTEA NOT NULL,
    tool_name TEXT NOT NULL,
    server_name TEXT NOT NULL,
    schema_json TEXT NOT NULL,
    version TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    token_count BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, schema_key)
);

CREATE TABLE semantic_cache (
    tenant TEXT COLLATE "C" NOT NULL,
    answer_key BYTEA NOT NULL,
    cache_key TEXT NOT NULL,
    query_text TEXT NOT NULL,
    query_embedding vector,
    embedding_model TEXT,
    model_key BYTEA,
    answer_text TEXT NOT NULL,
    signature_key BYTEA NOT NULL,
    context_signature TEXT NOT NULL,
    used_refs TEXT[] NOT NULL,
    created_at BIGINT NOT NULL,
    ttl_expires_at BIGINT,
    hit_count BIGINT NOT NULL,
    last_hit_at BIGINT,
    PRIMARY KEY (tenant, answer_key)
);
CREATE INDEX semantic_cache_signature ON semantic_cache (tenant, signature_key);
-- Which answers rest on a ref.
CREATE TABLE semantic_cache_refs (
    tenant TEXT COLLATE "C" NOT NULL,
    ref_key BYTEA NOT NULL,
    answer_key BYTEA NOT NULL,
    PRIMARY KEY (tenant, ref_key, answer_key),
    FOREIGN KEY (tenant, answer_key) REFERENCES semantic_cache (tenant, answer_key) ON DELETE CASCADE
);
CREATE INDEX semantic_cache_refs_answer ON semantic_cache_refs (tenant, answer_key);

-- Vectors are searched by tenant, owner (cards or memories), model and dimension: a space, with a table and an HNSW index of its
-- own. An index over several tenants would let the vectors of one change what an approximate search finds for another, and a
-- dimension is part of an indexed column's type.
CREATE TABLE vector_spaces (
    tenant TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    model_key BYTEA NOT NULL,
    dimension INTEGER NOT NULL,
    space BIGINT GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, owner, model_key, dimension)
);

CREATE FUNCTION open_space(the_tenant TEXT, the_owner TEXT, the_model BYTEA, the_dimension INTEGER)
RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    found_space BIGINT;
BEGIN
    SELECT space INTO found_space FROM vector_spaces
        WHERE tenant = the_tenant AND owner = the_owner AND model_key = the_model
        AND dimension = the_dimension;
    IF FOUND THEN
        RETURN found_space;
    END IF;
    INSERT INTO vector_spaces (tenant, owner, model_key, dimension)
        VALUES (the_tenant, the_owner, the_model, the_dimension)
        ON CONFLICT DO NOTHING RETURNING space INTO found_space;
    IF NOT FOUND THEN
        SELECT space INTO found_space FROM vector_spaces
            WHERE tenant = the_tenant AND owner = the_owner AND model_key = the_model
            AND dimension = the_dimension;
        RETURN found_space;
    END IF;
    EXECUTE format('CREATE TABLE %I (row_id BIGINT PRIMARY KEY, embedding vector(%s) NOT NULL)',
        'vectors_' || found_space, the_dimension);
    -- pgvector indexes up to 2000 dimensions; longer vectors are searched without an index.
    IF the_dimension <= 2000 THEN
        EXECUTE format('CREATE INDEX ON %I USING hnsw (embedding vector_cosine_ops)',
            'vectors_' || found_space);
    END IF;
    RETURN found_space;
END $$;

-- Keeps the space of a row's vector in step with the row.
CREATE FUNCTION keep_vector() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.embedding IS NOT NULL THEN
        EXECUTE format('DELETE FROM %I WHERE row_id = $1', 'vectors_' ||
            open_space(OLD.tenant, TG_ARGV[0], OLD.model_key, vector_dims(OLD.embedding)))
            USING OLD.row_id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.embedding IS NOT NULL THEN
        EXECUTE format('INSERT INTO %I (row_id, embedding) VALUES ($1, $2)', 'vectors_' ||
            open_space(NEW.tenant, TG_ARGV[0], NEW.model_key, vector_dims(NEW.embedding)))
            USING NEW.row_id, NEW.embedding;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER context_cards_vector AFTER INSERT OR DELETE OR UPDATE OF embedding ON context_cards
    FOR EACH ROW EXECUTE FUNCTION keep_vector('card');
CREATE TRIGGER memories_vector AFTER INSERT OR DELETE OR UPDATE OF embedding ON memories
    FOR EACH ROW EXECUTE FUNCTION keep_vector('memory');

CREATE FUNCTION nearest(
    the_tenant TEXT, the_owner TEXT, the_model BYTEA, asked vector, wanted BIGINT
) RETURNS TABLE (row_id BIGINT, distance DOUBLE PRECISION) LANGUAGE plpgsql AS $$
DECLARE
    found_space BIGINT;
BEGIN
    SELECT space INTO found_space FROM vector_spaces
        WHERE tenant = the_tenant AND owner = the_owner AND model_key = the_model
        AND dimension = vector_dims(asked);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Go on until as many are found as are wanted, nearest first; for this transaction.
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
    PERFORM set_config('hnsw.ef_search', least(greatest(wanted, 100), 1000)::TEXT, true);
    RETURN QUERY EXECUTE format(
        'SELECT row_id, embedding <=> $1 FROM %I ORDER BY embedding <=> $1 LIMIT $2',
        'vectors_' || found_space) USING asked, wanted;
END $$;
