//! Magic links: which wallet a token tops up, found by the token's hash.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = "INSERT INTO magic_links (hash, account, minimum, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    BY_HASH = text!("SELECT ", MagicLink::COLUMNS, " FROM magic_links WHERE hash = ?1 AND expires_at > ?2");
    OPENED = "UPDATE magic_links SET invoice = ?2 WHERE hash = ?1";
    FORGET = "DELETE FROM magic_links WHERE hash IN (SELECT hash FROM magic_links WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2)";
}

pub struct MagicLink {
    pub account: AccountNo,
    pub minimum: Usd,
    /// The invoice that was opened by it last.
    pub invoice: Option<InvoiceId>,
    pub expires_at: Time,
}

columns! { MagicLink { account, minimum, invoice, expires_at } }

pub fn create(tx: &mut Tx, hash: &[u8; 32], link: &MagicLink, now: Time) -> Result<()> {
    tx.execute(INSERT, params![hash, link.account, link.minimum, now, link.expires_at]).map(drop)
}

/// A link that is still valid.
pub fn find(tx: &mut Tx, hash: &[u8; 32], now: Time) -> Result<Option<MagicLink>> {
    tx.opt(BY_HASH, params![hash, now])
}

pub fn opened(tx: &mut Tx, hash: &[u8; 32], invoice: &InvoiceId) -> Result<()> {
    tx.execute(OPENED, params![hash, invoice]).map(drop)
}

/// Forgets links that ended before then. True when there may be more.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<bool> {
    Ok(tx.execute(FORGET, params![before, most])? >= most.unsigned_abs())
}
