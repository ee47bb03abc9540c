//! The gateway's clock as the timer of its libraries, so that every timeout follows the one clock.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_engine::Clock;
use tower_layer::Layer;
use tower_service::Service;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The clock as hyper wants it.
#[derive(Debug, Clone)]
pub(crate) struct ServerTimer(pub(crate) Arc<dyn Clock>);

/// A wait; the lock is for hyper, which shares waits between threads, and is never held.
struct Wait(Mutex<Boxed<()>>);

impl hyper::rt::Sleep for Wait {}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let wait = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        wait.as_mut().poll(context)
    }
}

impl hyper::rt::Timer for ServerTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        let clock = self.0.clone();
        Box::pin(Wait(Mutex::new(Box::pin(async move { clock.sleep(duration).await }))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }
}

/// Gives up on connections that do not stand in time.
#[derive(Debug, Clone)]
pub(crate) struct ConnectWithin {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: Duration,
}

/// A connector that has its time.
#[derive(Clone)]
pub(crate) struct Connecting<S> {
    inner: S,
    within: ConnectWithin,
}

impl<S> fmt::Debug for Connecting<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connecting").field("within", &self.within).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ConnectWithin {
    type Service = Connecting<S>;

    fn layer(&self, inner: S) -> Connecting<S> {
        Connecting { inner, within: self.clone() }
    }
}

type Broken = Box<dyn std::error::Error + Send + Sync>;

impl<S, R> Service<R> for Connecting<S>
where
    S: Service<R, Error = Broken>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Broken;
    type Future = Boxed<Result<S::Response, Broken>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.inner.call(request);
        let ConnectWithin { clock, time } = self.within.clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                connection = connecting => connection,
                () = clock.sleep(time) => {
                    Err(format!("no connection within {} s", time.as_secs()).into())
                }
            }
        })
    }
}
