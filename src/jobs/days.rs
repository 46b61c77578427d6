//! Adds the lines of partners' statements to their days, and makes the sums that their months are read from.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::ops::accounts::month;
use crate::ops::days;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(2);
/// The pause while lines are left: other writes have their turn between two portions.
const SOON: Duration = Duration::from_millis(50);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    let (mut newest, mut pause) = (AccountNo(0), EVERY);
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        let look = async {
            newest = days::enlist(&app, newest).await?;
            let more = days::round(&app).await?;
            Ok(month::round(&app).await? || more)
        };
        let Some(round) = stop.run_until_cancelled(look).await else { break };
        pause = if matches!(round, Ok(true)) { SOON } else { EVERY };
        ended(round.map(drop), &lines, "statements cannot be added up");
    }
}
