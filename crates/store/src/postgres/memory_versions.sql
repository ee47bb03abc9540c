-- Changes of memory are counted, so that whoever holds a copy reads only what is new. The row of a tenant is locked while its
-- records change: the counts are committed in their order.
CREATE TABLE memory_versions (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    generation BIGINT NOT NULL,
    epoch BIGINT NOT NULL
);
ALTER TABLE memories ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
CREATE INDEX memories_generation ON memories (tenant, generation);
CREATE INDEX memories_source ON memories (tenant, source_ref) WHERE source_ref IS NOT NULL;
