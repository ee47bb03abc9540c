//! The certificate authority of a forward proxy: for one host and one run, with keys in memory only.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CidrSubnet, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The life of a host's certificate, and the age at which the next connection gets a new one.
const LIFE: Duration = Duration::from_hours(24);
const RENEWED: i64 = 12 * 3600 * 1000;
/// The life of the authority, whose certificate clients read only when they start. Chosen: no run of an agent is longer.
const AUTHORITY_LIFE: Duration = Duration::from_hours(30 * 24);
/// Chosen: the clock of a container may be behind.
const SKEW: Duration = Duration::from_mins(5);

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the certificate")]
    Tls(#[from] rustls::Error),
}

/// A certificate authority whose name constraints admit one host.
pub(crate) struct Authority {
    host: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The host's certificate, and when it was made.
    served: Mutex<(MillisSinceEpoch, Arc<ServerConfig>)>,
}

impl std::fmt::Debug for Authority {
    /// Leaves out the keys.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Authority {
    pub(crate) fn new(host: &str, now: MillisSinceEpoch) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, format!("plimsoll for {host}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.name_constraints = Some(only(host));
        lasts(&mut params, now, AUTHORITY_LIFE);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let served = Mutex::new((now, Arc::new(serve_as(host, &issuer, now)?)));
        Ok(Self { host: host.to_owned(), issuer, served })
    }

    /// Returns the authority's own certificate.
    pub(crate) fn certificate(&self) -> &[u8] {
        self.issuer.der()
    }

    /// Returns the settings of a connection, with a certificate that is not about to expire.
    pub(crate) fn settings(
        &self,
        now: MillisSinceEpoch,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0 - served.0.0 > RENEWED {
            *served = (now, Arc::new(serve_as(&self.host, &self.issuer, now)?));
        }
        Ok(served.1.clone())
    }
}

/// Returns constraints that leave nothing but a host (RFC 5280, 4.2.1.10): a kind that is not named would be free.
fn only(host: &str) -> NameConstraints {
    let every = [CidrSubnet::V4([0; 4], [0; 4]), CidrSubnet::V6([0; 16], [0; 16])];
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            let subnet = CidrSubnet::from_addr_prefix(address, bits);
            NameConstraints {
                permitted_subtrees: vec![GeneralSubtree::IpAddress(subnet)],
                excluded_subtrees: vec![GeneralSubtree::DnsName(String::new())],
            }
        }
        Err(_) => NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName(host.to_owned())],
            excluded_subtrees: every.map(GeneralSubtree::IpAddress).into(),
        },
    }
}

fn lasts(params: &mut CertificateParams, now: MillisSinceEpoch, life: Duration) {
    let now = date_time_ymd(1970, 1, 1) + Duration::from_millis(now.0.max(0).unsigned_abs());
    params.not_before = now - SKEW;
    params.not_after = now + life;
}

fn serve_as(
    host: &str,
    issuer: &CertifiedIssuer<'static, KeyPair>,
    now: MillisSinceEpoch,
) -> Result<ServerConfig, AuthorityError> {
    let mut params = CertificateParams::new(vec![host.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, host);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    lasts(&mut params, now, LIFE);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone(), issuer.der().clone()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // Named, since another part of the process may have installed another provider, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const NOW: MillisSinceEpoch = MillisSinceEpoch(1_790_000_000_000);

    /// Verifies a certificate that `authority` issues to `host`, some hours after it was made.
    fn accepts(authority: &Authority, host: &str, hours: u64) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(authority.issuer.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().expect("roots");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        lasts(&mut params, NOW, LIFE);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority.issuer).expect("signed");
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        let at = Duration::from_millis(NOW.0.unsigned_abs()) + Duration::from_hours(hours);
        let at = UnixTime::since_unix_epoch(at);
        verifier.verify_server_cert(certificate.der(), &[], &name, &[], at).is_ok()
    }

    #[test]
    fn the_authority_speaks_for_one_host_only() {
        let authority = Authority::new("api.example.com", NOW).expect("made");
        assert!(accepts(&authority, "api.example.com", 1));
        for other in ["example.com", "api.example.org", "127.0.0.1", "::1"] {
            assert!(!accepts(&authority, other, 1), "{other}");
        }
        assert!(!accepts(&authority, "api.example.com", 25), "a certificate is for a day");
        let authority = Authority::new("127.0.0.1", NOW).expect("made");
        assert!(accepts(&authority, "127.0.0.1", 1));
        for other in ["127.0.0.2", "example.com"] {
            assert!(!accepts(&authority, other, 1), "{other}");
        }
    }

    #[test]
    fn a_long_run_gets_new_certificates() {
        let authority = Authority::new("a.test", NOW).expect("made");
        let at = |hours: i64| authority.settings(MillisSinceEpoch(NOW.0 + hours * 3_600_000));
        let first = at(1).expect("settings");
        assert!(Arc::ptr_eq(&first, &at(11).expect("settings")));
        assert!(!Arc::ptr_eq(&first, &at(13).expect("settings")));
    }
}
