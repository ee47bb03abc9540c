//! Records to test with.

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::{
    Answer, Artefact, ArtefactKind, ArtefactRef, ContextCard, Embedding, MemoryId, MemoryKind,
    MemoryRecord, MemoryState, MessageRecord, NewJob, ReceiptRecord, Scope, SelectionType,
    SessionId, TenantId, ToolSchema, digest,
};

/// Texts that a careless backend takes for something else.
pub const HOSTILE: &[&str] = &[
    "'; DROP TABLE unified_logs; --",
    "\" OR \"\"=\"",
    "%",
    "_",
    "100% _sure_ \\ \\' `x` $1 ?1 :a @b",
    "NUL \0 inside",
    "\0",
    "",
    " lines\r\nand\ttabs \u{2028}",
    "Zoë \u{1F980} 日本語 ﷽ e\u{301} \u{FEFF}\u{202E}",
    "NEAR(a b) AND NOT (c OR d*) ^e {f}: g",
    "{\"json\": [1, null]}",
];

/// Makes a tenant's id.
pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a test's id is valid")
}

/// Makes a session's id.
pub fn session(name: &str) -> SessionId {
    SessionId::new(name).expect("a test's id is valid")
}

/// Makes a message record of a text from the user.
pub fn message(session_name: &str, position: u32, text: &str) -> MessageRecord {
    let message = Message::text(Role::User, text);
    MessageRecord {
        session: session(session_name),
        position,
        hash: ContentHash::of(&message),
        message,
        tokens: 7 + position,
        turn: position / 2,
        recorded_at: MillisSinceEpoch(1_000 + i64::from(position)),
    }
}

/// Makes a receipt.
pub fn receipt(session_name: &str, turn: u32, strategy: &str) -> ReceiptRecord {
    ReceiptRecord {
        session: session(session_name),
        turn,
        trace_id: format!("trace-{turn}"),
        cascade_id: None,
        selection_type: SelectionType::IntraPhase,
        strategy: strategy.to_owned(),
        full_history_size: 10 + turn,
        context_size: 5,
        masked_count: 2,
        anchor_hashes: vec!["0011223344556677".to_owned()],
        selected_hashes: vec!["8899aabbccddeeff".to_owned(), "0011223344556677".to_owned()],
        tokens_saved: 100,
        bill: None,
        receipt: "{\"whole\": true}".to_owned(),
        recorded_at: MillisSinceEpoch(2_000 + i64::from(turn)),
    }
}

/// Makes a unit vector that is the nearer to another's the nearer their angles, in degrees.
pub fn embedding(model: &str, angle: f32) -> Embedding {
    let (sine, cosine) = angle.to_radians().sin_cos();
    Embedding { model: model.to_owned(), vector: vec![cosine, sine, 0.0, 0.0] }
}

/// Makes the card of a message.
pub fn card(tenant_name: &str, record: &MessageRecord, summary: &str) -> ContextCard {
    ContextCard {
        tenant: tenant(tenant_name),
        session: record.session.clone(),
        content_hash: record.hash.short(),
        summary: summary.to_owned(),
        keywords: vec!["keyword".to_owned()],
        embedding: None,
        estimated_tokens: record.tokens,
        role: record.message.role,
        phase_name: Some("phase".to_owned()),
        turn_number: Some(record.turn),
        is_anchor: true,
        is_callout: false,
        callout_name: None,
        generated_at: MillisSinceEpoch(5_000),
        generator_model: "heuristic".to_owned(),
        message_timestamp: record.recorded_at,
    }
}

/// Makes an artefact of a text.
pub fn artefact(tenant_name: &str, kind: &str, text: &str) -> Artefact {
    Artefact {
        tenant: tenant(tenant_name),
        reference: ArtefactRef {
            kind: ArtefactKind(kind.to_owned()),
            digest: digest(text.as_bytes()),
            view: None,
        },
        session: Some(session("s")),
        created_at: MillisSinceEpoch(1_000),
        ttl_expires_at: None,
        summary: Some("what it says".to_owned()),
        compressed: None,
        content: text.as_bytes().to_vec(),
        freshness_score: 0.75,
        access_count: 0,
        last_accessed_at: None,
        source_meta: Some("{\"page\": 1}".to_owned()),
    }
}

/// Makes a memory record.
pub fn memory(tenant_name: &str, id: &str, micro: &str) -> MemoryRecord {
    MemoryRecord {
        tenant: tenant(tenant_name),
        id: MemoryId(id.to_owned()),
        kind: MemoryKind::Fact,
        state: MemoryState::New,
        scope: Scope::default(),
        micro: micro.to_owned(),
        summary: None,
        full: None,
        origin: "user".to_owned(),
        confidence: 0.6,
        source_ref: Some("ref:message:0011223344556677".to_owned()),
        tags: vec!["project:plimsoll".to_owned()],
        event_at: Some(MillisSinceEpoch(-5)),
        created_at: MillisSinceEpoch(1_000),
        updated_at: MillisSinceEpoch(1_000),
        superseded_by: None,
        embedding: None,
        details: "{}".to_owned(),
    }
}

/// Makes a job that is due from the beginning.
pub fn job(key: &str) -> NewJob {
    NewJob {
        key: key.to_owned(),
        kind: "summarize".to_owned(),
        session: Some(session("s")),
        ref_id: Some("ref:a:0011223344556677".to_owned()),
        priority: 5,
        max_attempts: 3,
        payload: "{}".to_owned(),
        created_at: MillisSinceEpoch(0),
        next_attempt_at: MillisSinceEpoch(0),
    }
}

/// Makes a tool's schema.
pub fn tool_schema(tenant_name: &str, server: &str, tool: &str) -> ToolSchema {
    ToolSchema {
        tenant: tenant(tenant_name),
        tool_name: tool.to_owned(),
        server_name: server.to_owned(),
        schema_json: "{\"type\": \"object\"}".to_owned(),
        version: "v1".to_owned(),
        schema_hash: "hash".to_owned(),
        token_count: 12,
        updated_at: MillisSinceEpoch(3),
    }
}

/// Makes a cached answer.
pub fn answer(tenant_name: &str, key: &str) -> Answer {
    Answer {
        tenant: tenant(tenant_name),
        cache_key: key.to_owned(),
        query_text: "what is it?".to_owned(),
        query_embedding: None,
        answer_text: "that".to_owned(),
        context_signature: "signature".to_owned(),
        used_refs: vec!["ref:a:0011223344556677".to_owned()],
        created_at: MillisSinceEpoch(1_000),
        ttl_expires_at: None,
        hit_count: 0,
        last_hit_at: None,
    }
}
