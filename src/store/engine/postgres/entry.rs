//! Connects to a server: tries its hosts one after the other, until one accepts us and can write. A standby is skipped,
//! and so is an outdated primary: one that came back after we had seen its successor.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Socket};

use super::super::tx::postgres_error;
use super::address::{Address, Spot, SslMode};
use super::tls;
use crate::error::{Error, Fault, FaultKind, Result};

const READ_ONLY: &str = "SHOW transaction_read_only";
/// A promotion begins a new timeline; the name of a log file begins with its number.
const LOG_FILE: &str = "SELECT pg_walfile_name(pg_current_wal_lsn())";

/// What we know of each database, by its URL.
static KNOWN: Mutex<BTreeMap<String, Known>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Default)]
struct Known {
    /// The host that accepted us last: it is tried first, so that a host that hangs is waited for only once.
    host: usize,
    /// The newest timeline seen.
    timeline: u32,
}

/// Reads or changes what is known of a database.
fn known<T>(url: &str, look: impl FnOnce(&mut Known) -> T) -> T {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    look(all.entry(url.to_string()).or_default())
}

pub type Entered = (Client, JoinHandle<()>);

/// Connects to the first host that can write.
pub async fn connect(url: &str, address: &Address) -> Result<Entered> {
    let mut refused = Vec::new();
    let last = known(url, |known| known.host);
    let mut order: Vec<(usize, &Spot)> = address.all().iter().enumerate().collect();
    order.sort_by_key(|(number, _)| *number != last);
    for (number, spot) in order {
        let within = address.connect_within();
        match tokio::time::timeout(within, enter(url, address, spot)).await {
            Ok(Ok(entered)) => {
                known(url, |known| known.host = number);
                return Ok(entered);
            }
            Ok(Err(Error::Fault(fault))) => refused.push(named(spot, fault)),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let what = format!("no connection within {} s", within.as_secs());
                refused.push(named(spot, Fault { what, kind: FaultKind::Disconnected }));
            }
        }
    }
    // While one of them may come back, trying again is worthwhile.
    let kinds = || refused.iter().map(|fault| fault.kind);
    let kind = kinds().find(|kind| *kind == FaultKind::Disconnected).or(kinds().next_back());
    let what: Vec<&str> = refused.iter().map(|fault| fault.what.as_str()).collect();
    Err(Error::Fault(Fault { what: what.join("; "), kind: kind.unwrap_or(FaultKind::Other) }))
}

fn named(spot: &Spot, fault: Fault) -> Fault {
    Fault { what: format!("{}: {}", spot.name(), fault.what), kind: fault.kind }
}

async fn enter(url: &str, address: &Address, spot: &Spot) -> Result<Entered> {
    let entered = match open(address, spot, spot.mode).await? {
        // As in libpq: a local server that fails at TLS, or does not want it, is asked without it.
        Err(error) if spot.mode == SslMode::Prefer && is_about_tls(&error) => {
            let in_clear = open(address, spot, SslMode::Disable).await?;
            in_clear.map_err(|_| told(&error))?
        }
        outcome => outcome.map_err(|error| told(&error))?,
    };
    require_writable(url, &entered.0).await?;
    Ok(entered)
}

/// The outer error is about our own files, the inner one about the server.
async fn open(
    address: &Address,
    spot: &Spot,
    mode: SslMode,
) -> Result<Result<Entered, tokio_postgres::Error>> {
    let mut config = address.config(spot);
    Ok(match mode {
        SslMode::Disable => {
            config.ssl_mode(tokio_postgres::config::SslMode::Disable);
            start(&config, NoTls).await
        }
        SslMode::Prefer => {
            config.ssl_mode(tokio_postgres::config::SslMode::Prefer);
            start(&config, tls::connector(address, mode).map_err(Error::settings)?).await
        }
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
            start(&config, tls::connector(address, mode).map_err(Error::settings)?).await
        }
    })
}

async fn start<T>(config: &tokio_postgres::Config, tls: T) -> Result<Entered, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // The client reports to its callers what ends the connection.
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok((client, driver))
}

/// Whether the same server might accept us unencrypted: the handshake failed, or it wants no encryption.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        None => cause_in_tls(error).is_some(),
    }
}

fn cause_in_tls(error: &tokio_postgres::Error) -> Option<&rustls::Error> {
    let cause = std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?;
    cause.get_ref()?.downcast_ref()
}

/// Why a server did not accept us, with advice about the encryption.
fn told(error: &tokio_postgres::Error) -> Error {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext, UnknownIssuer};
    let advice = match cause_in_tls(error) {
        Some(rustls::Error::InvalidCertificate(UnknownIssuer)) => {
            "sslrootcert must name a file with the certificate of the authority that signed the server's"
        }
        Some(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
            "the URL must name the host as its certificate does; sslmode=verify-ca does not check the name"
        }
        Some(_) => "see PostgreSQL in docs/operate.md",
        // The library gives no other sign of it.
        None if std::error::Error::source(error)
            .is_some_and(|cause| cause.to_string().contains("support TLS")) =>
        {
            "an unencrypted connection to another machine must be written in the URL: sslmode=disable"
        }
        None => return postgres_error(error),
    };
    Error::settings(format!("{}; {advice}", postgres_error(error)))
}

/// Refuses a session that cannot write: orders would fail on it while other hosts could take them.
async fn require_writable(url: &str, client: &Client) -> Result<()> {
    let lost = |what: String| Error::Fault(Fault { what, kind: FaultKind::Disconnected });
    if first_field(client, READ_ONLY).await? != Some("off".into()) {
        return Err(lost("it is read-only: a standby, or default_transaction_read_only is on".into()));
    }
    let file = match first_field(client, LOG_FILE).await {
        Ok(file) => file,
        // Some hosted servers have no log files to show.
        Err(error) if !error.is_lost() => None,
        Err(error) => return Err(error),
    };
    let timeline = file.and_then(|file| u32::from_str_radix(file.get(..8)?, 16).ok());
    let Some(timeline) = timeline else { return Ok(()) };
    let newest = known(url, |known| {
        known.timeline = known.timeline.max(timeline);
        known.timeline
    });
    if timeline < newest {
        return Err(lost(format!(
            "it is a primary of the past (timeline {timeline}, and {newest} was seen): make it a standby of the new one; if \
             it is meant, restart the gateway"
        )));
    }
    Ok(())
}

async fn first_field(client: &Client, text: &str) -> Result<Option<String>> {
    let messages = client.simple_query(text).await.map_err(|error| postgres_error(&error))?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
        _ => None,
    }))
}
