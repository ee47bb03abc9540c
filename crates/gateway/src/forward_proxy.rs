//! A forward proxy for one client on this machine: it ends TLS for one host, and tunnels all others unread.
//!
//! The client keeps the provider's own address, so that features which need it stay on.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming as RequestBody;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, AuthorityError};
use crate::config::Timeouts;
use crate::framing::Framed;
use crate::gateway::Gateway;
use crate::handle::ambiguous;
use crate::metrics::GaugeGuard;
use crate::origin::{self, UpstreamHost, split};
use crate::relay::{Body, whole};
use crate::server::{ServeError, builder, last_request};

/// The name in the credential.
const USER: &str = "plimsoll";
/// Bytes of the credential's secret (chosen: nobody guesses 256 bits).
const SECRET: usize = 32;

/// Why there is no proxy for an upstream.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    #[error("no upstream `{0}` is configured")]
    Upstream(String),
    #[error("the address of upstream `{0}` is not https, so no client reaches it by a proxy")]
    NotHttps(String),
    #[error("`redact` of [gateway.add] is on, and what a proxy passes on unread is not redacted")]
    Redacts,
    #[error("no random numbers")]
    Random,
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A forward proxy for the host of one upstream, with a certificate authority and a credential of its own.
pub struct ForwardProxy {
    gateway: Arc<Gateway>,
    origin: Arc<UpstreamHost>,
    authority: Authority,
    credential: String,
}

impl std::fmt::Debug for ForwardProxy {
    /// Leaves out the credential.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("ForwardProxy");
        shown.field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl ForwardProxy {
    /// Makes a proxy for the host of the upstream `name`; it does not listen yet.
    pub fn new(gateway: Arc<Gateway>, name: &str) -> Result<Self, ForwardError> {
        if gateway.config.add.redact {
            return Err(ForwardError::Redacts);
        }
        let upstream = gateway.upstreams.named(name);
        let upstream = upstream.ok_or_else(|| ForwardError::Upstream(name.to_owned()))?;
        let origin =
            UpstreamHost::of(upstream).ok_or_else(|| ForwardError::NotHttps(name.to_owned()))?;
        let mut secret = [0; SECRET];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut secret).map_err(|_| ForwardError::Random)?;
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let authority = Authority::new(&origin.host, gateway.clock.now())?;
        let credential = format!("{USER}:{secret}");
        Ok(Self { gateway, origin: Arc::new(origin), authority, credential })
    }

    /// Returns `user:password`, which every request to the proxy must show.
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Returns the host whose requests are read.
    pub fn host(&self) -> &str {
        &self.origin.host
    }

    /// Returns the DER form of the certificate that the client must trust.
    pub fn certificate(&self) -> &[u8] {
        self.authority.certificate()
    }

    /// Serves until `stop` is over, connections from this machine only.
    ///
    /// Errors: [`ServeError::Open`] for a listener that others can reach.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        if !address.ip().is_loopback() {
            return Err(ServeError::Open { address });
        }
        let proxy = Arc::new(self);
        let room = Arc::new(Semaphore::new(proxy.gateway.config.limits.connections));
        let open = watch::Sender::new(());
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                proxy.gateway.clock.sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let Ok(permit) = room.clone().try_acquire_owned() else { continue };
            if !peer.ip().is_loopback() {
                continue;
            }
            let _ = stream.set_nodelay(true);
            let (proxy, mut held) = (proxy.clone(), open.subscribe());
            tokio::spawn(async move {
                tokio::select! {
                    () = proxy.connect(stream) => {}
                    // A tunnel has no end of its own.
                    _ = held.changed() => {}
                }
                drop(permit);
            });
        }
        // The client has left; without the sender every connection ends.
        drop(open);
        Ok(())
    }

    /// Serves the client's side of one connection to the proxy.
    async fn connect(self: Arc<Self>, stream: TcpStream) {
        let builder = builder(&self.gateway);
        let target = Arc::new(std::sync::Mutex::new(None));
        let service = service_fn(|request: Request<RequestBody>| {
            let (proxy, target) = (self.clone(), target.clone());
            async move {
                let (response, tunnel) = proxy.open(request).await;
                if let Ok(mut target) = target.lock() {
                    *target = tunnel;
                }
                Ok::<_, Infallible>(response)
            }
        });
        // A connection's own failure is its client's business.
        let served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        let tunnel = target.lock().ok().and_then(|mut target| target.take());
        if let (Ok(()), Some((upgraded, tunnel))) = (served, tunnel)
            && let Ok(client) = upgraded.await
        {
            match tunnel {
                Tunnel::Origin => self.read(client).await,
                Tunnel::Blind(mut other) => {
                    let mut client = TokioIo::new(client);
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut other).await;
                }
            }
        }
    }

    /// Answers a request to the proxy itself: only `CONNECT` with the credential opens a tunnel.
    async fn open(
        &self,
        mut request: Request<RequestBody>,
    ) -> (Response<Body>, Option<(OnUpgrade, Tunnel)>) {
        if !self.admits(request.headers()) {
            let mut refused = told(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "no credential");
            let asked = HeaderValue::from_static("Basic realm=\"plimsoll\"");
            refused.headers_mut().insert(PROXY_AUTHENTICATE, asked);
            return (refused, None);
        }
        let target = request.uri().authority().map(ToString::to_string);
        let Some(target) = target.filter(|_| request.method() == Method::CONNECT) else {
            return (told(StatusCode::METHOD_NOT_ALLOWED, "only CONNECT is served here"), None);
        };
        let tunnel = if self.origin.is(&target) {
            Tunnel::Origin
        } else {
            match self.reach(&target).await {
                Ok(stream) => Tunnel::Blind(stream),
                Err(error) => {
                    let why = format!("{target} cannot be reached: {error}");
                    return (told(StatusCode::BAD_GATEWAY, &why), None);
                }
            }
        };
        let upgraded = hyper::upgrade::on(&mut request);
        (Response::new(whole(Bytes::new())), Some((upgraded, tunnel)))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(PROXY_AUTHORIZATION).and_then(|value| value.to_str().ok());
        let expected = BASE64_STANDARD.encode(&self.credential);
        shown.and_then(|shown| shown.split_once(' ')).is_some_and(|(scheme, shown)| {
            scheme.eq_ignore_ascii_case("basic")
                && bool::from(shown.trim().as_bytes().ct_eq(expected.as_bytes()))
        })
    }

    async fn reach(&self, target: &str) -> io::Result<TcpStream> {
        let (host, port) = split(target);
        let port = port.map_or(Ok(443), str::parse);
        let port = port.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let patience = Timeouts::of(self.gateway.config.timeouts.connect);
        tokio::select! {
            biased;
            stream = TcpStream::connect((host, port)) => {
                let stream = stream?;
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
            () = self.gateway.clock.sleep(patience) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Ends TLS, and answers the requests inside.
    async fn read(&self, client: Upgraded) {
        let gateway = self.gateway.clone();
        let settings = match self.authority.settings(gateway.clock.now()) {
            Ok(settings) => settings,
            Err(error) => {
                tracing::warn!(why = %crate::causes::causes(&error), "no certificate");
                return;
            }
        };
        let patience = Timeouts::of(gateway.config.timeouts.headers);
        let accepted = tokio::select! {
            biased;
            accepted = TlsAcceptor::from(settings).accept(TokioIo::new(client)) => accepted,
            () = gateway.clock.sleep(patience) => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                let host = self.host();
                tracing::warn!(host, %error, "the client does not trust the certificate of this run");
                return;
            }
        };
        let stream = Framed::new(stream, gateway.clock.clone());
        let (is_ambiguous, half_closed) = (stream.is_ambiguous(), stream.half_closed());
        let service = service_fn(|request| {
            let (gateway, origin) = (gateway.clone(), self.origin.clone());
            let refused = is_ambiguous.load(Ordering::Acquire).then(|| ambiguous(&gateway));
            async move {
                Ok::<_, Infallible>(match refused {
                    Some(refused) => refused,
                    None => origin::handle(gateway, origin, request).await,
                })
            }
        });
        let _counted = GaugeGuard::new(&gateway.metrics, |metrics| &metrics.connections);
        let connection = builder(&gateway).serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection.with_upgrades());
        let mut stopping = gateway.stopping.subscribe();
        tokio::select! {
            biased;
            _ = connection.as_mut() => {}
            () = last_request(&half_closed, &mut stopping) => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// The other end of a tunnel.
enum Tunnel {
    /// The host whose requests are read.
    Origin,
    Blind(TcpStream),
}

fn told(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::from(format!("plimsoll: {why}\n"))));
    *response.status_mut() = status;
    response
}
