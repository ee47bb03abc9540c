//! Resources: the content behind a ref, and the receipt of a turn.

use plimsoll_engine::SessionId;

/// The template of the content behind a ref.
pub(crate) const REF: &str = "plimsoll://ref/{ref}";
/// The template of a receipt.
pub(crate) const RECEIPT: &str = "plimsoll://session/{session}/turn/{turn}";
/// The template of a session's messages.
pub(crate) const SESSION: &str = "plimsoll://session/{session}";

/// A resource that a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Ref(String),
    Session(SessionId),
    Receipt(SessionId, u32),
}

impl Resource {
    /// Reads an address; `None` for one that no template has.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let path = uri.strip_prefix("plimsoll://")?;
        if let Some(reference) = path.strip_prefix("ref/") {
            return Some(Self::Ref(reference.replace("%3A", ":").replace("%3a", ":")));
        }
        let path = path.strip_prefix("session/")?;
        match path.split_once("/turn/") {
            Some((session, turn)) => {
                Some(Self::Receipt(SessionId::new(session).ok()?, turn.parse().ok()?))
            }
            None => Some(Self::Session(SessionId::new(path).ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let session = SessionId::new("a-1").expect("an id");
        assert_eq!(
            Resource::parse("plimsoll://session/a-1/turn/3"),
            Some(Resource::Receipt(session.clone(), 3))
        );
        assert_eq!(Resource::parse("plimsoll://session/a-1"), Some(Resource::Session(session)));
        assert_eq!(
            Resource::parse("plimsoll://ref/ref%3Amessage%3A0123"),
            Some(Resource::Ref("ref:message:0123".into()))
        );
        for bad in ["", "file:///etc/passwd", "plimsoll://session/a/turn/x", "plimsoll://session/"]
        {
            assert_eq!(Resource::parse(bad), None, "{bad}");
        }
    }
}
