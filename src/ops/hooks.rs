//! Messages that suppliers send us. They come to paths that nobody can guess, and they are never believed: a message about
//! a sale that is under way only makes us ask the supplier earlier, and all of them together take at most a quarter of
//! its rate. One about a profile only makes its meter due now: the job that reads meters keeps to a quarter of the rate
//! too, and to the pace of one profile.

use std::time::Duration;

use metrics::counter;
use quick_cache::sync::Cache;

use super::{LANE, usage};
use crate::app::App;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{bought, suppliers};
use crate::supplier::Heard;

const PURPOSE: &str = "supplier messages";
/// How many messages are remembered, so that one that comes twice is heard once.
const REMEMBERED: usize = 10_000;
/// A longer id of a message is not remembered.
const LONGEST_ID: usize = 200;
/// The part of a supplier's rate that its messages may take.
const SHARE: u32 = 4;
/// Later than this recovery asks by itself.
const LATEST_MS: i64 = 30_000;

/// The messages that were heard lately, by supplier and their own ids.
pub struct Messages(Cache<(&'static str, String), ()>);

impl Default for Messages {
    fn default() -> Messages {
        Messages(Cache::new(REMEMBERED))
    }
}

/// The address that a supplier is to send its messages to.
pub fn address(app: &App, supplier: &str) -> String {
    format!("{}/hooks/{}", app.settings.base_url, app.vault.links.seal(PURPOSE, supplier))
}

/// Takes a message. Nothing in it is believed but what to ask about. `header` reads one of those that came with it.
pub async fn receive<'a>(
    app: &App,
    path: &str,
    body: &[u8],
    header: impl Fn(&str) -> Option<&'a str>,
) -> Result<()> {
    let name = app.vault.links.open(PURPOSE, path);
    let supplier = name.and_then(|name| app.suppliers.get(name.as_str())).ok_or(Refusal::NotFound)?;
    let name = supplier.name();
    let heard = supplier.hear(body, supplier.signature_header().and_then(header));
    counter!("simgate_supplier_messages_total", "supplier" => name, "outcome" => heard.outcome())
        .increment(1);
    match heard {
        // As for a path that leads nowhere: nobody learns that this one does not.
        Heard::Forged => Err(Refusal::NotFound.into()),
        Heard::Nothing => Ok(()),
        Heard::About { message, number, iccid } => {
            if let Some(message) = message.filter(|message| message.len() <= LONGEST_ID)
                && app.messages.heard_before(name, message)
            {
                return Ok(());
            }
            if let Some(number) = number {
                ask_earlier(app, name, number).await?;
            }
            match iccid {
                Some(iccid) => usage::read_earlier(app, supplier.as_ref(), iccid).await,
                None => Ok(()),
            }
        }
    }
}

impl Messages {
    /// Whether this message was heard before; from now on it was.
    fn heard_before(&self, supplier: &'static str, message: String) -> bool {
        let key = (supplier, message);
        let known = self.0.get(&key).is_some();
        if !known {
            self.0.insert(key, ());
        }
        known
    }
}

/// Moves the next question about a sale under way to the next turn of messages. Many messages about one sale make one
/// question.
async fn ask_earlier(app: &App, supplier: &'static str, number: String) -> Result<()> {
    let Some(terms) = app.settings.supplier(supplier) else {
        return Ok(());
    };
    let step = Duration::from_secs_f64(f64::from(SHARE) / terms.rate).as_micros() as i64;
    let now = app.now();
    let latest = now.plus_millis(LATEST_MS);
    let ask = move |tx: &mut Tx| {
        if !bought::is_under_way(tx, supplier, &number, now)? {
            return Ok(());
        }
        match suppliers::message_turn(tx, supplier, now, step, latest)? {
            Some(turn) => bought::ask_earlier(tx, supplier, &number, turn),
            None => Ok(()),
        }
    };
    app.store.write(LANE, ask).await
}
