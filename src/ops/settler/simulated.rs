//! Settling in a sandbox: the token of a simulated chain makes the transfer at once, and the same one once only.

use super::{Round, arrived, permission};
use crate::domain::authorization::{Authorization, AuthorizationEvent};
use crate::error::{Error, Result};
use crate::ops::scan::Halt;
use crate::store::authorizations;
use crate::store::tx::Tx;
use crate::x402::settler::Place;
use crate::x402::simulated::SimToken;

impl Round<'_> {
    /// Writes down that the signature leaves us, and lets the token make its transfer. After a crash between the two the
    /// next round makes it.
    pub(super) async fn simulate(&self, authorization: &Authorization) -> Result<(), Halt> {
        let Place::Simulated(token) = &self.terminal.place else {
            return Err(Error::fault("a simulated settler with real nodes").into());
        };
        let (permission, seal) = permission(authorization)?;
        let signed = match token.check(&permission, &seal).await? {
            Ok(signed) => signed,
            Err(reason) => return Ok(self.would_fail(authorization, reason).await?),
        };
        let (sent, now) = (authorization.clone(), self.now);
        let write =
            move |tx: &mut Tx| authorizations::advance(tx, &sent, AuthorizationEvent::Sent, None, now);
        if self.app.store.finish(authorization.account.0, write).await? {
            token.transfer(signed).await?;
        }
        Ok(())
    }

    /// Books its transfer as soon as a block holds it; the scanner would find it a little later.
    pub(super) async fn look_for(&self, token: &SimToken, authorization: &Authorization) -> Result<(), Halt> {
        let (permission, _) = permission(authorization)?;
        arrived(self.app, self.terminal, &token.transaction_of(&permission), &self.tip).await
    }
}
