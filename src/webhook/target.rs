//! Which URLs a message may be sent to. A URL is read as browsers read it, so that every spelling of an address
//! (`2130706433`, `0x7f.1`, full-width digits) is seen as that address. Where a name leads is checked at each try.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use reqwest::Url;

use super::address::{is_global, is_private};

const LONGEST: usize = 2_048;
/// Names that lead nowhere but into a network of one's own.
const INNER: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// What is allowed here.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether `http` is allowed, besides `https`.
    pub plain_http: bool,
    /// Without them, any port.
    pub ports: Option<Vec<u16>>,
    /// Whether this machine and private networks may be reached.
    pub allow_private: bool,
    /// Hosts of our own URLs, as `host_of` writes them.
    pub own_hosts: Vec<String>,
}

impl Rules {
    pub(super) fn allow(&self, ip: IpAddr) -> bool {
        is_global(ip) || (self.allow_private && is_private(ip))
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// In lower case and ASCII, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

/// A URL that is allowed. Its path and query may hold a key of the partner's, so they are in no error or log.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: Host,
    port: u16,
}

impl Target {
    /// Reads a URL; the error tells the partner what it must be.
    pub fn parse(text: &str, rules: &Rules) -> Result<Target, String> {
        let must = |what: &str| Err(format!("must {what}"));
        if text.len() > LONGEST {
            return must("have at most 2048 characters");
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return must("have no spaces or control characters");
        }
        let schemes = if rules.plain_http { "start with https:// or http://" } else { "start with https://" };
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let is_plain = scheme.eq_ignore_ascii_case("http");
        if !(scheme.eq_ignore_ascii_case("https") || (is_plain && rules.plain_http)) {
            return must(schemes);
        }
        // The standard forgives slashes too many and takes `\` for one of them.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() || text.contains('\\') {
            return must("have a host name after ://, and no backslash");
        }
        if authority.contains('@') {
            return must("have no user name or password");
        }
        let Ok(mut url) = Url::parse(text) else {
            return must("be a valid URL");
        };
        if url.fragment().is_some() {
            return must("have no fragment (#)");
        }
        let Some(host) = host(&url) else {
            return must("have a valid host name");
        };
        if let Host::Name(name) = &host
            && url.set_host(Some(name)).is_err()
        {
            return must("have a valid host name");
        }
        if url.as_str().len() > LONGEST {
            return must("have at most 2048 characters when it is written in ASCII");
        }
        let port = url.port_or_known_default().unwrap_or_default();
        match &rules.ports {
            Some(ports) if !ports.contains(&port) => return Err(must_use(ports)),
            _ if port == 0 => return must("use a port from 1 to 65535"),
            _ => {}
        }
        if rules.own_hosts.contains(&host.to_string()) {
            return must("not lead to this gateway itself");
        }
        let is_public = match &host {
            Host::Address(ip) => rules.allow(*ip),
            Host::Name(name) => rules.allow_private || !is_inner(name),
        };
        match is_public {
            true => Ok(Target { url, host, port }),
            false => must("lead to a public address"),
        }
    }

    /// All of it, normalised. For the partner only.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Scheme, host and port: what may be shown to others too.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.url.scheme(), self.authority())
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// As the header `Host` has it: with the port, unless it is the usual one.
    pub(super) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or(host.to_string(), |port| format!("{host}:{port}"))
    }

    pub(super) fn path_and_query(&self) -> String {
        let path = self.url.path();
        self.url.query().map_or(path.to_string(), |query| format!("{path}?{query}"))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.origin())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(ip) => write!(f, "{}", ip.to_canonical()),
        }
    }
}

/// The host of a URL of our own, in the spelling of `Rules::own_hosts`.
pub fn host_of(url: &str) -> Option<String> {
    host(&Url::parse(url).ok()?).map(|host| host.to_string())
}

fn host(url: &Url) -> Option<Host> {
    let text = url.host_str()?;
    if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.parse().ok().map(Host::Address);
    }
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Some(Host::Address(ip.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then(|| Host::Name(name.to_string()))
}

/// Whether a name leads nowhere in public: it has no dot, or an ending that is kept for networks of one's own.
fn is_inner(name: &str) -> bool {
    let ends = |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.'));
    !name.contains('.') || INNER.into_iter().any(|ending| name == ending || ends(ending))
}

fn must_use(ports: &[u16]) -> String {
    let listed: Vec<String> = ports.iter().map(u16::to_string).collect();
    match &listed[..] {
        [port] => format!("must use port {port}"),
        _ => format!("must use one of the ports {}", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Rules {
        let own_hosts = vec!["gateway.example".into(), "203.0.114.7".into(), "2001:4860::1".into()];
        Rules { plain_http: false, ports: Some(vec![443]), allow_private: false, own_hosts }
    }

    fn sandbox(allow_private: bool) -> Rules {
        Rules { plain_http: true, ports: None, allow_private, ..live() }
    }

    #[track_caller]
    fn refused(text: &str, rules: &Rules, why: &str) {
        assert_eq!(Target::parse(text, rules), Err(why.to_string()), "{text}");
    }

    #[test]
    fn urls_are_normalised() {
        for (text, url, origin, path) in [
            ("https://hooks.example", "https://hooks.example/", "https://hooks.example", "/"),
            (
                "HTTPS://Hooks.Example.:443/A?b=C",
                "https://hooks.example/A?b=C",
                "https://hooks.example",
                "/A?b=C",
            ),
            (
                "https://bücher.example/ü",
                "https://xn--bcher-kva.example/%C3%BC",
                "https://xn--bcher-kva.example",
                "/%C3%BC",
            ),
            ("https://hooks.example:/x", "https://hooks.example/x", "https://hooks.example", "/x"),
            ("https://8.8.8.8/x/../y", "https://8.8.8.8/y", "https://8.8.8.8", "/y"),
            (
                "https://[2606:4700::1111]/?k",
                "https://[2606:4700::1111]/?k",
                "https://[2606:4700::1111]",
                "/?k",
            ),
            (
                "https://my_hooks.example/@me",
                "https://my_hooks.example/@me",
                "https://my_hooks.example",
                "/@me",
            ),
            ("https://134744072/", "https://8.8.8.8/", "https://8.8.8.8", "/"),
        ] {
            let target = Target::parse(text, &live()).expect(text);
            assert_eq!((target.url(), target.origin().as_str()), (url, origin));
            assert_eq!((target.path_and_query().as_str(), target.port()), (path, 443));
            assert_eq!(Target::parse(target.url(), &live()), Ok(target));
        }
        let target = Target::parse("http://hooks.example:8080/?key=hush", &sandbox(false)).unwrap();
        assert_eq!((target.authority().as_str(), target.port()), ("hooks.example:8080", 8080));
        assert_eq!(format!("{target:?}"), "Target(http://hooks.example:8080)");
    }

    #[test]
    fn hostile_urls_are_refused() {
        let (scheme, public) = ("must start with https://", "must lead to a public address");
        let (host, valid) = ("must have a host name after ://, and no backslash", "must be a valid URL");
        for (text, why) in [
            ("", scheme),
            ("hooks.example", scheme),
            ("//hooks.example", scheme),
            ("https:hooks.example", scheme),
            ("https:/hooks.example", scheme),
            ("http://hooks.example", scheme),
            ("ftp://hooks.example", scheme),
            ("file:///etc/passwd", scheme),
            ("gopher://hooks.example", scheme),
            ("javascript://hooks.example/%0aalert(1)", scheme),
            ("https://", host),
            ("https:///hooks.example", host),
            ("https://?x", host),
            ("https://#x", host),
            ("https:\\\\hooks.example", scheme),
            ("https://\\hooks.example", host),
            ("https://hooks.example\\@gateway.example", host),
            ("https://:443/", valid),
            ("https://hooks.example:port/", valid),
            ("https://hooks.example:65536/", valid),
            ("https://hooks%00.example/", valid),
            ("https://hooks%40.example/", valid),
            ("https://[::1", valid),
            ("https://[fe80::1%25eth0]/", valid),
            ("https://[::ffff:1.2.3.4.5]/", valid),
            ("https://1.2.3.4.5/", valid),
            ("https://256.1.1.1/", valid),
            ("https://a..example/", "must have a valid host name"),
            ("https://hooks.example../", "must have a valid host name"),
            ("https://ho*ks.example/", "must have a valid host name"),
            ("https://me@hooks.example/", "must have no user name or password"),
            ("https://me:word@hooks.example/", "must have no user name or password"),
            ("https://@hooks.example/", "must have no user name or password"),
            ("https://hooks.example#x", "must have no fragment (#)"),
            ("https://hooks.example/#", "must have no fragment (#)"),
            (" https://hooks.example", "must have no spaces or control characters"),
            ("https://hooks.example/\r\nX: y", "must have no spaces or control characters"),
            ("https://hooks.example/\t", "must have no spaces or control characters"),
            ("https://hooks.example/\u{0}", "must have no spaces or control characters"),
            ("https://hooks.example/\u{85}", "must have no spaces or control characters"),
            ("https://hooks.example:22/", "must use port 443"),
            ("https://hooks.example:0/", "must use port 443"),
            ("https://Gateway.Example./x", "must not lead to this gateway itself"),
            ("https://203.0.114.7/", "must not lead to this gateway itself"),
            ("https://[2001:4860:0::1]/", "must not lead to this gateway itself"),
            ("https://localhost/", public),
            ("https://LOCALHOST./", public),
            ("https://a.localhost/", public),
            ("https://db/", public),
            ("https://printer.local/", public),
            ("https://metadata.google.internal/", public),
            ("https://router.home.arpa/", public),
            ("https://127.0.0.1/", public),
            ("https://127.0.0.1./", public),
            ("https://127.1/", public),
            ("https://2130706433/", public),
            ("https://0x7f.1/", public),
            ("https://0x7f000001/", public),
            ("https://0177.0.0.1/", public),
            ("https://017700000001/", public),
            ("https://%31%32%37.0.0.1/", public),
            ("https://１２７.０.０.１/", public),
            ("https://127。0。0。1/", public),
            ("https://0/", public),
            ("https://0.0.0.0/", public),
            ("https://10.0.0.1/", public),
            ("https://100.64.0.1/", public),
            ("https://169.254.169.254/latest/meta-data", public),
            ("https://0xa9fea9fe/", public),
            ("https://172.16.0.1/", public),
            ("https://192.168.1.1/", public),
            ("https://224.0.0.1/", public),
            ("https://255.255.255.255/", public),
            ("https://[::]/", public),
            ("https://[::1]/", public),
            ("https://[0:0:0:0:0:0:0:1]/", public),
            ("https://[::127.0.0.1]/", public),
            ("https://[::ffff:127.0.0.1]/", public),
            ("https://[::ffff:8.8.8.8]/", public),
            ("https://[64:ff9b::10.0.0.1]/", public),
            ("https://[64:ff9b:1::10.0.0.1]/", public),
            ("https://[2002:7f00:1::]/", public),
            ("https://[2001:0:1::1]/", public),
            ("https://[fc00::1]/", public),
            ("https://[fd00:ec2::254]/", public),
            ("https://[fe80::1]/", public),
            ("https://[ff02::1]/", public),
        ] {
            refused(text, &live(), why);
        }
    }

    #[test]
    fn urls_have_a_length() {
        let path = |length: usize| format!("https://hooks.example/{}", "x".repeat(length - 22));
        assert!(Target::parse(&path(2_048), &live()).is_ok());
        refused(&path(2_049), &live(), "must have at most 2048 characters");
        let wide = format!("https://hooks.example/{}", "ü".repeat(900));
        refused(&wide, &live(), "must have at most 2048 characters when it is written in ASCII");
        let name = |length| format!("https://{}.example/", "x".repeat(length));
        assert!(Target::parse(&name(63), &live()).is_ok());
        refused(&name(64), &live(), "must have a valid host name");
    }

    #[test]
    fn a_sandbox_has_http_and_any_port_and_private_ones_where_told() {
        for rules in [sandbox(false), sandbox(true)] {
            for text in ["http://hooks.example/", "http://hooks.example:8080/", "https://hooks.example:22/"] {
                assert!(Target::parse(text, &rules).is_ok(), "{text}");
            }
            refused("http://hooks.example:0/", &rules, "must use a port from 1 to 65535");
            refused("ftp://hooks.example/", &rules, "must start with https:// or http://");
            for text in ["http://169.254.169.254/", "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/"] {
                refused(text, &rules, "must lead to a public address");
            }
        }
        for text in
            ["http://127.0.0.1:9000/", "http://localhost:9000/", "http://[::1]/", "http://receiver:80/"]
        {
            refused(text, &sandbox(false), "must lead to a public address");
            assert!(Target::parse(text, &sandbox(true)).is_ok(), "{text}");
        }
        let two = Rules { ports: Some(vec![443, 8443]), ..live() };
        assert!(Target::parse("https://hooks.example:8443/", &two).is_ok());
        refused("https://hooks.example:444/", &two, "must use one of the ports 443, 8443");
    }

    #[test]
    fn hosts_of_our_own_urls_are_spelled_as_targets_are() {
        for (url, host) in [
            ("https://Gateway.Example.:8443/pay", Some("gateway.example")),
            ("https://bücher.example", Some("xn--bcher-kva.example")),
            ("http://127.0.0.1:8402", Some("127.0.0.1")),
            ("http://[::1]:8402", Some("::1")),
            ("gateway.example", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
