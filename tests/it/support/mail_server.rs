//! The mail server of the tests: `./test` starts one (`tests/blackbox/mailbox.py`) and says where it is in
//! SIMGATE_TEST_SMTP.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::environment::required;
use crate::support::harness::until;

pub type Settings = Vec<(&'static str, &'static str)>;

#[derive(Clone)]
pub struct MailServer(HashMap<String, String>);

impl MailServer {
    pub fn told() -> MailServer {
        let told = required("SIMGATE_TEST_SMTP");
        let pairs = told.split(',').map(|pair| pair.split_once('=').unwrap());
        MailServer(pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    /// Settings live as long as the tests do.
    fn get(&self, name: &str) -> &'static str {
        self.0[name].clone().leak()
    }

    pub fn settings(&self, door: &'static str) -> Settings {
        let mut settings = vec![
            ("trusted_proxies", "127.0.0.1"),
            ("smtp_host", "localhost"),
            ("smtp_port", self.get(door)),
            ("smtp_tls", if door == "plain" { "none" } else { door }),
            ("mail_from", "simgate codes <codes@simgate.example>"),
        ];
        if door != "plain" {
            settings.push(("smtp_certificate", self.get("cert")));
        }
        if door == "starttls" {
            settings.extend([("smtp_user", "codes"), ("smtp_password", "correct horse")]);
        }
        settings
    }

    /// What arrived for a mailbox.
    pub fn mails(&self, to: &str) -> Vec<Value> {
        let folder = PathBuf::from(&self.0["folder"]);
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mails = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let mails =
            mails.map(|path| serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap());
        mails.filter(|mail| mail["to"] == json!([to])).collect()
    }

    pub async fn until_mailed(&self, to: &str, count: usize) -> Vec<Value> {
        until("the mail arrives", async || Some(self.mails(to)).filter(|mails| mails.len() >= count)).await
    }
}

/// A mailbox that no other test writes to.
pub fn mailbox(name: &str) -> String {
    format!("{name}-{:x}@example.com", simgate::vault::random() as u64)
}
