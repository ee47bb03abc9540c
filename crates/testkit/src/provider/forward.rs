//! Hands a request on and keeps both sides: what a client says to a gateway, and what it hears.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::body::{self, AnswerBody, RecordCallback};
use super::serve;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Asks `to` over a connection of its own.
pub(crate) async fn forward(
    to: &str,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    bytes: Bytes,
    record: impl Fn(StatusCode) -> Option<RecordCallback>,
) -> Response<AnswerBody> {
    match ask(to, method, path, headers, bytes).await {
        Ok(answer) => {
            let (mut head, incoming) = answer.into_parts();
            head.headers.remove(CONNECTION);
            head.headers.remove(TRANSFER_ENCODING);
            let pieces = stream::unfold(incoming, |mut incoming| async {
                let frame = incoming.frame().await?.ok()?;
                Some((frame.into_data().unwrap_or_default(), incoming))
            });
            let body = body::recorded(pieces.boxed(), record(head.status));
            Response::from_parts(head, body)
        }
        Err(failure) => {
            let status = StatusCode::BAD_GATEWAY;
            let body = body::whole(Bytes::from(failure.to_string()), record(status));
            serve::response(status, "text/plain", body)
        }
    }
}

async fn ask(
    to: &str,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    bytes: Bytes,
) -> Result<Response<hyper::body::Incoming>, Failure> {
    let authority = to.trim_start_matches("http://").trim_end_matches('/');
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::new(Full::new(bytes));
    *request.method_mut() = method.clone();
    *request.uri_mut() = path.parse()?;
    *request.headers_mut() = headers.clone();
    let own = request.headers_mut();
    own.remove(CONNECTION);
    own.remove(TRANSFER_ENCODING);
    own.insert(HOST, authority.parse()?);
    Ok(sender.send_request(request).await?)
}
