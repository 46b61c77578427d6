//! `simgate restore`: taking over a backup, in the order that keeps money safe, and the operator's confirmation.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::output::{Record, Table, cell};
use super::{Failure, Outcome, actor, close};
use crate::app::App;
use crate::config::Settings;
use crate::domain::time::Time;
use crate::ops::restore::{self, Adopted, Location, Sales, Unpacked};
use crate::start::{self, Role};

/// Take over a backup, and hold buying until you confirm it
///
/// Addresses that may have been given out since the backup are skipped. Stop every gateway first. SQLite: the backup becomes the database; with --force, an existing one is moved aside.
/// PostgreSQL: the database must be new and empty, and pg_restore must be installed; without it, run the command
/// that is printed and then `simgate restore --adopt`.
#[derive(Args)]
#[command(after_help = "Example: simgate restore /var/backups/simgate-2026-03-12.db --force")]
#[command(group(ArgGroup::new("what").args(["path", "adopt", "confirm"]).required(true)))]
pub struct Restore {
    /// What `simgate backup` wrote
    path: Option<PathBuf>,
    /// Move an existing SQLite database aside (it is never deleted)
    #[arg(long, conflicts_with_all = ["adopt", "confirm"])]
    force: bool,
    /// The database was restored by other means: do the rest
    #[arg(long)]
    adopt: bool,
    /// You have checked the restored database: let partners buy again
    #[arg(long)]
    confirm: bool,
}

pub async fn run(settings: Settings, restore: Restore) -> Outcome {
    match restore.path {
        Some(path) => whole(settings, path, restore.force).await,
        None if restore.adopt => Ok(adopt(settings).await?.into()),
        None => confirm(settings).await,
    }
}

async fn whole(settings: Settings, path: PathBuf, force: bool) -> Outcome {
    let backup = path.display().to_string();
    let target = settings.database.clone();
    match restore::unpack(&target, path, force).await? {
        Unpacked::Beside(beside) => {
            let unpacked = Settings { database: Location::Sqlite(beside.clone()), ..settings };
            let record = adopt(unpacked).await?.with("backup", backup);
            let Location::Sqlite(target) = target else {
                return Ok(record.into());
            };
            let aside = restore::put_in_place(&beside, &target).await?;
            let record = record.with("database", target.display().to_string());
            Ok(record.with("movedAside", aside.map(|path| path.display().to_string())).into())
        }
        Unpacked::InPlace => Ok(adopt(settings).await?.with("backup", backup).into()),
        Unpacked::RunYourself(command) => Err(Failure {
            exit: 1,
            code: "INTERNAL",
            message: format!(
                "pg_restore is not installed here; where it is, run: {command} - and then: simgate restore --adopt"
            ),
        }),
    }
}

/// Opens the database as a server does: a backup of an older version is brought to this one's schema.
async fn adopt(settings: Settings) -> Result<Record, Failure> {
    let app = start::open(settings, Role::Server).await?;
    let adopted = restore::adopt(&app, &actor()).await;
    let record = adopted.map(|adopted| shown(&app, adopted));
    close(&app).await;
    Ok(record?)
}

fn shown(app: &App, adopted: Adopted) -> Record {
    let skipped =
        adopted.skipped.iter().map(|part| [cell(part.kind.as_str()), cell(part.from), cell(part.to)]);
    let cursors = adopted.cursors.iter().map(|(network, cursor)| {
        [
            cell(network.as_str()),
            cell(cursor.scanned),
            cell(Some(cursor.scanned_time).filter(|at| *at > Time::from_micros(0))),
        ]
    });
    let (known, sales, untold) = match adopted.sales {
        Sales::Unknown(sales) => (true, sales, None),
        Sales::NotTold(why) => (false, Vec::new(), Some(why)),
    };
    let unknown = sales.iter().map(|sale| [cell(sale.order.to_string()), cell(sale.what.clone())]);
    let record = Record::new()
        .with("buyingOnHold", true)
        .with("restoredAt", app.now())
        .with("watchedAgain", adopted.watched as i64)
        .with("salesTold", known)
        .with("salesNotToldBecause", untold.clone())
        .with("skippedIndexes", Table::new(["kind", "from", "to"], skipped))
        .with("scansOnFrom", Table::new(["network", "block", "time"], cursors))
        .with("unknownSales", Table::new(["orderId", "sold"], unknown));
    let sales = match untold {
        Some(why) => format!("The supplier does not list its sales ({why}): compare its invoice with `simgate order list`."),
        None if sales.is_empty() => "The supplier has sold nothing that this database does not know.".into(),
        None => "The sales above are not in this database: their money and references are free again. Settle them with their partners.".into(),
    };
    record.remark(format!(
        "Start the gateway: it scans on from the blocks above and finds what was paid since. {sales}\n\
         Then look at `simgate transfers unmatched` and `simgate ledger verify --chain`, and let partners buy again with \
         `simgate restore --confirm`."
    ))
}

async fn confirm(settings: Settings) -> Outcome {
    let app = start::open(settings, Role::Command).await?;
    let confirmed = restore::confirm(&app, &actor()).await;
    close(&app).await;
    let record = Record::new().with("buyingOnHold", false);
    Ok(match confirmed? {
        true => record.remark("Buying is possible again, on every instance within a second."),
        false => record.remark("Buying was not on hold."),
    }
    .into())
}
