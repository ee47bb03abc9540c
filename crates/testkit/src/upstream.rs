//! A scripted HTTP server on loopback: it keeps what it was sent and answers as it was told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Returns the value of a header, its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Returns the body as text; what is no UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One answer of the script.
#[derive(Debug, Clone)]
pub struct Scripted {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    end: ResponseEnd,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseEnd {
    Whole,
    /// The connection closes in the middle.
    Cut,
    /// The connection stays open and nothing more comes.
    Silence,
    /// Not even a status comes.
    Never,
    /// The connection closes before a status comes.
    Closed,
}

impl Scripted {
    /// Answers with a whole body.
    pub fn body(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), chunks: vec![body.into()], end: ResponseEnd::Whole }
    }

    /// Answers 200 with these pieces, each sent by itself.
    pub fn chunks<T: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = T>) -> Self {
        let chunks = chunks.into_iter().map(Into::into).collect();
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self { status: 200, headers, chunks, end: ResponseEnd::Whole }
    }

    /// Takes the request and never answers.
    pub fn never() -> Self {
        Self { status: 200, headers: Vec::new(), chunks: Vec::new(), end: ResponseEnd::Never }
    }

    /// Takes the request and closes the connection.
    pub fn closed() -> Self {
        Self { status: 200, headers: Vec::new(), chunks: Vec::new(), end: ResponseEnd::Closed }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection behind the pieces, without their end.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.end = ResponseEnd::Cut;
        self
    }

    /// Sends the pieces, then nothing, and keeps the connection.
    #[must_use]
    pub fn then_silence(mut self) -> Self {
        self.end = ResponseEnd::Silence;
        self
    }
}

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: String,
    kept: Arc<Mutex<Vec<ReceivedRequest>>>,
    count: watch::Receiver<(usize, usize)>,
    server: JoinHandle<()>,
}

impl ScriptedServer {
    /// Starts a server that answers its requests with `script`, in order; any further one gets status 599.
    pub async fn start(script: impl IntoIterator<Item = Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on loopback");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = watch::channel((0, 0));
        let counted = Arc::new(counted);
        let keep = kept.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, keep, counted) = (script.clone(), keep.clone(), counted.clone());
                tokio::spawn(async move {
                    // A client that leaves is what some tests are about.
                    let _ = serve(stream, &script, &keep, &counted).await;
                    counted.send_modify(|(_, closed)| *closed += 1);
                });
            }
        });
        Self { address, kept, count, server }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.kept.lock().expect("no test panics while it holds this").clone()
    }

    /// Waits until so many requests have come.
    pub async fn received(&self, number: usize) {
        let _ = self.count.clone().wait_for(|(received, _)| *received >= number).await;
    }

    /// Waits until so many connections are closed, by either side.
    pub async fn closed(&self, number: usize) {
        let _ = self.count.clone().wait_for(|(_, closed)| *closed >= number).await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &Mutex<VecDeque<Scripted>>,
    keep: &Mutex<Vec<ReceivedRequest>>,
    counted: &watch::Sender<(usize, usize)>,
) -> std::io::Result<()> {
    let Some(received) = receive(&mut stream).await? else { return Ok(()) };
    keep.lock().expect("no test panics while it holds this").push(received);
    let next = script.lock().expect("no test panics while it holds this").pop_front();
    counted.send_modify(|(received, _)| *received += 1);
    let answer = next.unwrap_or_else(|| Scripted::body(599, "no answer is scripted"));
    if !matches!(answer.end, ResponseEnd::Never | ResponseEnd::Closed) {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        for chunk in answer.chunks.iter().filter(|chunk| !chunk.is_empty()) {
            stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await?;
            stream.write_all(chunk).await?;
            stream.write_all(b"\r\n").await?;
            stream.flush().await?;
            // Lets the reader see the piece by itself.
            tokio::task::yield_now().await;
        }
    }
    match answer.end {
        ResponseEnd::Whole => stream.write_all(b"0\r\n\r\n").await,
        ResponseEnd::Cut | ResponseEnd::Closed => Ok(()),
        ResponseEnd::Silence | ResponseEnd::Never => {
            // Until the client leaves.
            let mut rest = [0; 64];
            while stream.read(&mut rest).await? > 0 {}
            Ok(())
        }
    }
}

async fn receive(stream: &mut TcpStream) -> std::io::Result<Option<ReceivedRequest>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(ReceivedRequest { method, path, headers, body }))
}
