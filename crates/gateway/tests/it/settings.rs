//! Timeouts and limits: another value, another outcome. Waits up to a second pass by themselves here, longer ones never.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_gateway::{GatewayConfig, Mode};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_testkit::{ManualClock, MemoryStore};
use plimsoll_wire::Wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{Answer, Running};
use crate::talk::Talk;

const SHORT: u64 = 1;
const LONG: u64 = 1000;

async fn hasty(upstream: &str, change: impl FnOnce(&mut GatewayConfig)) -> Running {
    let second = Duration::from_secs(SHORT);
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), second));
    Running::with_clock(upstream, Arc::new(MemoryStore::default()), clock, change).await
}

#[tokio::test]
async fn headers_have_their_time() {
    let upstream = ScriptedServer::start([]).await;
    for (headers, status) in [(SHORT, 408), (LONG, 200)] {
        let gateway = hasty(upstream.address(), |config| config.timeouts.headers = headers).await;
        let mut stream = gateway.connect().await;
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n", gateway.address);
        stream.write_all(head.as_bytes()).await.expect("sent");
        if headers == LONG {
            stream.write_all(b"connection: close\r\n\r\n").await.expect("sent");
        }
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen).await;
        // Who said nothing yet is left without a word.
        let heard = if seen.is_empty() { 408 } else { Answer::parse(&seen).status };
        assert_eq!(heard, status);
    }
}

#[tokio::test]
async fn connections_to_an_upstream_have_their_time() {
    // Nobody is let in, and so many wait already that no more are taken.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let full = socket.listen(1).expect("it listens");
    let address = full.local_addr().expect("bound");
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let connecting = TcpSocket::new_v4().expect("a socket").connect(address);
        waiting.push(tokio::spawn(connecting));
    }
    for (connect, first_byte, status) in [(SHORT, LONG, 502), (LONG, SHORT, 504)] {
        let gateway = hasty(&format!("http://{address}"), |config| {
            config.mode = Mode::Off;
            config.timeouts.connect = connect;
            config.timeouts.first_byte = first_byte;
        })
        .await;
        let answer = gateway.post("/v1/messages", &[], b"{}").await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.text().contains("no connection within 1 s"), status == 502);
    }
}

#[tokio::test]
async fn an_answer_has_its_time_to_begin() {
    for (first_byte, status) in [(SHORT, 504), (LONG, 200)] {
        let script = if status == 200 { Scripted::body(200, "{}") } else { Scripted::never() };
        let upstream = ScriptedServer::start([script]).await;
        let gateway = hasty(upstream.address(), |config| {
            config.mode = Mode::Off;
            config.timeouts.first_byte = first_byte;
        })
        .await;
        let answer = gateway.post("/v1/messages", &[], b"{}").await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[tokio::test]
async fn an_answer_has_its_time_to_go_on() {
    for idle in [SHORT, LONG] {
        let upstream =
            ScriptedServer::start(
                [Scripted::chunks(["data: 1\n\n", "data: 2\n\n"]).then_silence()],
            )
            .await;
        let gateway = hasty(upstream.address(), |config| {
            config.mode = Mode::Off;
            config.timeouts.idle = idle;
        })
        .await;
        let mut stream = gateway.connect().await;
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
            gateway.address
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut seen = Vec::new();
        if idle == SHORT {
            // It breaks off by itself.
            let _ = stream.read_to_end(&mut seen).await;
        } else {
            read_until(&mut stream, &mut seen, "data: 2").await;
            gateway.clock.advance(Duration::from_secs(LONG + 1));
            let _ = stream.read_to_end(&mut seen).await;
        }
        // A head goes out with the first piece.
        assert!(seen.is_empty() || !Answer::parse(&seen).is_whole, "idle {idle}");
    }
}

async fn read_until(stream: &mut TcpStream, seen: &mut Vec<u8>, text: &str) {
    while !String::from_utf8_lossy(seen).contains(text) {
        assert!(stream.read_buf(seen).await.expect("open") > 0, "closed before {text}");
    }
}

#[tokio::test]
async fn our_own_work_has_its_time() {
    for (deadline_ms, outcome) in [(50, "late"), (50_000, "bounded")] {
        let talk = Talk::new(Wire::AnthropicMessages, true, "Say hello.");
        let upstream = ScriptedServer::start([talk.answer("hello", &[])]).await;
        let gateway = hasty(upstream.address(), |config| {
            config.timeouts.deadline_ms = deadline_ms;
            config.timeouts.rebuild_ms = deadline_ms;
        })
        .await;
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert_eq!(answer.header("x-plimsoll-outcome"), Some(outcome));
        assert!(answer.text().contains("message_stop"));
    }
}

#[tokio::test]
async fn sessions_have_their_room() {
    for (session_bytes, kept) in [(1 << 20, 1), (10, 0)] {
        let talk = Talk::new(Wire::AnthropicMessages, true, "Say hello.");
        let upstream = ScriptedServer::start([talk.answer("hello", &[])]).await;
        let gateway = Running::start(upstream.address(), |config| {
            config.limits.session_bytes = session_bytes;
        })
        .await;
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert!(answer.text().contains("message_stop"));
        // Once more, for a session that is in use is never let go.
        let another = Talk::new(Wire::AnthropicMessages, true, "And another.");
        gateway.post(another.path(), &[], &another.body()).await;
        let figures = gateway.send("GET", "/metrics", &[], b"").await.text();
        let sessions = figures.lines().find_map(|line| line.strip_prefix("plimsoll_sessions "));
        let sessions: usize = sessions.and_then(|count| count.parse().ok()).expect("a figure");
        assert_eq!(sessions > 1, kept == 1, "{session_bytes}: {sessions}");
    }
}
