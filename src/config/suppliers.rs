//! Suppliers in the settings: a table `[supplier.NAME]` for each in the file, or `SIMGATE_SUPPLIER_NAME_FIELD` in the
//! environment, which is the better place for credentials. Fields that are unknown, wrong or missing are all told at
//! once, like every other setting.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::raw::line_of;
use super::{Host, Mode, Raw, Spec, flag, spec, url, whole};
use crate::domain::amount::{Amount, Fiat};
use crate::domain::near;
use crate::supplier::sim;
use crate::supplier::terms::{AuthMode, Kind, Terms};

const fn secret(name: &'static str, help: &'static str) -> Spec {
    Spec { name, default: "", help, secret: true }
}

/// The fields of a supplier's table.
#[rustfmt::skip]
pub const FIELDS: &[Spec] = &[
    spec("kind", "", "esim-access or airalo: how it is talked to"),
    spec("url", "", "its address (default: the vendor's own)"),
    secret("access_code", "esim-access: the access code of your account"),
    secret("secret_key", "esim-access: the secret key, for every auth but code"),
    spec("auth", "code", "esim-access: code (the access code alone), signed, signed-upper (in capitals, for eSIMfly), or secret (both in headers)"),
    spec("id_length", "50", "esim-access: the longest transactionId that it takes, 31 to 64"),
    secret("client_id", "airalo: the client id of your account"),
    secret("client_secret", "airalo: the client secret of your account"),
    spec("rate", "", "requests a second, for all instances together (default: 8 for esim-access; 4 for airalo, which allows 5 for usage)"),
    spec("quiet_minutes", "15", "how long a sale in doubt is looked for before it may be bought once more"),
    spec("currency", "USD", "the currency that it bills in; another than USD needs a rate (`simgate supplier rate`)"),
    spec("low_balance", "100", "warn when less than this is left of what you paid in, in its currency"),
    spec("sync_hours", "6", "how often its plans are taken in while it is enabled, in hours"),
    spec("reviewed_cancels", "false", "airalo: true to ask for refunds, which people there decide about"),
];

/// What was given of one supplier: text and source by field.
pub type Given = BTreeMap<&'static str, (String, String)>;

/// Takes `[supplier.NAME]` tables out of a file.
pub(super) fn take_tables(raw: &mut Raw, path: &str, text: &str, value: toml::Value) {
    let toml::Value::Table(tables) = value else {
        raw.is_wrong(format!(
            "{path}, line {}: supplier is a table for each one: [supplier.NAME]",
            line_of(text, "supplier")
        ));
        return;
    };
    for (name, table) in tables {
        let head = line_of(text, &format!("supplier.{name}"));
        let toml::Value::Table(fields) = table else {
            raw.is_wrong(format!(
                "{path}, line {}: write [supplier.NAME], then a line for each field",
                line_of(text, &name)
            ));
            continue;
        };
        raw.suppliers.entry(name.clone()).or_default();
        let below: String = text.lines().skip(head).collect::<Vec<_>>().join("\n");
        for (field, value) in fields {
            let place = format!("{path}, line {}", head + line_of(&below, &field));
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            take(raw, &name, &field, value, format!("{field} in {place}"));
        }
    }
}

/// Takes `SUPPLIER_NAME_FIELD` of the environment; false when it is none of these.
pub(super) fn take_variable(raw: &mut Raw, variable: &str, value: &str) -> bool {
    let Some(rest) = variable.strip_prefix("SIMGATE_SUPPLIER_").map(str::to_lowercase) else { return false };
    let named =
        |spec: &&Spec| rest.strip_suffix(spec.name).is_some_and(|name| name.len() > 1 && name.ends_with('_'));
    let Some(field) = FIELDS.iter().filter(named).max_by_key(|spec| spec.name.len()) else { return false };
    let name = rest[..rest.len() - field.name.len() - 1].replace('_', "-");
    take(raw, &name, field.name, value.to_string(), format!("{variable} in the environment"));
    true
}

fn take(raw: &mut Raw, name: &str, field: &str, value: String, source: String) {
    match FIELDS.iter().find(|spec| spec.name == field) {
        Some(spec) => {
            raw.suppliers.entry(name.into()).or_default().insert(spec.name, (value, source));
        }
        None => {
            let names: Vec<&str> = FIELDS.iter().map(|spec| spec.name).collect();
            let hint =
                near::meant(field, &names).map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            raw.is_wrong(format!("{source} of supplier {name:?} is an unknown field{hint}"));
        }
    }
}

/// Every supplier of the settings that is complete.
pub(super) fn check(raw: &Raw, mode: Mode) -> Vec<Terms> {
    raw.suppliers.iter().filter_map(|(name, given)| Table { raw, name, given }.terms(mode)).collect()
}

struct Table<'a> {
    raw: &'a Raw,
    name: &'a str,
    given: &'a Given,
}

impl Table<'_> {
    fn text(&self, field: &str) -> &str {
        let default = FIELDS.iter().find(|spec| spec.name == field).map_or("", |spec| spec.default);
        self.given.get(field).map_or(default, |(text, _)| text)
    }

    fn wrong(&self, field: &str, why: &str) {
        let source = self.given.get(field).map_or("not set", |(_, source)| source);
        self.raw.is_wrong(format!("{field} of supplier {:?} ({source}): {why}", self.name));
    }

    /// A field's value; a wrong one is noted.
    fn read<T>(&self, field: &str, allowed: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = read(self.text(field));
        if value.is_none() {
            self.wrong(field, allowed);
        }
        value
    }

    fn credential(&self, field: &str) -> Option<SecretString> {
        let usable =
            |text: &str| !text.is_empty() && text.len() <= 500 && text.bytes().all(|b| b.is_ascii_graphic());
        self.read(field, "must be set, without spaces", |text| usable(text).then(|| SecretString::from(text)))
    }

    /// Reads every field before it gives up, so that all mistakes are told.
    fn terms(&self, mode: Mode) -> Option<Terms> {
        let is_name = |name: &str| {
            name.len() <= 24
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !is_name(self.name) || self.name == sim::NAME {
            self.raw.is_wrong(format!(
                "supplier {:?}: a name has 1 to 24 small letters, digits and -, and {:?} is the simulator's",
                self.name,
                sim::NAME
            ));
            return None;
        }
        let kind = self.read("kind", "must be esim-access or airalo", |text| {
            Kind::parse(text).filter(|kind| *kind != Kind::Simulator)
        })?;
        let (own_url, own_rate) = match kind {
            Kind::EsimAccess => ("https://api.esimaccess.com/api/v1/open", 8.0),
            Kind::Airalo => ("https://partners-api.airalo.com", 4.0),
            Kind::Simulator => return None,
        };
        let address = self.read("url", "must start with https:// and have no query", |text| {
            if text.is_empty() { Some(own_url.to_string()) } else { url(text) }
        });
        let auth = self.read("auth", "must be code, signed, signed-upper or secret", AuthMode::parse);
        let (client, key) = match kind {
            Kind::Airalo => (self.credential("client_id"), self.credential("client_secret").map(Some)),
            Kind::EsimAccess | Kind::Simulator => {
                let needs_key = auth.is_some_and(|auth| auth != AuthMode::Code);
                let key = if needs_key { self.credential("secret_key").map(Some) } else { Some(None) };
                (self.credential("access_code"), key)
            }
        };
        let id_length = self.read("id_length", "must be from 31 to 64", whole(31, 64));
        let rate = self.read("rate", "must be a number from 0.01 to 1000", |text| match text {
            "" => Some(own_rate),
            text => text.parse().ok().filter(|rate| (0.01..=1_000.0).contains(rate)),
        });
        let quiet = self.read("quiet_minutes", "must be a whole number from 1 to 1440", whole(1, 1_440));
        let currency = self.read("currency", "must be three capital letters, like EUR", Fiat::parse);
        let low_balance = self.read("low_balance", "must be an amount", |text| {
            Amount::parse(text, currency.unwrap_or(Fiat::USD)).ok().filter(|amount| amount.micros >= 0)
        });
        let sync_hours = self.read("sync_hours", "must be a whole number from 1 to 168", whole(1, 168));
        let reviewed_cancels = self.read("reviewed_cancels", "must be true or false", flag);
        let terms = Terms {
            // Few of them, and for as long as the program runs: they are names of accounts in the books.
            name: Box::leak(self.name.to_string().into_boxed_str()),
            kind,
            url: address?,
            client: client?,
            secret: key?,
            auth: auth?,
            id_length: id_length? as usize,
            rate: rate?,
            quiet: Duration::from_secs(quiet? as u64 * 60),
            currency: currency?,
            low_balance: low_balance?,
            sync_every: Duration::from_secs(sync_hours? as u64 * 3_600),
            reviewed_cancels: reviewed_cancels?,
        };
        self.check_address(mode, &terms.url);
        Some(terms)
    }

    /// A sandbox buys nothing that costs money, and credentials do not travel in the clear.
    fn check_address(&self, mode: Mode, url: &str) {
        if Host::of_url(url).is_some_and(|host| host.is_loopback()) {
            return;
        }
        if mode == Mode::Sandbox {
            self.raw.does_not_fit(format!(
                "supplier {:?} is at {url}, and mode is sandbox: a sandbox sells for test money, so it buys only from an \
                 address of this machine; sell its plans with mode = \"live\"",
                self.name
            ));
        } else if !url.starts_with("https://") {
            self.raw.does_not_fit(format!("url of supplier {:?} must start with https://", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, Settings};
    use secrecy::ExposeSecret;

    fn load(file: &str, env: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Settings::check(&Raw::collect(&BTreeMap::new(), env, Some(("simgate.toml", file)))?)
    }

    const LOCAL: &str = "[supplier.acme]\nkind = \"esim-access\"\nurl = \"http://127.0.0.1:9/open\"\n";

    #[test]
    fn a_supplier_is_a_table_and_its_credentials_may_come_from_the_environment() {
        let env = [("SIMGATE_SUPPLIER_ACME_ACCESS_CODE", "hush-hush")];
        let settings = load(&format!("log = \"warn\"\n{LOCAL}rate = 2.5\nquiet_minutes = 3"), &env).unwrap();
        let [acme] = settings.suppliers.as_slice() else { panic!("one supplier") };
        assert_eq!(
            (acme.name, acme.kind, acme.rate, acme.quiet.as_secs()),
            ("acme", Kind::EsimAccess, 2.5, 180)
        );
        assert_eq!(
            (acme.client.expose_secret(), acme.url.as_str()),
            ("hush-hush", "http://127.0.0.1:9/open")
        );
        assert!(!format!("{acme:?}").contains("hush"), "{acme:?}");
        let env = [
            ("SIMGATE_SUPPLIER_MY_SIMS_KIND", "airalo"),
            ("SIMGATE_SUPPLIER_MY_SIMS_URL", "http://localhost:9"),
            ("SIMGATE_SUPPLIER_MY_SIMS_CLIENT_ID", "me"),
            ("SIMGATE_SUPPLIER_MY_SIMS_CLIENT_SECRET", "hush"),
        ];
        assert_eq!(load("", &env).unwrap().suppliers[0].name, "my-sims");
    }

    #[test]
    fn all_that_is_wrong_with_suppliers_is_told_at_once() {
        let file = "[supplier.acme]\nkind = \"esim-access\"\nurl = \"http://127.0.0.1:9\"\nacces_code = \"x\"\nauth = \"signed\"\nrate = 0\n\
                    currency = \"euro\"\n\n[supplier.other]\nkind = \"cheap\"\n\n[supplier.sim]\nkind = \"simulator\"\n";
        let told = load(file, &[]).err().expect("wrong").0;
        for part in [
            "acces_code in simgate.toml, line 4 of supplier \"acme\" is an unknown field; did you mean access_code?",
            "access_code of supplier \"acme\" (not set): must be set",
            "secret_key of supplier \"acme\" (not set): must be set",
            "rate of supplier \"acme\" (rate in simgate.toml, line 6): must be a number",
            "currency of supplier \"acme\" (currency in simgate.toml, line 7): must be three capital letters",
            "kind of supplier \"other\" (kind in simgate.toml, line 10): must be esim-access or airalo",
            "supplier \"sim\": a name has",
        ] {
            assert!(told.contains(part), "{part}\n{told}");
        }
        assert!(load("supplier = 3", &[]).is_err() && load("[supplier]\nacme = 1", &[]).is_err());
    }

    #[test]
    fn a_sandbox_buys_nothing_that_costs_money() {
        let real = LOCAL.replace("http://127.0.0.1:9/open", "https://api.example.com");
        let told = load(&format!("{real}access_code = \"x\""), &[]).err().expect("refused").0;
        assert!(told.contains("a sandbox sells for test money"), "{told}");
        assert!(load(&format!("{LOCAL}access_code = \"x\""), &[]).is_ok());
    }
}
