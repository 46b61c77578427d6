//! Signatures in stories: made for one checkout, shown for any, and brought onto the chain by whoever likes.

use alloy_primitives::hex;
use simgate::chain::address;
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency};
use simgate::ops::x402::{self, Tender};
use simgate::store::authorizations;
use simgate::store::checkouts;
use simgate::store::tx::Tx;

use super::chain::Move;
use super::model::Claimed;
use super::play::{Play, Told, index, told};
use super::story::{Step, Sum, To, Valid, Who};
use super::world::NETWORKS;
use crate::support::payer::{Payer, Wish};

pub struct Signature {
    payer: u8,
    wish: Wish,
    /// It is for another token of the same kind, whose nonces are its own.
    other_token: bool,
    valid: Valid,
}

impl Signature {
    fn receiver(&self) -> String {
        address::text(AddressKind::Evm, &self.wish.permission.to)
    }

    fn amount(&self) -> Usd {
        Usd::from_micros(self.wish.permission.value as i64)
    }

    fn nonce(&self) -> String {
        hex::encode_prefixed(self.wish.permission.nonce)
    }

    fn is_valid(&self, seconds: u64) -> bool {
        self.wish.permission.valid_after < seconds && seconds < self.wish.permission.valid_before
    }
}

impl Play<'_> {
    pub async fn take_signed(&mut self, step: &Step) -> Told {
        match step {
            Step::Sign { signature, at, payer, nonce, sum, to, valid, other_token } => {
                let offer = match self.offer(*at).await? {
                    Some(offer) => offer,
                    None => return Ok(()),
                };
                // Nonces of other stories are other nonces.
                let nonce = self.world.stories * 16 + nonce;
                let mut wish = Payer::new(*payer).wish(&offer, nonce);
                let now = self.seconds();
                (wish.permission.valid_after, wish.permission.valid_before) = match valid {
                    Valid::Now => (0, now + 300),
                    Valid::Over => (0, now - 1),
                    Valid::NotYet => (now + 200, now + 300),
                };
                wish.permission.to = match to {
                    To::Asked => wish.permission.to,
                    To::Bobs => match self.bobs_address().await? {
                        Some(address) => address::bytes(AddressKind::Evm, &address).unwrap(),
                        None => return Ok(()),
                    },
                    To::Stranger => [9; 20],
                };
                let exact = Usd::from_micros(wish.permission.value as i64);
                if let Some(asked) = self.asked(*at).filter(|_| *sum != Sum::Exact) {
                    wish.permission.value = self.amount(asked, exact, *sum).micros().unsigned_abs();
                }
                let (payer, other_token, valid) = (*payer, *other_token, *valid);
                self.signatures[*signature] = Some(Signature { payer, wish, other_token, valid });
                Ok(())
            }
            Step::Mine { signature } => {
                self.mine(*signature);
                Ok(())
            }
            Step::Claim { signature, at, who } => self.claim(*signature, *at, *who).await,
            _ => unreachable!("no step with a signature"),
        }
    }

    fn seconds(&self) -> u64 {
        self.world.now().micros().unsigned_abs() / 1_000_000
    }

    /// What the gateway asks to be signed for a checkout.
    async fn offer(&self, at: usize) -> Result<Option<serde_json::Value>, String> {
        let Some(asked) = self.asked(at) else { return Ok(None) };
        let id = asked.id.clone();
        let found =
            self.world.app.store.read(move |tx: &mut Tx| checkouts::by_id(tx, &id)).await.map_err(told)?;
        let checkout = found.ok_or("a checkout is gone")?;
        let offer = x402::offer(&self.world.app, &checkout, "https://example.com".into(), "pay");
        Ok(offer.map(|offer| serde_json::to_value(&offer.accepts[0]).unwrap()))
    }

    /// The token moves the money, if it has not seen the nonce and the time is right.
    fn mine(&mut self, signature: usize) {
        let Some(signed) = &self.signatures[signature] else { return };
        let chain = &self.world.chains[0];
        let sender = Payer::new(signed.payer).address;
        let used = !signed.other_token && chain.is_used(&sender, &signed.nonce());
        if used || !signed.is_valid(self.seconds()) {
            return;
        }
        let currency = if signed.other_token { Currency::Usdt } else { Currency::Usdc };
        let (recipient, amount, nonce) = (signed.receiver(), signed.amount(), Some(signed.nonce()));
        chain.send(vec![Move { currency, sender, recipient, amount, nonce }], self.world.now());
    }

    async fn claim(&mut self, signature: usize, at: usize, who: Who) -> Told {
        let Some(account) = index(who) else { return Ok(()) };
        let (Some(offer), Some(checkout)) = (self.offer(at).await?, self.places[at]) else { return Ok(()) };
        let Some(signed) = &self.signatures[signature] else { return Ok(()) };
        let (payer, nonce) = (Payer::new(signed.payer), signed.nonce());
        let wish = Wish { accepted: offer, ..signed.wish.clone() };
        let header = payer.sign(&wish);
        let asked = &self.model.checkouts[checkout];
        let (app, id) = (self.world.app.clone(), asked.id.clone());
        let sold = app.store.read(move |tx: &mut Tx| checkouts::by_id(tx, &id)).await.map_err(told)?;
        let package_code = sold.ok_or("a checkout is gone")?.package_code;
        let known = self.model.claimed.iter().any(|one| one.payer == payer.address && one.nonce == nonce);
        // Whether it pays exactly what this checkout of this account asks for, and was made for now.
        let pays = asked.owner == Some(account)
            && asked.offer.as_ref() == Some(&(signed.receiver(), signed.amount()))
            && signed.valid == Valid::Now
            && !signed.other_token;
        let must = pays
            && !known
            && !asked.ended
            && self.world.now() < asked.expires
            && signed.is_valid(self.seconds() + 10)
            && !self.model.claimed.iter().any(|one| one.checkout == checkout)
            && !self.model.misses(account)
            && !self.model.is_seen(&payer.address, &nonce)
            && !self.world.chains[0].is_used(&payer.address, &nonce);
        let tender = Tender {
            account: self.accounts[account],
            package_code: &package_code,
            esim_order: None,
            reference: None,
            header: header.as_bytes(),
            field: "PAYMENT-SIGNATURE",
        };
        let answer = x402::pay(&app, tender).await;
        let (name, read) = (payer.address.clone(), nonce.clone());
        let found = app
            .store
            .read(move |tx: &mut Tx| authorizations::by_nonce(tx, NETWORKS[0], &name, &read))
            .await
            .map_err(told)?;
        let taken = found.into_iter().next().filter(|_| !known);
        if let Some(taken) = &taken {
            if taken.invoice != asked.id {
                return Err(format!("a signature for {} was taken for {}", asked.id, taken.invoice));
            }
            if !pays {
                return Err(format!(
                    "{who:?}'s checkout {at} took signature {signature}, which does not pay it"
                ));
            }
            let (receiver, amount) = (signed.receiver(), signed.amount());
            self.model.claimed.push(Claimed { payer: payer.address, nonce, checkout, receiver, amount });
        } else if must {
            let why = answer.err().map(told).unwrap_or_else(|| "an answer without a claim".into());
            return Err(format!("a good signature was not taken: {why}"));
        }
        Ok(())
    }
}
