//! Connections: accepted up to a limit, served, and let go when the gateway stops.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use plimsoll_core::Tokenizer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use crate::config::Timeouts;
use crate::framing::Framed;
use crate::gateway::Gateway;
use crate::handle::{ambiguous, handle};
use crate::metrics::{Counter, GaugeGuard};
use crate::relay::until;
use crate::timers::ServerTimer;

/// The time in which waiting turns are given to the store once more when the gateway stops (chosen: twice what a store waits for
/// another process).
const LAST_ATTEMPT: Duration = Duration::from_secs(10);

/// The response to a connection above the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: application/json\r\nx-plimsoll-refused: connections\r\ncontent-length: 75\r\n\r\n\
    {\"error\":{\"message\":\"too many connections\",\"type\":\"server_error\",\"code\":0}}";

/// Bytes that a connection reads ahead or waits to write; a client that reads slowly holds no more of an answer.
const BUFFER: usize = 64 << 10;

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{address} can be reached from elsewhere, and no keys are configured")]
    Open { address: SocketAddr },
    #[error("cannot listen")]
    Listen(#[source] io::Error),
}

/// Serves until `stop` is over; then answers that are under way have their time to end.
///
/// Errors: [`ServeError::Open`] where others than this machine would be served without keys.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Listen)?;
    if !address.ip().is_loopback() && !gateway.has_keys() {
        return Err(ServeError::Open { address });
    }
    gateway.opened(address);
    // The vocabulary's tables are built when they are first used; the first request would not be ready in time.
    let _ = tokio::task::spawn_blocking(|| Tokenizer::for_model("").count("a word")).await;
    let traces = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.traces.run().await }
    });
    let timeouts = &gateway.config.timeouts;
    let builder = builder(&gateway);
    let room = Arc::new(Semaphore::new(gateway.config.limits.connections));
    let (open, mut closed) = watch::channel(());
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors: some will be free when others have left.
            gateway.clock.sleep(Duration::from_millis(50)).await;
            continue;
        };
        if let Ok(permit) = room.clone().try_acquire_owned() {
            connect(stream, permit, &builder, &gateway, open.subscribe());
        } else {
            gateway.metrics.add(Counter::Refusals, "busy");
            let _ = stream.try_write(FULL);
        }
    }
    drop(listener);
    gateway.stopping.send_replace(true);
    // Every connection holds a receiver; when the last is gone, nothing is under way any more.
    closed.mark_unchanged();
    drop(closed);
    let drain = Timeouts::of(timeouts.drain);
    let ended = tokio::select! {
        biased;
        () = open.closed() => true,
        () = gateway.clock.sleep(drain) => false,
    };
    if !ended {
        gateway.ending.send_replace(true);
        // A stream is told that it ends; whoever does not even read that is left behind.
        tokio::select! {
            biased;
            () = open.closed() => {}
            () = gateway.clock.sleep(Duration::from_secs(1)) => {}
        }
    }
    // Background work has a second to end, and turns that wait for the store have more time.
    let most = if gateway.backlog.is_behind() { LAST_ATTEMPT } else { Duration::from_secs(1) };
    tokio::select! {
        biased;
        () = gateway.behind.closed() => {}
        () = gateway.clock.sleep(most) => {}
    }
    let left = gateway.backlog.waiting();
    if left > 0 {
        tracing::error!(left, "the gateway stops, and the store lacks answered turns");
    }
    gateway.traces.close();
    // A collector that does not answer keeps nobody from stopping.
    tokio::select! {
        biased;
        _ = traces => {}
        () = gateway.clock.sleep(Duration::from_secs(1)) => {}
    }
    Ok(())
}

/// Returns the settings of a connection.
pub(crate) fn builder(gateway: &Gateway) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(ServerTimer(gateway.clock.clone()))
        .header_read_timeout(Timeouts::of(gateway.config.timeouts.headers))
        // hyper takes no less than this.
        .max_buf_size(gateway.config.limits.header_bytes.max(8192).min(BUFFER.max(8192)))
        // hyper's limit of 100 headers stays: for any other it allocates room for them at each request.
        .half_close(false);
    builder
}

fn connect(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    builder: &http1::Builder,
    gateway: &Arc<Gateway>,
    held: watch::Receiver<()>,
) {
    let _ = stream.set_nodelay(true);
    let gateway = gateway.clone();
    let stream = Framed::new(stream, gateway.clock.clone());
    let (is_ambiguous, half_closed) = (stream.is_ambiguous(), stream.half_closed());
    let service = {
        let gateway = gateway.clone();
        service_fn(move |request| {
            let gateway = gateway.clone();
            let refused = is_ambiguous.load(Ordering::Acquire).then(|| ambiguous(&gateway));
            async move {
                Ok::<_, Infallible>(match refused {
                    Some(refused) => refused,
                    None => handle(gateway, request).await,
                })
            }
        })
    };
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::spawn(async move {
        let _counted = GaugeGuard::new(&gateway.metrics, |metrics| &metrics.connections);
        let mut stopping = gateway.stopping.subscribe();
        let mut connection = std::pin::pin!(connection);
        // A connection's own failure is its client's business: it left, or spoke no HTTP.
        tokio::select! {
            biased;
            _ = connection.as_mut() => {}
            () = last_request(&half_closed, &mut stopping) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
        drop((permit, held));
    });
}

/// Returns when a connection is to end after the answer that is under way.
pub(crate) async fn last_request(half_closed: &Notify, stopping: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = half_closed.notified() => {}
        () = until(stopping) => {}
    }
}
