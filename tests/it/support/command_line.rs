//! The operator's commands as people and programs run them: the binary itself, on a gateway's database.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use simgate::store::Location;

use crate::support::harness::Gateway;

pub struct Told {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Told {
    /// The one document on stdout of a run that must end like this.
    #[track_caller]
    pub fn document(&self, exit: i32) -> Value {
        assert_eq!(self.exit, exit, "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// A refusal for programs: what code, and that the sentence is on stderr too.
    #[track_caller]
    pub fn refused(&self, exit: i32, code: &str) -> String {
        let document = self.document(exit);
        assert_eq!((&document["success"], &document["code"]), (&json!(false), &json!(code)), "{document}");
        let sentence = document["error"].as_str().unwrap().to_string();
        assert!(self.stderr.contains(sentence.lines().next().unwrap()), "{sentence}: {}", self.stderr);
        sentence
    }
}

pub fn database_url(gateway: &Gateway) -> String {
    match &gateway.app.settings.database {
        Location::Sqlite(path) => format!("sqlite:{}", path.display()),
        Location::Postgres(url) => url.clone(),
    }
}

pub fn run(url: &str, dir: &std::path::Path, env: &[(&str, &str)], args: &[&str]) -> Told {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simgate"));
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("USER", "tester")
        .env("SIMGATE_DATABASE_URL", url);
    command.envs(env.iter().copied()).current_dir(dir).stdin(Stdio::null()).args(args);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Told { exit: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the binary against the gateway's database.
pub fn simgate(gateway: &Gateway, args: &[&str]) -> Told {
    run(&database_url(gateway), &gateway.dir, &[], args)
}

/// A command that must succeed, as a program runs it; people's output must not be empty either.
#[track_caller]
pub fn ok(gateway: &Gateway, line: &str) -> Value {
    let args: Vec<&str> = line.split('|').flat_map(split).collect();
    simgate(gateway, &[args.as_slice(), &["--json"]].concat()).document(0)
}

/// Words of a command line; `'several words'` are one.
pub fn split(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (n, part) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}
