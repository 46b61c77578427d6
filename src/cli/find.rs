//! `simgate find`: one text, whatever it is.

use clap::Args;

use super::output::Record;
use super::{Outcome, key, order, partner};
use crate::app::App;
use crate::ops::find;

/// Find partners and orders by whatever you have
#[derive(Args)]
pub struct Find {
    /// A partner id, email, order id, order number (SG…), ICCID or a partner's own reference
    text: String,
}

impl Find {
    pub async fn run(self, app: &App) -> Outcome {
        let found = find::find(app, &self.text).await?;
        let owners = key::owners(app).await?;
        let record = Record::new()
            .with("partners", partner::table(&found.accounts))
            .with("orders", order::table(&found.orders, &owners));
        Ok(record.into())
    }
}
