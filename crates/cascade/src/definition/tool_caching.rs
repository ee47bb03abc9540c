//! Results of tools that serve again.

words! {
    /// The arguments by which calls are told apart.
    pub enum CacheKey {
        /// All of them.
        ArgsHash "args_hash" | "custom",
        /// The query alone, in any case and spacing.
        Query "query" | "sql_hash",
    }
}

record! {
    /// The rules for one tool.
    pub struct ToolCachePolicy {
        /// Whether its results serve again.
        enabled: bool = true,
        /// Seconds for which a result serves, instead of those of all tools.
        ttl: Option<u32> = None,
        /// The arguments by which calls are told apart.
        key: CacheKey = CacheKey::ArgsHash,
        /// A line before a result that serves again.
        hit_message: Option<String> = None,
        /// Tools whose calls end the results of this one.
        invalidate_on: Vec<String> = Vec::new(),
    }
}

record! {
    /// Results of tools that serve again within a run, for the same arguments.
    pub struct ToolCaching {
        /// Whether results serve again.
        enabled: bool = false,
        /// Seconds for which a result serves.
        global_ttl: u32 = 3600,
        /// The most results; the oldest goes first.
        max_cache_size: u32 = 1000,
        /// The tools by name; without any, every tool from outside.
        tools: Vec<(String, ToolCachePolicy)> = Vec::new(),
    }
}
