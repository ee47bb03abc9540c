-- A session that begins with messages of another has them by reference: its own rows stand behind what it shares.
ALTER TABLE sessions ADD COLUMN branch_of TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN shared_messages BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN shared_turns BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN shared_strategies TEXT[] NOT NULL DEFAULT '{}';
CREATE INDEX sessions_branches ON sessions (tenant, branch_of) WHERE branch_of IS NOT NULL;

-- The parts of a session: by owner, how many of its messages and turns belong to the session, whose own part has depth 0.
CREATE FUNCTION session_parts(of_tenant TEXT, of_session TEXT)
RETURNS TABLE (owner TEXT, messages BIGINT, turns BIGINT, strategies TEXT[], depth INTEGER)
LANGUAGE sql STABLE ROWS 1 AS $$
    WITH RECURSIVE part (owner, messages, turns, strategies, depth) AS (
        SELECT of_session COLLATE "C", 4294967295, 4294967295, '{}'::TEXT[], 0
        UNION ALL
        SELECT s.branch_of, least(s.shared_messages, part.messages), least(s.shared_turns, part.turns),
            s.shared_strategies, part.depth + 1
        FROM part JOIN sessions AS s ON s.tenant = of_tenant AND s.session_id = part.owner
        WHERE s.branch_of IS NOT NULL)
    SELECT * FROM part ORDER BY depth
$$;
