//! Tells partners when their balance is low.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::ops::low_balance;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(2);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    let mut newest = AccountNo(0);
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let look = async {
            newest = low_balance::enlist(&app, newest).await?;
            low_balance::round(&app).await
        };
        let Some(round) = stop.run_until_cancelled(look).await else { break };
        ended(round, &lines, "low balances cannot be looked for");
    }
}
