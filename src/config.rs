//! Every setting: its name, its default, its check. Flags win over `SIMGATE_*` variables, those over
//! `simgate.toml`. Settings that are unknown or wrong stop the start; all are named, with where they came from (`raw.rs`).

mod brand;
mod connections;
mod host;
mod live;
mod mail;
mod mcp;
mod networks;
mod raw;
mod suppliers;
mod webhooks;
mod x402;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::email::Email;
use crate::domain::esim::Rhythm;
use crate::domain::money::Usd;
use crate::domain::words::words;
use crate::store::Location;
use crate::supplier::terms::Terms;
use crate::webhook::Rules;

pub use self::brand::{Brand, accents};
pub use self::connections::Connections;
pub use self::host::Host;
pub use self::mail::Logins;
pub use self::mcp::{Mcp, X402Offers, origin};
pub use self::networks::{FinalBy, NetworkSettings, Settlement};
pub use self::raw::{ConfigError, Raw};
pub use self::suppliers::FIELDS as SUPPLIER_FIELDS;
pub use self::x402::{SettlerSetting, X402};

/// One setting as the outside sees it. `listen` is `--listen`, `SIMGATE_LISTEN` and `listen = …` in the file.
pub struct Spec {
    pub name: &'static str,
    /// Empty: not set.
    pub default: &'static str,
    pub help: &'static str,
    pub secret: bool,
}

const fn spec(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    Spec { name, default, help, secret: false }
}

#[rustfmt::skip]
const GENERAL: &[Spec] = &[
    spec("mode", "sandbox", "sandbox (simulated supplier) or live"),
    spec("database_url", "sqlite:simgate.db", "sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME"),
    spec("listen", "127.0.0.1:8402", "address to listen on, HOST:PORT"),
    spec("base_url", "", "public address of the partner API (default: http:// and the listen address)"),
    spec("agent_url", "", "public address of the agentic API (default: as base_url)"),
    spec("checkout_url", "", "public address of pages and QR codes (default: as base_url)"),
    Spec { name: "secret", default: "", help: "server secret, at least 32 characters; required in live mode", secret: true },
    spec("trusted_proxies", "", "networks whose X-Forwarded-For is believed, separated by commas"),
    spec("metrics_listen", "", "second address that serves /metrics, HOST:PORT"),
    spec("public_sandbox", "false", "true to serve the sandbox on an address that is not loopback"),
    spec("rate_limit", "100", "requests a second for each partner key; 0 turns limits off"),
    spec("rate_burst", "200", "how many requests of a key may come at once"),
    spec("ip_rate_limit", "50", "requests a second for each address without a key; 0 turns limits off"),
    spec("ip_rate_burst", "200", "how many requests of an address may come at once"),
    spec("answer_within_ms", "25000", "how long a purchase waits for the supplier before it answers 202"),
    spec("supplier_timeout_ms", "30000", "how long one process asks the supplier before recovery takes over"),
    spec("second_purchases_per_hour", "5", "how many orders of a supplier may be bought once more within an hour, after they were looked for in vain"),
    spec("supplier_rate_warn_days", "2", "how many days old the rate of a supplier's currency may be before the log and `doctor` warn"),
    spec("supplier_rate_stop_days", "7", "how many days old that rate may be before nothing is bought from the supplier"),
    spec("low_balance_usd", "50", "low-balance threshold of new partners"),
    spec("owners_need_second_factor", "false", "true: owners of partners' teams set up a second factor before they can do anything else in the portal"),
    spec("sandbox_plans", "0", "the least number of plans in the sandbox catalog (0: the built-in set)"),
    spec("sandbox_journal", "", "file to which the simulated supplier appends what it sold"),
    spec("sandbox_reading_s", "0", "the least seconds between two readings of a simulated eSIM; 0: it is read at each call"),
    spec("reading_active_s", "3600", "how often an eSIM that is installed or in use is read without anybody asking, in seconds"),
    spec("reading_idle_s", "86400", "the same for an eSIM that is new or used up"),
    spec("knowledge_dir", "", "folder of Markdown articles that replace or add to the built-in help"),
    spec("support_contact", "", "how customers reach you, for the help pages: an email address or a URL"),
    spec("security_contact", "", "whom to tell about a hole, for security.txt: an email address or an https URL"),
    spec("write_queue", "4096", "writes that may wait for the database before callers get 503"),
    spec("sqlite_log_mb", "64", "size of SQLite's log in MB, which it gets at the start, so that it need not grow; 0: it grows to 64"),
    spec("job_patience_s", "300", "how long a job that money depends on may take for a round before /readyz is 503"),
    spec("keep_unpaid_days", "90", "how long checkouts and invoices that nobody paid are kept, and signatures that moved nothing"),
    spec("log_api_calls", "true", "whether it is written down which calls a partner makes, for its own log; never what is in them"),
    spec("log", "info", "what to log: error, warn, info, debug, or a tracing filter"),
    spec("log_format", "text", "text or json"),
];

/// Every setting there is.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    GENERAL
        .iter()
        .chain(brand::SPECS)
        .chain(connections::SPECS)
        .chain(mail::SPECS)
        .chain(mcp::SPECS)
        .chain(networks::SPECS)
        .chain(webhooks::SPECS)
        .chain(x402::SPECS)
}

words! {
    pub enum Mode: parse {
        Sandbox = "sandbox",
        Live = "live",
    }
}

/// A limit of `per_second` requests with a `burst`; absent when limits are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub per_second: u32,
    pub burst: u32,
}

#[derive(Clone)]
pub struct Settings {
    pub mode: Mode,
    pub database: Location,
    pub listen: SocketAddr,
    pub base_url: String,
    pub agent_url: String,
    pub checkout_url: String,
    pub secret: Option<SecretString>,
    pub trusted_proxies: Vec<IpNet>,
    pub metrics_listen: Option<SocketAddr>,
    pub key_limit: Option<RateLimit>,
    pub ip_limit: Option<RateLimit>,
    pub answer_within_ms: i64,
    pub supplier_timeout_ms: i64,
    /// For each supplier, over all instances.
    pub second_purchases_per_hour: i64,
    /// How old the rate of a supplier's currency may be before that is an alarm, and before sales stop.
    pub supplier_rate_warn_days: i64,
    pub supplier_rate_stop_days: i64,
    pub low_balance: Usd,
    pub owners_need_second_factor: bool,
    pub sandbox_plans: usize,
    pub sandbox_journal: Option<PathBuf>,
    pub sandbox_reading_s: u64,
    pub reading_rhythm: Rhythm,
    /// Where the demo partner's key is written, in the folder where the gateway was started.
    pub demo_file: PathBuf,
    pub knowledge_dir: Option<PathBuf>,
    pub brand: Brand,
    pub support_contact: Option<String>,
    /// A `mailto:` or `https:` address.
    pub security_contact: Option<String>,
    pub connections: Connections,
    pub write_queue: usize,
    pub sqlite_log_mb: u64,
    pub job_patience_s: u64,
    pub keep_unpaid_days: i64,
    pub log_api_calls: bool,
    pub log: String,
    pub log_json: bool,
    pub logins: Logins,
    pub settlement: Settlement,
    pub x402: X402,
    pub suppliers: Vec<Terms>,
    pub mcp: Mcp,
    /// Where messages to partners may be sent.
    pub webhooks: Rules,
}

/// A wrong URL is not shown: its password could be anywhere in it.
fn database(raw: &Raw) -> Result<Location, ConfigError> {
    let wrong = |why: String| ConfigError(format!("database_url ({}): {why}", raw.source("database_url")));
    Location::parse(raw.text("database_url")).or_else(|why| {
        raw.is_wrong(wrong(why.to_string()));
        Location::parse(raw::default("database_url")).map_err(|why| wrong(why.to_string()))
    })
}

fn whole(min: i64, max: i64) -> impl Fn(&str) -> Option<i64> {
    move |text| text.parse().ok().filter(|n| (min..=max).contains(n))
}

/// An address as security.txt wants it.
fn security_contact(text: &str) -> Option<String> {
    let is_plain = text.len() <= 200 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && text.len() > "https://".len() && text.starts_with("https://") {
        return Some(text.to_string());
    }
    let email = Email::parse(text.strip_prefix("mailto:").unwrap_or(text))?;
    is_plain.then(|| format!("mailto:{}", email.as_str()))
}

fn rate(raw: &Raw, name: &str, burst: &str) -> Result<Option<RateLimit>, ConfigError> {
    let per_second =
        raw.require(name, "must be a whole number from 0 to 1000000", whole(0, 1_000_000))? as u32;
    let burst = raw.require(burst, "must be a whole number from 1 to 1000000", whole(1, 1_000_000))? as u32;
    Ok((per_second > 0).then_some(RateLimit { per_second, burst }))
}

fn url(text: &str) -> Option<String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
    let host = rest.split('/').next()?;
    (!host.is_empty() && !text.contains([' ', '?', '#'])).then(|| text.trim_end_matches('/').to_string())
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

impl Settings {
    /// Tells of everything that is wrong at once.
    pub fn check(raw: &Raw) -> Result<Settings, ConfigError> {
        raw.told(Settings::read(raw))
    }

    /// The supplier of this name; the simulator is none of them.
    pub fn supplier(&self, name: &str) -> Option<&Terms> {
        self.suppliers.iter().find(|terms| terms.name == name)
    }

    fn read(raw: &Raw) -> Result<Settings, ConfigError> {
        let mode = raw.require("mode", "must be sandbox or live", Mode::parse)?;
        let listen: SocketAddr =
            raw.require("listen", "must be ADDRESS:PORT, for example 127.0.0.1:8402", |t| t.parse().ok())?;
        let must_be_url = "must start with http:// or https:// and have no query";
        let base_url = raw.parse("base_url", must_be_url, url)?.unwrap_or_else(|| format!("http://{listen}"));
        let agent_url = raw.parse("agent_url", must_be_url, url)?.unwrap_or_else(|| base_url.clone());
        let checkout_url = raw.parse("checkout_url", must_be_url, url)?.unwrap_or_else(|| base_url.clone());
        let millis = "must be milliseconds from 1 to 600000";
        let days = "must be a whole number of days from 0 to 365";
        let count = "must be a whole number from 1 to 1000000";
        let settlement = Settlement::check(raw, mode)?;
        let must_be_networks = "must be networks like 10.0.0.0/8, separated by commas";
        let trusted_proxies =
            raw.parse("trusted_proxies", must_be_networks, parse_networks)?.unwrap_or_default();
        let connections = Connections::check(raw, mode, &trusted_proxies)?;
        let settings = Settings {
            mode,
            database: database(raw)?,
            listen,
            brand: Brand::check(raw, mode, &checkout_url)?,
            webhooks: webhooks::check(raw, mode, [&base_url, &agent_url, &checkout_url])?,
            base_url,
            agent_url,
            checkout_url,
            secret: raw.parse("secret", "must have at least 32 characters", |text| {
                (text.len() >= 32).then(|| SecretString::from(text))
            })?,
            trusted_proxies,
            metrics_listen: raw.parse("metrics_listen", "must be ADDRESS:PORT", |t| t.parse().ok())?,
            key_limit: rate(raw, "rate_limit", "rate_burst")?,
            ip_limit: rate(raw, "ip_rate_limit", "ip_rate_burst")?,
            answer_within_ms: raw.require("answer_within_ms", millis, whole(1, 600_000))?,
            supplier_timeout_ms: raw.require("supplier_timeout_ms", millis, whole(1, 600_000))?,
            second_purchases_per_hour: raw.require(
                "second_purchases_per_hour",
                "must be a whole number from 0 to 1000",
                whole(0, 1_000),
            )?,
            supplier_rate_warn_days: raw.require("supplier_rate_warn_days", days, whole(0, 365))?,
            supplier_rate_stop_days: raw.require("supplier_rate_stop_days", days, whole(0, 365))?,
            low_balance: raw
                .require("low_balance_usd", "must be an amount of USD", |t| Usd::parse(t).ok())?,
            owners_need_second_factor: raw.require(
                "owners_need_second_factor",
                "must be true or false",
                flag,
            )?,
            sandbox_plans: raw.require("sandbox_plans", "must be from 0 to 1000000", whole(0, 1_000_000))?
                as usize,
            sandbox_journal: raw.parse("sandbox_journal", "must be a path", |t| Some(PathBuf::from(t)))?,
            sandbox_reading_s: raw.require(
                "sandbox_reading_s",
                "must be a whole number from 0 to 86400",
                whole(0, 86_400),
            )? as u64,
            reading_rhythm: rhythm(raw)?,
            demo_file: PathBuf::from("simgate-demo.env"),
            knowledge_dir: raw.parse("knowledge_dir", "must be a folder", |t| Some(PathBuf::from(t)))?,
            support_contact: raw.parse(
                "support_contact",
                "must have 1 to 200 printable characters",
                |t| (t.chars().count() <= 200 && !t.chars().any(char::is_control)).then(|| t.to_string()),
            )?,
            security_contact: raw.parse(
                "security_contact",
                "must be an email address or an https URL",
                security_contact,
            )?,
            connections,
            write_queue: raw.require("write_queue", count, whole(1, 1_000_000))? as usize,
            sqlite_log_mb: raw.require(
                "sqlite_log_mb",
                "must be a whole number, at most 1024",
                whole(0, 1_024),
            )? as u64,
            job_patience_s: raw.require(
                "job_patience_s",
                "must be a whole number from 1 to 86400",
                whole(1, 86_400),
            )? as u64,
            // Late payments, suspicious ones and copies of the database reach back some weeks.
            keep_unpaid_days: raw.require(
                "keep_unpaid_days",
                "must be a whole number from 30 to 3650",
                whole(30, 3_650),
            )?,
            log_api_calls: raw.require("log_api_calls", "must be true or false", flag)?,
            log: raw.text("log").to_string(),
            log_json: raw.require("log_format", "must be text or json", |text| match text {
                "text" => Some(false),
                "json" => Some(true),
                _ => None,
            })?,
            logins: Logins::check(raw)?,
            x402: X402::check(raw, mode, &settlement)?,
            mcp: Mcp::check(raw)?,
            suppliers: suppliers::check(raw, mode),
            settlement,
        };
        let public_sandbox = raw.require("public_sandbox", "must be true or false", flag)?;
        if mode == Mode::Sandbox && !listen.ip().is_loopback() && !public_sandbox {
            raw.does_not_fit(format!(
                "listen ({}) is {listen}: a sandbox sells for nothing, so it listens on loopback only; \
                 --public-sandbox allows this address",
                raw.source("listen")
            ));
        }
        if settings.supplier_rate_warn_days > settings.supplier_rate_stop_days {
            raw.does_not_fit(
                "supplier_rate_warn_days is more than supplier_rate_stop_days: no warning would come",
            );
        }
        if mode == Mode::Live {
            live::require_all(raw);
        }
        Ok(settings)
    }

    /// Whether `/metrics` may be served beside the API: not when a proxy on this machine lets the world reach loopback.
    pub fn metrics_on_main(&self) -> bool {
        let is_private = |url: &&String| Host::of_url(url).is_some_and(|host| host.is_loopback());
        let urls = [&self.base_url, &self.agent_url, &self.checkout_url];
        self.listen.ip().is_loopback() && self.trusted_proxies.is_empty() && urls.iter().all(is_private)
    }

    pub fn secret_text(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.expose_secret())
    }
}

fn rhythm(raw: &Raw) -> Result<Rhythm, ConfigError> {
    let allowed = "must be a whole number from 60 to 2592000";
    Ok(Rhythm {
        active_s: raw.require("reading_active_s", allowed, whole(60, 2_592_000))?,
        idle_s: raw.require("reading_idle_s", allowed, whole(60, 2_592_000))?,
    })
}

/// `10.0.0.0/8,192.0.2.7`: networks or single addresses.
pub fn parse_networks(text: &str) -> Option<Vec<IpNet>> {
    let parse =
        |part: &str| part.parse::<IpNet>().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from));
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        flags: &[(&str, &str)],
        env: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<Settings, ConfigError> {
        let flags = flags.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let env = env.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Settings::check(&Raw::collect(&flags, env, file.map(|text| ("simgate.toml", text)))?)
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let file = Some("listen = \"127.0.0.1:1\"\nanswer_within_ms = 10\nlog = \"warn\"");
        let env = [("SIMGATE_LISTEN", "127.0.0.1:2"), ("SIMGATE_ANSWER_WITHIN_MS", "20"), ("HOME", "x")];
        let settings = load(&[("listen", "127.0.0.1:3")], &env, file).unwrap();
        assert_eq!((settings.listen.port(), settings.answer_within_ms), (3, 20));
        assert_eq!(settings.log, "warn");
        assert_eq!(settings.checkout_url, "http://127.0.0.1:3");
    }

    #[test]
    fn mistakes_are_named_with_their_source() {
        for (flags, env, file, expected) in [
            (
                vec![],
                vec![("SIMGATE_LISTN", "x")],
                None,
                "SIMGATE_LISTN in the environment is not a setting of simgate; did you mean SIMGATE_LISTEN?",
            ),
            (
                vec![],
                vec![],
                Some("# mine\nlisen = 1"),
                "simgate.toml, line 2 has an unknown setting \"lisen\"; did you mean listen?",
            ),
            (
                vec![],
                vec![],
                Some("[shop]\nname = 1"),
                "simgate.toml, line 1 has an unknown setting \"shop\"",
            ),
            (
                vec![],
                vec![],
                Some("\nmode = \"sandbox\"\nrate_burst = 5\nrate_limit = -1\n"),
                "rate_limit (rate_limit in simgate.toml, line 4) is \"-1\": must be a whole number from 0 to 1000000",
            ),
            (
                vec![("rate_limit", "-1")],
                vec![],
                None,
                "rate_limit (--rate-limit) is \"-1\": must be a whole number from 0 to 1000000",
            ),
            (
                vec![],
                vec![("SIMGATE_SECRET", "short")],
                None,
                "secret (SIMGATE_SECRET in the environment) is \"(hidden)\": must have at least 32 characters",
            ),
        ] {
            let error = load(&flags, &env, file).err().expect(expected);
            assert_eq!(error.0, expected);
        }
        let error = load(&[("listen", "0.0.0.0:80")], &[], None).err().expect("a public sandbox is refused");
        assert!(error.0.contains("--public-sandbox"));
    }

    #[test]
    fn a_file_that_is_no_toml_is_told_by_its_line() {
        for (text, told) in [
            (
                "log = \"warn\"\nlisten = 127.0.0.1:1\n",
                "line 2 is not valid TOML: text must stand between quotes: listen = \"127.0.0.1:1\"",
            ),
            (
                "secret = hush-hush # ours\n",
                "line 1 is not valid TOML: text must stand between quotes: secret = \"…\"",
            ),
        ] {
            let error = load(&[], &[], Some(text)).err().expect("no TOML");
            assert!(
                error.0.contains(&format!("simgate.toml, {told}")) && !error.0.contains("hush"),
                "{}",
                error.0
            );
        }
        let error = load(&[], &[], Some("\nlisten = \"x")).err().expect("no TOML");
        assert!(error.0.starts_with("simgate.toml, line 2 is not valid TOML: "), "{}", error.0);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let file = Some("mode = sandbox\nlisen = 1\nsmtp_user = \"me\"\nrate_limit = \"\"\n");
        let env = [
            ("SIMGATE_LISTN", "x"),
            ("SIMGATE_BASE_RPC", "https://node.example"),
            ("SIMGATE_SECRET", "hush"),
        ];
        let flags = [
            ("rate_burst", "0"),
            ("database_url", "mysql://x"),
            ("x402_settler", "maybe"),
            ("evm_xpub", "hush"),
        ];
        let all = load(&flags, &env, file).err().expect("much is wrong").0;
        let named = [
            "mode = \"sandbox\"",
            "\"lisen\"",
            "SIMGATE_LISTN",
            "secret (",
            "rate_limit (",
            "rate_burst (",
            "database_url (",
            "x402_settler (",
            "evm_xpub (",
        ];
        assert!(named.iter().all(|name| all.contains(name)) && !all.contains("hush"), "{all}");
        assert_eq!(all.lines().count(), named.len() + 1, "one line for each: {all}");
        // What does not fit together is told when each value is right by itself.
        let all = load(&[], &env[1..2], Some("smtp_user = \"me\"")).err().expect("two do not fit").0;
        assert!(all.contains("base_rpc (") && all.contains("smtp_user") && all.lines().count() == 4, "{all}");
    }

    #[test]
    fn live_tells_at_once_all_that_it_lacks() {
        let lacks = |flags: &[(&str, &str)]| {
            let flags = [&[("mode", "live")], flags].concat();
            load(&flags, &[], None).err().expect("live lacks something").0
        };
        let all = lacks(&[]);
        let lines = [
            "secret = ",
            "evm_xpub = ",
            "tron_xpub = ",
            "smtp_host = ",
            "mail_from = ",
            "base_rpc = ",
            "[supplier.",
        ];
        assert!(lines.iter().all(|line| all.contains(line)), "{all}");
        let fewer =
            lacks(&[("secret", "x"), ("smtp_host", "mail.example"), ("polygon_rpc", "https://one.example")]);
        let left: Vec<&str> = lines.into_iter().filter(|line| fewer.contains(line)).collect();
        assert_eq!(left, ["evm_xpub = ", "tron_xpub = ", "mail_from = ", "[supplier."], "{fewer}");
    }

    #[test]
    fn metrics_are_not_for_the_world() {
        for (flags, beside) in [
            (vec![], true),
            (vec![("listen", "[::1]:80")], true),
            (vec![("base_url", "http://localhost:8402")], true),
            (vec![("trusted_proxies", "127.0.0.1")], false),
            (vec![("base_url", "https://api.shop.example")], false),
            (vec![("agent_url", "https://agents.shop.example")], false),
            (vec![("checkout_url", "http://192.0.2.7")], false),
            (vec![("base_url", "https://localhost.shop.example")], false),
            (
                vec![("listen", "0.0.0.0:80"), ("public_sandbox", "true"), ("base_url", "http://localhost")],
                false,
            ),
        ] {
            assert_eq!(load(&flags, &[], None).unwrap().metrics_on_main(), beside, "{flags:?}");
        }
    }

    #[test]
    fn a_wrong_database_url_is_told_without_its_password() {
        for (url, told) in [
            ("mysql://me:hush@db.example/shop", "must be sqlite:PATH or postgres://"),
            ("postgres:me:hush@db.example/shop", "must be sqlite:PATH or postgres://"),
            ("postgres://me:hush@db.example/shop?sslmode=on", "sslmode is \"on\""),
            ("postgres://me:hush@db.example:port/shop", "port"),
            ("sqlite:", "must be sqlite:PATH"),
        ] {
            let error = load(&[("database_url", url)], &[], None).err().expect(url);
            assert!(error.0.starts_with("database_url (--database-url): "), "{}", error.0);
            assert!(error.0.contains(told) && !error.0.contains("hush"), "{}", error.0);
        }
    }
}
