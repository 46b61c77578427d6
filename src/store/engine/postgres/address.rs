//! Reads a PostgreSQL database URL: hosts, our role there, and how the connection is protected. Parameters have libpq's
//! names, so that one URL serves us, `psql` and `pg_dump`. It is read at the start, to refuse what cannot work, and for
//! each new session.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host};

use super::tls;
use super::url::{decoded, split_query};
use crate::domain::words::words;

/// How long one host may take to let us in, unless the URL says otherwise.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How soon a host that vanished is noticed: it did not receive what we sent, or did not answer our keepalives while
/// the connection was idle.
const UNRECEIVED: Duration = Duration::from_secs(5);
const ASK_AFTER: Duration = Duration::from_secs(3);
const ASK_EVERY: Duration = Duration::from_secs(1);
const ASK_TIMES: u32 = 3;
/// The parameters left to the client library.
const PASSED_ON: [&str; 9] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "options",
    "application_name",
    "channel_binding",
];
const OURS: [&str; 6] =
    ["connect_timeout", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"];
/// Where Debian, Alpine and others keep the machine's trusted roots: `pg_dump` before 16 needs the path.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

words! {
    /// `sslmode`, as libpq names it.
    pub enum SslMode: ALL, parse {
        Disable = "disable",
        Prefer = "prefer",
        Require = "require",
        VerifyCa = "verify-ca",
        VerifyFull = "verify-full",
    }
}

/// The roots that make a server's certificate trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    System,
    File(PathBuf),
}

/// Our own certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub struct Address {
    config: Config,
    within: Duration,
    spots: Vec<Spot>,
    written: Option<SslMode>,
    pub roots: Option<Roots>,
    pub identity: Option<Identity>,
}

/// One of the hosts.
#[derive(Clone)]
pub struct Spot {
    host: Host,
    address: Option<IpAddr>,
    port: u16,
    pub mode: SslMode,
}

impl Spot {
    /// The name in messages.
    pub fn name(&self) -> String {
        match &self.host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", self.port),
            Host::Tcp(name) => format!("{name}:{}", self.port),
            Host::Unix(folder) => folder.display().to_string(),
        }
    }
}

/// Whether data sent there stays on this machine.
fn is_local(host: &Host, address: Option<IpAddr>) -> bool {
    match (host, address) {
        (Host::Unix(_), _) => true,
        (Host::Tcp(_), Some(address)) => address.to_canonical().is_loopback(),
        (Host::Tcp(name), None) => {
            let address = name.parse::<IpAddr>();
            name.eq_ignore_ascii_case("localhost")
                || address.is_ok_and(|address| address.to_canonical().is_loopback())
        }
    }
}

impl Address {
    /// `Err` is a sentence for the operator. It never holds the password.
    pub fn parse(url: &str) -> Result<Address, String> {
        // Otherwise the text after the first @ would be taken for a host, and shown.
        if url.matches('@').count() > 1 {
            return Err("it holds more than one @: in a name or a password, an @ is written %40".into());
        }
        let (front, query) = split_query(url);
        let mut passed_on = Vec::new();
        let (mut written, mut roots, mut certificate, mut key) = (None, None, None, None);
        let mut within = CONNECT_WITHIN;
        for piece in query.split('&').filter(|piece| !piece.is_empty()) {
            let (name, value) = decoded(piece);
            match name.as_str() {
                "sslmode" => {
                    let allowed = SslMode::ALL.map(SslMode::as_str).join(", ");
                    written = Some(
                        SslMode::parse(&value)
                            .ok_or(format!("sslmode is {value:?}: it must be one of {allowed}"))?,
                    );
                }
                "sslrootcert" if value == "system" => roots = Some(Roots::System),
                "sslrootcert" => roots = Some(Roots::File(value.into())),
                "sslcert" => certificate = Some(PathBuf::from(value)),
                "sslkey" => key = Some(PathBuf::from(value)),
                "connect_timeout" => {
                    let seconds = value.parse().ok().filter(|seconds| (1..=600).contains(seconds));
                    within =
                        Duration::from_secs(seconds.ok_or("connect_timeout must be seconds from 1 to 600")?);
                }
                // The gateway writes, so it never wants a read-only server.
                "target_session_attrs" if value == "read-write" || value == "primary" => {}
                "target_session_attrs" => {
                    return Err("target_session_attrs must be read-write, which is the default".into());
                }
                known if PASSED_ON.contains(&known) => passed_on.push(piece),
                unknown => {
                    let mut known: Vec<&str> = PASSED_ON.into_iter().chain(OURS).collect();
                    known.sort_unstable();
                    return Err(format!(
                        "{unknown:?} is not a parameter that simgate knows in a database URL; these are: {}",
                        known.join(", ")
                    ));
                }
            }
        }
        let config: Config =
            format!("{front}?{}", passed_on.join("&")).parse().map_err(|error: tokio_postgres::Error| {
                let cause = std::error::Error::source(&error);
                format!("it cannot be read: {}", cause.map_or_else(|| error.to_string(), ToString::to_string))
            })?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => return Err("sslcert and sslkey are needed together".into()),
        };
        let mut address = Address { config, within, spots: Vec::new(), written, roots, identity };
        address.check_guards()?;
        address.spots = address.spots()?;
        tls::check(&address)?;
        Ok(address)
    }

    /// Refuses settings that contradict each other: they are mistakes about security.
    fn check_guards(&self) -> Result<(), String> {
        use SslMode::*;
        match (self.written, &self.roots) {
            (Some(Disable | Prefer), Some(_)) => {
                Err("sslrootcert verifies nothing unless sslmode is verify-full or verify-ca".into())
            }
            (Some(Require | VerifyCa), Some(Roots::System)) => {
                Err("sslrootcert=system needs sslmode=verify-full: anybody can get such a certificate".into())
            }
            (Some(VerifyCa), None) => {
                Err("sslmode=verify-ca needs sslrootcert, the file of the authority's certificate".into())
            }
            (Some(Disable), _) if self.identity.is_some() => {
                Err("sslcert is shown to nobody with sslmode=disable".into())
            }
            _ => Ok(()),
        }
    }

    fn spots(&self) -> Result<Vec<Spot>, String> {
        let (hosts, addresses, ports) =
            (self.config.get_hosts(), self.config.get_hostaddrs(), self.config.get_ports());
        let count = hosts.len().max(addresses.len());
        if count == 0 {
            return Err("it names no host".into());
        }
        if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
            return Err("it has not as many hostaddr as hosts".into());
        }
        if ports.len() > 1 && ports.len() != count {
            return Err("it has not as many ports as hosts".into());
        }
        let spot = |number: usize| {
            let address = addresses.get(number).copied();
            let host = match (hosts.get(number), address) {
                (Some(host), _) => host.clone(),
                (None, address) => Host::Tcp(address.map(|address| address.to_string()).unwrap_or_default()),
            };
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            let mode = self.mode(&host, address);
            Spot { host, address, port, mode }
        };
        Ok((0..count).map(spot).collect())
    }

    /// How the connection to a host is protected: it leaves the machine unencrypted only when the URL says so.
    fn mode(&self, host: &Host, address: Option<IpAddr>) -> SslMode {
        if let Host::Unix(_) = host {
            return SslMode::Disable;
        }
        match (self.written, &self.roots) {
            (Some(SslMode::Require), Some(_)) => SslMode::VerifyCa,
            (None, Some(_)) => SslMode::VerifyFull,
            (None | Some(SslMode::Prefer), None) if is_local(host, address) => SslMode::Prefer,
            (None | Some(SslMode::Prefer), _) => SslMode::Require,
            (Some(mode), _) => mode,
        }
    }

    /// All hosts, in the order in which they are tried.
    pub fn all(&self) -> &[Spot] {
        &self.spots
    }

    pub fn connect_within(&self) -> Duration {
        self.within
    }

    /// What an attacker between us and a host could do, and how to prevent it.
    pub fn weakness(&self) -> Option<(String, &'static str)> {
        let leaves = |spot: &&Spot| !is_local(&spot.host, spot.address);
        let weakest = self.spots.iter().filter(leaves).min_by_key(|spot| spot.mode as u8)?;
        match weakest.mode {
            SslMode::Disable => Some((
                format!("anybody between us and {} reads and changes what is said", weakest.name()),
                "set sslmode=verify-full in database_url, unless that connection is protected otherwise",
            )),
            SslMode::Prefer | SslMode::Require => Some((
                format!("anybody between us and {} can pass himself off as the server", weakest.name()),
                "set sslmode=verify-full and sslrootcert in database_url",
            )),
            SslMode::VerifyCa | SslMode::VerifyFull => None,
        }
    }

    /// Our role on the server.
    pub fn role(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres")
    }

    /// The client library's view of one host.
    pub fn config(&self, spot: &Spot) -> Config {
        let mut config = Config::new();
        match &spot.host {
            Host::Tcp(name) => config.host(name),
            Host::Unix(folder) => config.host_path(folder),
        };
        if let Some(address) = spot.address {
            config.hostaddr(address);
        }
        if let Some(user) = self.config.get_user() {
            config.user(user);
        }
        if let Some(password) = self.config.get_password() {
            config.password(password);
        }
        if let Some(options) = self.config.get_options() {
            config.options(options);
        }
        config
            .port(spot.port)
            .dbname(self.database())
            .application_name(self.config.get_application_name().unwrap_or("simgate"))
            .channel_binding(self.config.get_channel_binding())
            .tcp_user_timeout(UNRECEIVED)
            .keepalives_idle(ASK_AFTER)
            .keepalives_interval(ASK_EVERY)
            .keepalives_retries(ASK_TIMES);
        config
    }

    /// The same for PostgreSQL's own tools, in the environment: every user of the machine can read arguments.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let list = |each: &dyn Fn(&Spot) -> String| -> String {
            self.spots.iter().map(each).collect::<Vec<_>>().join(",")
        };
        let path = |path: &Path| path.display().to_string();
        let host = |spot: &Spot| match &spot.host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => path(folder),
        };
        // One mode for all hosts: the strictest.
        let modes = self.spots.iter().map(|spot| spot.mode);
        let mode = modes.max_by_key(|mode| *mode as u8).unwrap_or(SslMode::Prefer);
        let mut variables = vec![
            ("PGHOST", list(&host)),
            ("PGPORT", list(&|spot| spot.port.to_string())),
            ("PGDATABASE", self.database().to_string()),
            ("PGSSLMODE", mode.as_str().to_string()),
            ("PGTARGETSESSIONATTRS", "read-write".to_string()),
            ("PGCONNECT_TIMEOUT", self.within.as_secs().to_string()),
        ];
        if !self.config.get_hostaddrs().is_empty() {
            let address = |spot: &Spot| spot.address.map(|address| address.to_string()).unwrap_or_default();
            variables.push(("PGHOSTADDR", list(&address)));
        }
        if let Some(user) = self.config.get_user() {
            variables.push(("PGUSER", user.to_string()));
        }
        if let Some(password) = self.config.get_password() {
            variables.push(("PGPASSWORD", String::from_utf8_lossy(password).into_owned()));
        }
        if let Some(options) = self.config.get_options() {
            variables.push(("PGOPTIONS", options.to_string()));
        }
        match &self.roots {
            Some(Roots::File(file)) => variables.push(("PGSSLROOTCERT", path(file))),
            _ if mode == SslMode::VerifyFull => {
                let known = Path::new(SYSTEM_ROOTS).exists();
                let roots = if known { SYSTEM_ROOTS } else { "system" };
                variables.push(("PGSSLROOTCERT", roots.to_string()));
            }
            _ => {}
        }
        if let Some(identity) = &self.identity {
            variables.push(("PGSSLCERT", path(&identity.certificate)));
            variables.push(("PGSSLKEY", path(&identity.key)));
        }
        let binding = match self.config.get_channel_binding() {
            ChannelBinding::Disable => Some("disable"),
            ChannelBinding::Require => Some("require"),
            _ => None,
        };
        variables.extend(binding.map(|word| ("PGCHANNELBINDING", word.to_string())));
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(url: &str) -> Vec<&'static str> {
        let address = Address::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
        address.all().iter().map(|spot| spot.mode.as_str()).collect()
    }

    #[test]
    fn a_line_that_leaves_the_machine_is_in_clear_only_where_that_is_written() {
        for (url, expected) in [
            ("postgres://me@localhost/db", "prefer"),
            ("postgres://me@127.0.0.9/db", "prefer"),
            ("postgres://me@[::1]/db", "prefer"),
            ("postgres://me@%2Frun%2Fpostgresql/db", "disable"),
            ("postgres:///db?host=/run/postgresql&sslmode=require", "disable"),
            ("postgres://me@localhost/db?sslmode=require", "require"),
            ("postgres://me@db.example/db", "require"),
            ("postgres://me@db.example/db?sslmode=prefer", "require"),
            ("postgres://me@db.example/db?sslmode=disable", "disable"),
            ("postgres://me@192.0.2.7/db", "require"),
            ("postgres://me@0.0.0.0/db", "require"),
            ("postgres://me@localhost.example/db", "require"),
            // The address decides where data goes, whatever the name says.
            ("postgres://me@localhost/db?hostaddr=192.0.2.7", "require"),
            ("postgres://me@db.example/db?hostaddr=127.0.0.1", "prefer"),
            ("postgres://me@db.example/db?sslmode=verify-full", "verify-full"),
            ("postgres://me@db.example/db?sslrootcert=system", "verify-full"),
        ] {
            assert_eq!(modes(url), [expected], "{url}");
        }
        assert_eq!(modes("postgres://me@localhost:1,db.example:2/db"), ["prefer", "require"]);
    }

    #[test]
    fn a_weak_line_is_known_by_its_weakest_host() {
        let weakness = |url: &str| Address::parse(url).unwrap().weakness().map(|(what, _)| what);
        assert_eq!(weakness("postgres://me@localhost/db?sslmode=disable"), None);
        assert_eq!(weakness("postgres://me@db.example/db?sslmode=verify-full"), None);
        let told = weakness("postgres://me@localhost,db.example/db").unwrap();
        assert!(told.contains("db.example:5432 can pass himself off"), "{told}");
        let told = weakness("postgres://me@db.example/db?sslmode=disable").unwrap();
        assert!(told.contains("reads and changes"), "{told}");
    }

    #[test]
    fn hosts_and_ports_go_together() {
        let address =
            Address::parse("postgres://me:p%40ss@a.example:1,[2001:db8::1]:2/shop?connect_timeout=9")
                .unwrap();
        let names: Vec<String> = address.all().iter().map(Spot::name).collect();
        assert_eq!(names, ["a.example:1", "[2001:db8::1]:2"]);
        assert_eq!((address.role(), address.database()), ("me", "shop"));
        assert_eq!(address.connect_within(), Duration::from_secs(9));
        let second = address.config(&address.all()[1]);
        assert_eq!(second.get_password(), Some(&b"p@ss"[..]));
        assert_eq!(second.get_hosts(), [Host::Tcp("2001:db8::1".into())]);
        assert_eq!(second.get_ports(), [2]);
        let variables = address.environment();
        for (name, value) in [
            ("PGHOST", "a.example,2001:db8::1"),
            ("PGPORT", "1,2"),
            ("PGSSLMODE", "require"),
            ("PGTARGETSESSIONATTRS", "read-write"),
            ("PGPASSWORD", "p@ss"),
        ] {
            assert!(variables.contains(&(name, value.to_string())), "{name}");
        }
    }

    #[test]
    fn what_cannot_work_is_told_without_the_password() {
        let url = |rest: &str| format!("postgres://me:hush@db.example/db?{rest}");
        for (rest, told) in [
            ("sslmode=allow", "disable, prefer, require, verify-ca, verify-full"),
            ("sslmode=verify-ca", "needs sslrootcert"),
            ("sslmode=require&sslrootcert=system", "verify-full"),
            ("sslmode=disable&sslrootcert=/x", "sslrootcert verifies nothing"),
            ("sslmode=verify-full&sslrootcert=/not/there.crt", "/not/there.crt"),
            ("sslcert=/x", "sslcert and sslkey are needed together"),
            ("sslmode=disable&sslcert=/x&sslkey=/y", "shown to nobody"),
            ("sslcert=/not/there.crt&sslkey=/y", "/not/there.crt"),
            ("target_session_attrs=any", "must be read-write"),
            ("connect_timeout=soon", "connect_timeout must be seconds"),
            ("sslcrl=/x", "\"sslcrl\" is not a parameter"),
            ("port=1,2", "not as many ports"),
            ("channel_binding=perhaps", "channel_binding"),
        ] {
            let why = Address::parse(&url(rest)).err().unwrap_or_else(|| panic!("{rest} is taken"));
            assert!(why.contains(told), "{rest}: {why}");
            assert!(!why.contains("hush"), "{rest}: {why}");
        }
        assert!(Address::parse("postgres:///db").err().unwrap().contains("no host"));
        assert!(Address::parse(&url("target_session_attrs=read-write")).is_ok());
    }
}
