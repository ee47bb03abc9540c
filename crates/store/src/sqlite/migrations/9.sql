PRAGMA user_version = 9;

-- Each turn wrote three pages of these, a quarter of its commit. The sums over selections read their rows anyway, and to list a
-- hundred thousand sessions without an index takes some dozens of milliseconds.
DROP INDEX unified_logs_selections;
DROP INDEX sessions_newest;
