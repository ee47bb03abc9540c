PRAGMA user_version = 7;

-- A session that begins with messages of another has them by reference: its own rows stand behind what it shares.
ALTER TABLE sessions ADD COLUMN branch_of TEXT;
ALTER TABLE sessions ADD COLUMN shared_messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN shared_turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN shared_strategies TEXT NOT NULL DEFAULT '[]';
CREATE INDEX sessions_branches ON sessions (tenant, branch_of) WHERE branch_of IS NOT NULL;
