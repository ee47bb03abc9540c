//! Any bytes as a request, an answer and a stream: nothing panics, what is not edited stays, and a stream keeps its bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_wire::{ProviderAnswer, Edits, DEFAULT_DEPTH, Reply, ProviderRequest, Wire, check};

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (wire, cut, bytes) = input;
    let wire = Wire::ALL[usize::from(wire) % Wire::ALL.len()];
    let _ = check(wire, bytes);
    let _ = ProviderAnswer::of_body(wire, bytes);
    if let Ok(request) = ProviderRequest::parse(wire, bytes, "", DEFAULT_DEPTH) {
        request.kind();
        request.own_session();
        assert_eq!(request.rewrite(&Edits::default()).expect("nothing changes"), bytes);
        let edits = Edits {
            append: vec![(request.messages().len().saturating_sub(1), "known".into())],
            ..Edits::default()
        };
        let _ = request.rewrite(&edits);
    }
    let cut = usize::from(cut).min(bytes.len());
    let mut passed = Vec::new();
    let mut reply = Reply::new(wire, []);
    for chunk in [&bytes[..cut], &bytes[cut..]] {
        let forward = reply.push(chunk);
        passed.extend(forward.now);
        passed.extend(forward.last);
    }
    passed.extend(reply.end().now);
    assert_eq!(passed, bytes);
    let mut reply = Reply::new(wire, ["expand_ref".to_owned()]);
    reply.push(bytes);
    let _ = reply.body(bytes);
    let _ = reply.withheld(&[]);
});
