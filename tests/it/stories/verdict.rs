//! The end of a story: everybody is honest again, everything becomes final, and then every wallet, every debt, every
//! checkout and every transfer must be what the model says, and the books must obey their laws.

use simgate::domain::checkout::Stage;
use simgate::domain::money::Usd;
use simgate::domain::order::OrderStatus;
use simgate::domain::transfer::TransferState;
use simgate::ops::checkout::progress;
use simgate::ops::{ledger, operator};
use simgate::store::tx::Tx;
use simgate::store::{debts, transfers};
use simgate::supplier::sim::SupplierMode;

use super::chain::{CONFIRMATIONS, Mood as Nodes};
use super::model::{Booked, DUST, State};
use super::play::{Play, Told, told};
use super::story::Step;
use super::world::NETWORKS;

impl Play<'_> {
    pub async fn end(&mut self) -> Told {
        self.take(&Step::Supplier(SupplierMode::Ok)).await?;
        for network in 0..NETWORKS.len() {
            self.world.chains[network].behave(Nodes::Honest);
            for _ in 0..2 {
                self.world.chains[network].mine(CONFIRMATIONS as usize, self.world.now());
                self.look(network).await;
            }
        }
        self.recover().await;
        self.check_transfers().await?;
        self.check_checkouts().await?;
        self.check_purchases().await?;
        self.check_accounts().await?;
        let verdict = ledger::verify(&self.world.app).await.map_err(told)?;
        match verdict.breaches.first() {
            Some(breach) => Err(format!("{}: {} is off by {}", breach.law, breach.row, breach.off_by)),
            None => Ok(()),
        }
    }

    async fn check_transfers(&self) -> Told {
        for transfer in &self.model.transfers {
            let id = transfer.facts.id.clone();
            let read = move |tx: &mut Tx| Ok((transfers::by_id(tx, &id)?, debts::of_transfer(tx, &id)?));
            let (found, debt) = self.world.app.store.read(read).await.map_err(told)?;
            let (facts, name) =
                (&transfer.facts, format!("{} of {}", transfer.facts.id, transfer.facts.amount));
            let Some(found) = found else {
                // Dust need not be kept.
                if facts.amount < DUST && self.model.house.contains(&facts.recipient) {
                    continue;
                }
                return Err(format!("{name} is not on record"));
            };
            let fits = match transfer.booked {
                Some(Booked::ToOwner) => found.state == TransferState::Credited,
                Some(Booked::Held) => matches!(found.state, TransferState::Held | TransferState::Assigned),
                Some(Booked::Unmatched) => found.state == TransferState::Unmatched,
                None => matches!(found.state, TransferState::Orphaned | TransferState::Reversed),
            };
            if !fits {
                return Err(format!("{name} is {:?}, and should be {:?}", found.state, transfer.booked));
            }
            if debt != transfer.debt {
                return Err(format!("{debt} is owed for {name}, and should be {}", transfer.debt));
            }
        }
        Ok(())
    }

    async fn check_checkouts(&self) -> Told {
        for (index, asked) in self.model.checkouts.iter().enumerate() {
            let found = progress::show(&self.world.app, &asked.id, None).await.map_err(told)?;
            let status = found.order.as_ref().map(|order| order.status);
            let state = asked.order.map(|order| self.model.orders[order].state);
            let fits = match (state, status) {
                (None, None) if asked.ended => found.stage == Stage::Failed,
                (None, None) => matches!(found.stage, Stage::PendingPayment | Stage::Expired),
                (Some(state), Some(status)) => is(state, status),
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !fits {
                let order = status.map(OrderStatus::as_str);
                let (stage, ended) = (found.stage, asked.ended);
                return Err(format!(
                    "checkout #{index} for {} is {stage:?} with order {order:?}, and should be {state:?} (ended: {ended})",
                    asked.amount
                ));
            }
            let owed = if asked.owner.is_none() { self.owed(index).await? } else { Usd::ZERO };
            if owed != asked.owed {
                return Err(format!("{owed} is owed to checkout #{index}, and should be {}", asked.owed));
            }
        }
        Ok(())
    }

    /// What wallets have bought.
    async fn check_purchases(&self) -> Told {
        for order in &self.model.orders {
            let Some(id) = &order.id else { continue };
            let found = operator::order(&self.world.app, id.as_str()).await.map_err(told)?.status;
            if !is(order.state, found) {
                return Err(format!("a purchase is {}, and should be {:?}", found.as_str(), order.state));
            }
        }
        Ok(())
    }

    async fn owed(&self, checkout: usize) -> Result<Usd, String> {
        let id = self.model.checkouts[checkout].id.clone();
        let read = move |tx: &mut Tx| simgate::store::guests::owed(tx, &id);
        self.world.app.store.read(read).await.map_err(told)
    }

    async fn check_accounts(&self) -> Told {
        for (index, account) in self.accounts.iter().enumerate() {
            let found = operator::account_by_no(&self.world.app, *account).await.map_err(told)?;
            let wallet = self.model.wallets[index];
            if found.balance != wallet {
                return Err(format!("wallet {index} holds {}, and should hold {wallet}", found.balance));
            }
            if self.model.debt_of(index).is_positive() && !found.suspended {
                return Err(format!("account {index} owes money and is not suspended"));
            }
            let has_cause = self.model.misses(index) || self.model.debt_of(index).is_positive();
            if index < 2 && found.suspended && !has_cause {
                return Err(format!("account {index} is suspended, and nothing of its is missing"));
            }
        }
        Ok(())
    }
}

fn is(state: State, status: OrderStatus) -> bool {
    status
        == match state {
            State::Waiting => OrderStatus::Provisioning,
            State::Delivered => OrderStatus::Fulfilled,
            State::Failed => OrderStatus::Failed,
            State::Cancelling(_) => OrderStatus::Cancelling,
            State::Cancelled => OrderStatus::Cancelled,
        }
}
