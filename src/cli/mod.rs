//! The commands. This file holds the list of them and the way from a command line to an exit code; each group
//! has a file of its own, which calls operations and shapes what is printed. No business is decided here.

mod account;
mod addresses;
mod args;
mod audit;
mod backup;
mod catalog;
mod completions;
mod coupon;
mod doctor;
mod failure;
mod find;
mod help;
mod key;
mod ledger;
mod listen;
mod mail;
mod order;
mod output;
mod partner;
mod payout;
mod price;
mod report;
mod restore;
mod serve;
mod settings;
mod supplier;
mod sweep;
mod text;
mod transfers;
mod twice;
mod user;
mod wallet;
mod webhook;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::runtime::Builder;

use self::failure::Failure;
use self::output::{Form, Record, Report};
use crate::app::App;
use crate::config::{Raw, Settings};
use crate::error::Error;
use crate::start::{self, Migrated, Role};
use crate::telemetry;

type Outcome = Result<Report, Failure>;

/// A wholesale eSIM gateway: one binary, prepaid wallets, an honest ledger
#[derive(Parser)]
#[command(name = "simgate", version)]
struct Cli {
    /// Print one JSON document instead of text
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    /// Read settings from this file instead of ./simgate.toml
    #[arg(long, global = true, value_name = "PATH", display_order = 901)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway (what plain `simgate` does)
    #[command(after_help = "Example: simgate serve --listen 127.0.0.1:9000
Every setting is an option, an environment variable (SIMGATE_LISTEN) or a line in ./simgate.toml.")]
    Serve,
    /// Set up a new database, or bring one to this program's schema
    #[command(after_help = "Example: simgate migrate
A new database also gets the supplier's plans and, in a sandbox, a demo partner, whose key is written to
./simgate-demo.env. `simgate serve` does all this too, when it starts.")]
    Migrate,
    /// Show the effective settings and where each came from
    #[command(after_help = "Example: simgate config --json")]
    Config(Form),
    /// Check settings, database, supplier and books, and say what to do
    #[command(after_help = "Example: simgate doctor")]
    Doctor(Form),
    Restore(restore::Restore),
    #[command(flatten)]
    Operation(Operation),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

/// The commands that need an open database.
#[derive(Subcommand)]
enum Operation {
    /// Partners: the companies that buy
    #[command(subcommand)]
    Partner(partner::Command),
    /// API keys of partners
    #[command(subcommand)]
    Key(key::Command),
    /// Users: people who signed in with an email
    #[command(subcommand)]
    User(user::Command),
    /// Mails that went out for orders
    #[command(subcommand)]
    Mail(mail::Command),
    /// Credit, debit and read wallets
    #[command(subcommand)]
    Wallet(wallet::Command),
    /// Where partners' events are sent to
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Look at orders, and help those that need a hand
    #[command(subcommand)]
    Order(order::Command),
    Find(find::Find),
    /// Who sells to us
    #[command(subcommand)]
    Supplier(supplier::Command),
    /// What is on sale
    #[command(subcommand)]
    Catalog(catalog::Command),
    /// Price lists: the rules that prices are made by
    #[command(subcommand)]
    Price(price::Command),
    /// Codes that take something off retail prices
    #[command(subcommand)]
    Coupon(coupon::Command),
    /// Figures: margin, trial balance, wallets
    #[command(subcommand)]
    Report(report::Command),
    /// The books
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// What operators did
    #[command(subcommand)]
    Audit(audit::Command),
    /// Money that came in and belongs to nobody
    #[command(subcommand)]
    Transfers(transfers::Command),
    /// Money paid out to partners
    #[command(subcommand)]
    Payout(payout::Command),
    /// Money moved from our addresses to the treasury
    #[command(subcommand)]
    Sweep(sweep::Command),
    /// The addresses that money comes to
    #[command(subcommand)]
    Addresses(addresses::Command),
    Backup(backup::Backup),
}

/// The whole command line with the settings on it.
fn command_line() -> clap::Command {
    help::on(settings::on(Cli::command()))
}

pub fn run(args: Vec<OsString>) -> ExitCode {
    let wants_json = args.iter().any(|arg| arg == "--json");
    let matches = match command_line().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return refuse_usage(&error, wants_json),
    };
    let format = match &matches {
        matches if wants_csv(matches) => Format::Csv,
        matches if matches.get_flag("json") => Format::Json,
        _ => Format::Text,
    };
    match execute(&matches) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) => {
            print(&match format {
                Format::Text => text::render(&report.record, text::terminal_width()),
                Format::Csv => text::csv(&report.record),
                Format::Json => document(&report.record),
            });
            if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            if matches!(format, Format::Json) {
                print(&document(&failure.document()));
            }
            ExitCode::from(failure.exit)
        }
    }
}

enum Format {
    Text,
    Csv,
    Json,
}

/// Only commands that list something know `--csv`; it stands on the last command of the line.
fn wants_csv(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => wants_csv(inner),
        None => matches!(matches.try_get_one::<bool>("csv"), Ok(Some(true))),
    }
}

/// Prints clap's own message about a command line it cannot read; help and version are no mistakes.
fn refuse_usage(error: &clap::Error, wants_json: bool) -> ExitCode {
    let rendered = error.to_string();
    if wants_json && !error.use_stderr() {
        let name = if error.kind() == ErrorKind::DisplayVersion { "version" } else { "help" };
        let text = rendered.trim().trim_start_matches("simgate ");
        print(&document(&Record::new().with(name, text)));
        return ExitCode::SUCCESS;
    }
    if wants_json {
        let sentence = rendered.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        print(&document(&Failure::usage(sentence).document()));
    }
    // If even this cannot be written, there is no way left to tell anyone.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

fn document(value: &impl serde::Serialize) -> String {
    match serde_json::to_string_pretty(value) {
        Ok(text) => text + "\n",
        Err(error) => format!("{{\"success\": false, \"code\": \"INTERNAL\", \"error\": \"{error}\"}}\n"),
    }
}

/// A reader that has gone (`simgate order list | head`) is no error.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Runs the command. `None`: there is nothing to print.
fn execute(matches: &ArgMatches) -> Result<Option<Report>, Failure> {
    let cli = Cli::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let command = cli.command.unwrap_or(Command::Serve);
    if let Command::Completions(completions) = &command {
        // Shells ask for these when they start, so wrong settings must not stop them.
        return Ok(Some(completions.run().into()));
    }
    let raw = settings::collect(matches, cli.config.as_deref())?;
    let settings = Settings::check(&raw)?;
    let filter = match command {
        Command::Serve => settings.log.as_str(),
        _ => settings::quiet_log_filter(&raw, &settings),
    };
    telemetry::init_logs(filter, settings.log_json);
    let report = match command {
        Command::Serve => return serve(settings, cli.json).map(|()| None),
        Command::Completions(completions) => completions.run().into(),
        Command::Config(_) => settings::show(&raw, &settings).into(),
        Command::Migrate => run_to_end(migrate(&raw, settings))?,
        Command::Doctor(_) => run_to_end(doctor::run(&raw, settings))?,
        Command::Restore(restore) => run_to_end(restore::run(settings, restore))?,
        Command::Operation(operation) => run_to_end(operate(settings, operation))?,
    };
    Ok(Some(report))
}

fn serve(settings: Settings, json: bool) -> Result<(), Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Error::fault)?;
    let greet = |greeting| {
        let record = serve::greeting(greeting);
        print(&if json { document(&record) } else { text::render(&record, text::terminal_width()) });
    };
    let served = runtime.block_on(start::serve(settings, greet));
    // Work that did not drain in time must not hold up the exit.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served.map_err(Failure::from)
}

fn run_to_end(command: impl Future<Output = Outcome>) -> Outcome {
    Builder::new_current_thread().enable_all().build().map_err(Error::fault)?.block_on(command)
}

async fn migrate(raw: &Raw, settings: Settings) -> Outcome {
    let Migrated { from, to, demo_file } = start::migrate(settings).await?;
    let demo_file = demo_file.map(|file| format!("./{}", file.display()));
    let remark = match (from, &demo_file) {
        (None, Some(file)) => format!("The database is set up; {file} has the key of its demo partner."),
        (None, None) => "The database is set up.".into(),
        (Some(from), _) if from == to => "The database had this schema already.".into(),
        (Some(from), _) => format!("The database was brought from schema {from} to {to}."),
    };
    let record = Record::new()
        .with("database", settings::database(raw))
        .with("migrated", from != Some(to))
        .with("schemaBefore", from.map(i64::from))
        .with("schema", i64::from(to))
        .with("demoFile", demo_file);
    Ok(record.remark(remark).into())
}

async fn operate(settings: Settings, operation: Operation) -> Outcome {
    let app = start::open(settings, Role::Command).await?;
    let actor = actor();
    let outcome = match operation {
        Operation::Partner(command) => partner::run(&app, &actor, command).await,
        Operation::User(command) => user::run(&app, &actor, command).await,
        Operation::Key(command) => key::run(&app, &actor, command).await,
        Operation::Mail(command) => mail::run(&app, &actor, command).await,
        Operation::Audit(command) => audit::run(&app, command).await,
        Operation::Wallet(command) => wallet::run(&app, &actor, command).await,
        Operation::Webhook(command) => webhook::run(&app, &actor, command).await,
        Operation::Order(command) => order::run(&app, &actor, command).await,
        Operation::Find(find) => find.run(&app).await,
        Operation::Supplier(command) => supplier::run(&app, &actor, command).await,
        Operation::Catalog(command) => catalog::run(&app, &actor, command).await,
        Operation::Price(command) => price::run(&app, &actor, command).await,
        Operation::Coupon(command) => coupon::run(&app, &actor, command).await,
        Operation::Report(command) => report::run(&app, command).await,
        Operation::Ledger(command) => ledger::run(&app, command).await,
        Operation::Transfers(command) => transfers::run(&app, &actor, command).await,
        Operation::Payout(command) => payout::run(&app, &actor, command).await,
        Operation::Sweep(command) => sweep::run(&app, &actor, command).await,
        Operation::Addresses(command) => addresses::run(&app, command).await,
        Operation::Backup(backup) => backup.run(&app, &actor).await,
    };
    close(&app).await;
    outcome
}

/// Waits for tasks that are still running, and flushes what was written.
async fn close(app: &App) {
    app.tasks.close();
    app.tasks.wait().await;
    app.store.close();
}

/// The actor that the audit log names.
fn actor() -> String {
    match std::env::var("USER") {
        Ok(user) if !user.is_empty() => format!("cli:{user}"),
        _ => "cli".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
    }

    #[test]
    fn settings_and_json_may_stand_anywhere() {
        for line in [
            "simgate --json --log-format json --public-sandbox partner list",
            "simgate partner --log-format json list --json --public-sandbox=true",
        ] {
            let matches = command_line().try_get_matches_from(line.split(' ')).unwrap();
            assert!(matches.get_flag("json"), "{line}");
            assert_eq!(matches.get_one::<String>("log_format").map(String::as_str), Some("json"), "{line}");
            assert_eq!(
                matches.get_one::<String>("public_sandbox").map(String::as_str),
                Some("true"),
                "{line}"
            );
        }
    }
}
