//! One try to deliver a message. Its steps, all within one time limit: ask where the host's name leads, refuse if any of
//! the addresses is not allowed, connect to one of exactly these, send, and read the answer. Redirects are answers like
//! any other, and no proxy is used. What is told of a failure holds neither path nor query.

use std::fmt::Display;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::dns::Dns;
use super::line::{Answer, Broken, Idle, Line};
use super::target::{Host, Rules, Target};

const LIMIT: Duration = Duration::from_secs(10);
/// How long one of several addresses may take: the next one is tried while there is time.
const LIMIT_PER_ADDRESS: Duration = Duration::from_secs(3);
/// How many addresses of a name are tried.
const MOST_ADDRESSES: usize = 16;
/// What is kept of an answer.
const KEPT: usize = 1_024;
const AGENT: &str = concat!("simgate/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub outcome: Outcome,
    pub ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the first 1 KB of the body as text.
    Answered { status: u16, body: String },
    /// The target is not allowed now; nothing was sent.
    Refused(String),
    /// No whole answer came.
    Failed(String),
    /// Too many names are being looked up; nothing was sent.
    Busy,
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        matches!(self, Outcome::Answered { status: 200..=299, .. })
    }
}

pub struct Sender {
    rules: Rules,
    dns: Arc<dyn Dns>,
    /// Or why there is none: where http is allowed, a machine without certificates will do.
    tls: Result<TlsConnector, String>,
    idle: Arc<Idle>,
    limit: Duration,
}

impl Sender {
    pub fn new(rules: Rules, dns: Arc<dyn Dns>) -> Result<Sender, String> {
        Sender::trusting(rules, dns, &[])
    }

    /// Trusts these certificates (PEM) besides the system's.
    pub fn trusting(rules: Rules, dns: Arc<dyn Dns>, certificates: &[u8]) -> Result<Sender, String> {
        let tls = tls(certificates);
        match tls {
            Err(why) if !rules.plain_http => Err(why),
            tls => Ok(Sender { rules, dns, tls, idle: Arc::default(), limit: LIMIT }),
        }
    }

    /// For tests: another time limit.
    pub fn within(self, limit: Duration) -> Sender {
        Sender { limit, ..self }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Makes one try. The receiver may get it twice: when a line that was kept open ends without a word, it is sent again.
    pub async fn post(&self, target: &Target, headers: &[(&'static str, String)], body: Bytes) -> Attempt {
        let started = Instant::now();
        let deadline = tokio::time::Instant::from_std(started + self.limit);
        let outcome = match request(target, headers, body) {
            Ok(request) => self.deliver(target, request, deadline).await.unwrap_or_else(|trouble| trouble),
            Err(error) => Outcome::Failed(format!("the message cannot be written: {error}")),
        };
        Attempt { outcome, ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX) }
    }

    async fn deliver(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
        deadline: tokio::time::Instant,
    ) -> Result<Outcome, Outcome> {
        let addresses = timeout_at(deadline, self.addresses(target)).await;
        let addresses = addresses.map_err(|_| self.late("the name was not resolved"))??;
        let origin = target.origin();
        if let Some(mut line) = self.idle.take(&origin, &addresses) {
            match line.exchange(request.clone(), deadline).await {
                // It ended while it waited, which both ends may do.
                Err(Broken::Silent(_)) => {}
                answer => return Ok(self.conclude(answer, origin, line)),
            }
        }
        let line = timeout_at(deadline, self.connect(target, &addresses)).await;
        let mut line = line.map_err(|_| self.late("no connection"))??;
        let answer = line.exchange(request, deadline).await;
        Ok(self.conclude(answer, origin, line))
    }

    /// Where the target leads now. One address that is not allowed spoils all of them: an honest name has none.
    async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, Outcome> {
        let found = match target.host() {
            Host::Address(ip) => vec![SocketAddr::new(*ip, target.port())],
            Host::Name(name) => {
                let resolved = self.dns.resolve(name, target.port()).await;
                resolved.map_err(|error| match error.kind() {
                    ErrorKind::ResourceBusy => Outcome::Busy,
                    _ => Outcome::Failed(format!("the name was not resolved: {error}")),
                })?
            }
        };
        let mut addresses = Vec::with_capacity(found.len());
        for ip in found.iter().map(SocketAddr::ip) {
            if !self.rules.allow(ip) {
                return Err(Outcome::Refused("the name leads to an address that is not public".into()));
            }
            let address = SocketAddr::new(ip, target.port());
            if addresses.len() < MOST_ADDRESSES && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        match addresses.is_empty() {
            true => Err(Outcome::Failed("the name has no address".into())),
            false => Ok(addresses),
        }
    }

    /// Connects to the first of these that can be reached.
    async fn connect(&self, target: &Target, addresses: &[SocketAddr]) -> Result<Line, Outcome> {
        let limit = if addresses.len() > 1 { self.limit.min(LIMIT_PER_ADDRESS) } else { self.limit };
        let mut last = self.late("no connection");
        for address in addresses {
            match timeout(limit, self.open(target, *address)).await {
                Ok(Err(trouble @ Outcome::Failed(_))) => last = trouble,
                Ok(done) => return done,
                Err(_) => {}
            }
        }
        Err(last)
    }

    async fn open(&self, target: &Target, address: SocketAddr) -> Result<Line, Outcome> {
        let failed =
            |why: &dyn Display| Outcome::Failed(format!("no connection: {}", plain(&why.to_string())));
        let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
        let ends = stream.local_addr().and_then(|local| Ok([local.ip(), stream.peer_addr()?.ip()]));
        let ends = ends.map_err(|error| failed(&error))?;
        if is_ourselves(ends) && !self.rules.allow_private {
            return Err(Outcome::Refused("the name leads to this gateway itself".into()));
        }
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        if !target.is_https() {
            return Line::open(stream, address).await.map_err(|error| failed(&error));
        }
        let name = match target.host() {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| failed(&error))?,
            Host::Address(ip) => ServerName::from(*ip),
        };
        let tls = self.tls.as_ref().map_err(|why| failed(why))?;
        let failed = |why: &dyn Display| Outcome::Failed(format!("no TLS: {}", plain(&why.to_string())));
        let stream = tls.connect(name, stream).await.map_err(|error| failed(&error))?;
        Line::open(stream, address).await.map_err(|error| failed(&error))
    }

    fn conclude(&self, answer: Result<Answer, Broken>, origin: String, line: Line) -> Outcome {
        match answer {
            Ok(answer) => {
                if answer.is_whole {
                    self.idle.keep(origin, line);
                }
                let kept = &answer.body[..answer.body.len().min(KEPT + 3)];
                Outcome::Answered { status: answer.status, body: plain(&String::from_utf8_lossy(kept)) }
            }
            Err(Broken::Silent(why)) => Outcome::Failed(format!("no answer: {why}")),
            Err(Broken::Midway(None, why)) => Outcome::Failed(format!("the answer cannot be read: {why}")),
            Err(Broken::Midway(Some(status), why)) => {
                Outcome::Failed(format!("the answer {status} cannot be read: {why}"))
            }
            Err(Broken::Late(None)) => self.late("no answer"),
            Err(Broken::Late(Some(status))) => self.late(&format!("the answer {status} did not end")),
        }
    }

    fn late(&self, what: &str) -> Outcome {
        Outcome::Failed(format!("{what} within {:?}", self.limit))
    }
}

fn tls(certificates: &[u8]) -> Result<TlsConnector, String> {
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let roots = roots.map_err(|error| format!("the certificates to trust: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots, provider.clone());
    let verifier = verifier.map_err(|error| format!("the machine's root certificates: {error}"))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn request(
    target: &Target,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> hyper::http::Result<Request<Full<Bytes>>> {
    let request = Request::post(target.path_and_query())
        .header(HOST, target.authority())
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json");
    headers.iter().fold(request, |request, (name, value)| request.header(*name, value)).body(Full::new(body))
}

/// Whoever connects to an address of its own has that address at both ends.
fn is_ourselves([local, peer]: [IpAddr; 2]) -> bool {
    local.to_canonical() == peer.to_canonical()
}

/// At most 1 KB of what another machine said, as text of one line.
fn plain(text: &str) -> String {
    let mut text: String = text
        .chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect();
    text.truncate(text.floor_char_boundary(KEPT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_short_plain_text() {
        assert_eq!(plain("fine\r\n\tso\0far\u{1b}[31m"), "fine   so\u{fffd}far\u{fffd}[31m");
        assert_eq!(plain(&"x".repeat(2_000)).len(), 1_024);
        // A character of three bytes is kept whole or not at all.
        assert_eq!(plain(&"€".repeat(2_000)), "€".repeat(341));
    }

    #[test]
    fn our_own_address_is_at_both_ends() {
        for (local, peer, ours) in [
            ("192.0.2.7", "192.0.2.7", true),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
            ("2001:db8::7", "2001:db8::7", true),
            ("192.0.2.7", "192.0.2.8", false),
        ] {
            assert_eq!(is_ourselves([local, peer].map(|text| text.parse().unwrap())), ours, "{local} {peer}");
        }
    }

    #[test]
    fn every_path_and_query_can_be_written() {
        let rules = Rules { plain_http: false, ports: None, allow_private: false, own_hosts: Vec::new() };
        for c in (' '..'\u{180}').chain(['€', '漢', '\u{202e}', '\u{1f600}']) {
            let text = format!("https://hooks.example/a{c}b?c{c}d");
            if let Ok(target) = Target::parse(&text, &rules) {
                assert!(request(&target, &[], Bytes::new()).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn only_2xx_is_success() {
        let answered = |status| Outcome::Answered { status, body: String::new() };
        assert!([200, 202, 204, 299].into_iter().all(|status| answered(status).is_success()));
        assert!(![101, 199, 300, 302, 410, 500].into_iter().any(|status| answered(status).is_success()));
        assert!(!Outcome::Refused("no".into()).is_success() && !Outcome::Failed("no".into()).is_success());
    }
}
