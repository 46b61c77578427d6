//! Settings on the command line: every entry of `config::specs` is an option of every command. Also the
//! `config` command, which shows what came of flags, environment and file.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Arg, ArgMatches, Command};

use super::failure::Failure;
use super::output::{Record, Table, cell};
use crate::config::{Raw, Settings, Spec, specs};

const DEFAULT_FILE: &str = "simgate.toml";

/// Puts every setting on every command. Only the help of `simgate serve` lists them: elsewhere they would bury what
/// the command is about.
pub fn on(command: Command) -> Command {
    let listed = command.get_name() == "serve";
    let options = specs().map(|spec| option(spec).hide(!listed));
    command.args(options).mut_subcommands(on)
}

fn option(spec: &'static Spec) -> Arg {
    let default =
        if spec.default.is_empty() { String::new() } else { format!(" [default: {}]", spec.default) };
    let variable = spec.name.to_uppercase();
    let option = Arg::new(spec.name)
        .long(spec.name.replace('_', "-"))
        .help(format!("{} [env: SIMGATE_{variable}]{default}", spec.help))
        .help_heading("Settings")
        .value_name("VALUE")
        .allow_negative_numbers(true)
        .global(true);
    if matches!(spec.default, "true" | "false") {
        // With `=` only: a bare word after the option is the command.
        return option.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    option
}

/// Everything that was set, by flag, environment or file.
pub fn collect(matches: &ArgMatches, file: Option<&Path>) -> Result<Raw, Failure> {
    let given = |spec: &Spec| {
        let value = matches.get_one::<String>(spec.name)?;
        Some((spec.name.to_string(), value.clone()))
    };
    let flags: BTreeMap<String, String> = specs().filter_map(given).collect();
    let env = std::env::vars_os()
        .map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()));
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let message = format!("{} cannot be read: {error}", path.display());
            return Err(Failure { exit: 2, code: "INVALID_SETTINGS", message });
        }
    };
    let shown = path.display().to_string();
    Ok(Raw::collect(&flags, env, text.as_deref().map(|text| (shown.as_str(), text)))?)
}

/// Commands log only warnings unless they are told what to log.
pub fn quiet_log_filter<'a>(raw: &Raw, settings: &'a Settings) -> &'a str {
    let untouched = raw.shown().iter().any(|(name, _, source)| name == "log" && source == "default");
    if untouched { "warn" } else { &settings.log }
}

/// The database as it may be shown: without a password.
pub fn database(raw: &Raw) -> String {
    let mut all = raw.shown().into_iter();
    all.find(|(name, ..)| name == "database_url").map(|(_, value, _)| value).unwrap_or_default()
}

/// Every setting with its effective value and where it came from.
pub fn show(raw: &Raw, settings: &Settings) -> Record {
    let rows = raw.shown().into_iter().map(|(name, value, source)| {
        let value = match name.as_str() {
            "base_url" => settings.base_url.clone(),
            "agent_url" => settings.agent_url.clone(),
            "checkout_url" => settings.checkout_url.clone(),
            _ => value,
        };
        [cell(name), cell(Some(value).filter(|value| !value.is_empty())), cell(source)]
    });
    Record::new().with("settings", Table::new(["name", "value", "source"], rows))
}
