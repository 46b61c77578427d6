//! The text of each setting, from flags, environment and file, and what is wrong with it. A wrong value is noted and its
//! default read instead, so that one start tells of all mistakes. What does not fit together is told when each value is
//! right by itself: before that, it may only follow from a mistake.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::{Spec, specs, suppliers};
use crate::domain::near;
use crate::store::hide_password;

#[derive(Debug)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The effective text of each setting and where it came from.
pub struct Raw {
    values: BTreeMap<&'static str, (String, String)>,
    /// What was given of each supplier, by its name.
    pub(super) suppliers: BTreeMap<String, suppliers::Given>,
    wrong: RefCell<Vec<String>>,
    unfit: RefCell<Vec<String>>,
}

impl Raw {
    /// `flags` and `env` hold only what was given; `env` names are whole (`SIMGATE_LISTEN`).
    pub fn collect(
        flags: &BTreeMap<String, String>,
        env: impl Iterator<Item = (String, String)>,
        file: Option<(&str, &str)>,
    ) -> Result<Raw, ConfigError> {
        let mut raw = Raw {
            values: specs().map(|spec| (spec.name, (spec.default.into(), "default".into()))).collect(),
            suppliers: BTreeMap::new(),
            wrong: RefCell::default(),
            unfit: RefCell::default(),
        };
        if let Some((path, text)) = file {
            raw.take_file(path, text)?;
        }
        for (variable, value) in env {
            let Some(name) = variable.strip_prefix("SIMGATE_") else { continue };
            // These are for the tests; people who run tests by hand have them in their environment.
            if name.starts_with("TEST_") {
                continue;
            }
            match known(&name.to_lowercase()) {
                Some(spec) => raw.set(spec, value, format!("{variable} in the environment")),
                None if suppliers::take_variable(&mut raw, &variable, &value) => {}
                None => {
                    let hint = hint(name, |setting| format!("SIMGATE_{}", setting.to_uppercase()));
                    raw.is_wrong(format!("{variable} in the environment is not a setting of simgate{hint}"));
                }
            }
        }
        for (name, value) in flags {
            match known(name) {
                Some(spec) => raw.set(spec, value.clone(), format!("--{}", name.replace('_', "-"))),
                None => raw.is_wrong(format!("unknown setting {name:?}")),
            }
        }
        Ok(raw)
    }

    fn take_file(&mut self, path: &str, text: &str) -> Result<(), ConfigError> {
        for (name, value) in self.read_toml(path, text)? {
            if name == "supplier" {
                suppliers::take_tables(self, path, text, value);
                continue;
            }
            let place = format!("{path}, line {}", line_of(text, &name));
            let Some(spec) = known(&name) else {
                let hint = hint(&name, str::to_string);
                self.is_wrong(format!("{place} has an unknown setting {name:?}{hint}"));
                continue;
            };
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Array(items) => {
                    let texts: Option<Vec<&str>> = items.iter().map(|item| item.as_str()).collect();
                    let Some(texts) = texts else {
                        self.is_wrong(format!("{name} in {place} must be a list of strings"));
                        continue;
                    };
                    texts.join(",")
                }
                other => other.to_string(),
            };
            self.set(spec, text, format!("{name} in {place}"));
        }
        Ok(())
    }

    /// Reads a file. A text without its quotes is a mistake that is noted; it is read as if it had them.
    fn read_toml(&self, path: &str, text: &str) -> Result<toml::Table, ConfigError> {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        loop {
            let text = lines.join("\n");
            let error = match toml::from_str(&text) {
                Ok(table) => return Ok(table),
                Err(error) => error,
            };
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let at = before.matches('\n').count();
            let place = format!("{path}, line {} is not valid TOML", at + 1);
            let Some((line, unquoted)) =
                lines.get_mut(at).and_then(|line| Unquoted::read(line).map(|found| (line, found)))
            else {
                return Err(ConfigError(format!("{place}: {}", error.message())));
            };
            self.is_wrong(format!("{place}: text must stand between quotes: {}", unquoted.shown()));
            *line = unquoted.mended();
        }
    }

    fn set(&mut self, spec: &'static Spec, value: String, source: String) {
        self.values.insert(spec.name, (value, source));
    }

    pub(super) fn text(&self, name: &str) -> &str {
        &self.values[name].0
    }

    pub(super) fn source(&self, name: &str) -> &str {
        &self.values[name].1
    }

    /// Notes that a setting is wrong by itself.
    pub(super) fn is_wrong(&self, mistake: impl fmt::Display) {
        note(&self.wrong, mistake.to_string());
    }

    /// Notes that settings do not fit together.
    pub(super) fn does_not_fit(&self, mistake: impl fmt::Display) {
        note(&self.unfit, mistake.to_string());
    }

    /// What was read, unless something is wrong: then all of it, each on a line of its own.
    pub(super) fn told<T>(&self, read: Result<T, ConfigError>) -> Result<T, ConfigError> {
        let mut mistakes = self.wrong.borrow().clone();
        if mistakes.is_empty() {
            mistakes.clone_from(&self.unfit.borrow());
            let last = read.as_ref().err().map(ToString::to_string);
            mistakes.extend(last.filter(|_| mistakes.is_empty()));
        }
        match &mistakes[..] {
            [] => read,
            [mistake] => Err(ConfigError(mistake.clone())),
            several => Err(ConfigError(format!("several settings are wrong:\n  {}", several.join("\n  ")))),
        }
    }

    /// Empty means not set.
    pub(super) fn parse<T>(
        &self,
        name: &str,
        allowed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let (text, source) = &self.values[name];
        if text.is_empty() {
            return Ok(None);
        }
        let value = read(text);
        if value.is_none() {
            let shown = known(name).map_or("(hidden)".into(), |spec| shown(spec, text));
            self.is_wrong(format!("{name} ({source}) is {shown:?}: {allowed}"));
            return Ok(Some(default(name)).filter(|text| !text.is_empty()).and_then(read));
        }
        Ok(value)
    }

    pub(super) fn require<T>(
        &self,
        name: &str,
        allowed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        if let Some(value) = self.parse(name, allowed, &read)? {
            return Ok(value);
        }
        let empty = format!("{name} ({}) is empty: {allowed}", self.source(name));
        let value = read(default(name)).ok_or_else(|| ConfigError(empty.clone()))?;
        self.is_wrong(empty);
        Ok(value)
    }

    /// Name, value (secrets hidden) and source of every setting, for `simgate config`.
    pub fn shown(&self) -> Vec<(String, String, String)> {
        let show = |spec: &Spec| {
            let (text, source) = &self.values[spec.name];
            (spec.name.to_string(), shown(spec, text), source.clone())
        };
        let mut all: Vec<_> = specs().map(show).collect();
        for (name, given) in &self.suppliers {
            for spec in suppliers::FIELDS {
                let Some((text, source)) = given.get(spec.name) else { continue };
                all.push((format!("supplier.{name}.{}", spec.name), shown(spec, text), source.clone()));
            }
        }
        all
    }
}

fn note(list: &RefCell<Vec<String>>, mistake: String) {
    let mut list = list.borrow_mut();
    if !list.contains(&mistake) {
        list.push(mistake);
    }
}

/// A line of the file that would be right if its text stood between quotes.
struct Unquoted {
    name: String,
    value: String,
}

impl Unquoted {
    fn read(line: &str) -> Option<Unquoted> {
        let (name, rest) = line.split_once('=')?;
        let value = rest.split(" #").next().unwrap_or_default();
        let found = Unquoted { name: name.trim().into(), value: value.trim().into() };
        let is_bare = !found.value.is_empty() && !found.value.contains(['"', '\'', '[', ']', '{', '}']);
        (is_bare && toml::from_str::<toml::Table>(&found.mended()).is_ok()).then_some(found)
    }

    fn mended(&self) -> String {
        format!("{} = \"{}\"", self.name, self.value)
    }

    /// As it may be shown: without a secret.
    fn shown(&self) -> String {
        let spec = known(&self.name).filter(|spec| !spec.secret);
        let value = spec.map_or("…".into(), |spec| shown(spec, &self.value));
        format!("{} = \"{value}\"", self.name)
    }
}

/// The line on which the file names a setting, counted from 1.
pub(super) fn line_of(text: &str, name: &str) -> usize {
    let named = |line: &str| {
        let rest = line.trim_start_matches(['[', '"', '\'', ' ', '\t']).strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-'))
    };
    text.lines().position(named).map_or(1, |before| before + 1)
}

/// The setting that was meant by an unknown name, in the spelling of its place.
fn hint(name: &str, spelled: impl Fn(&str) -> String) -> String {
    let names: Vec<&str> = specs().map(|spec| spec.name).collect();
    near::meant(name, &names).map_or(String::new(), |meant| format!("; did you mean {}?", spelled(meant)))
}

fn known(name: &str) -> Option<&'static Spec> {
    specs().find(|spec| spec.name == name)
}

pub(super) fn default(name: &str) -> &'static str {
    known(name).map_or("", |spec| spec.default)
}

/// A setting's text as it may be shown.
fn shown(spec: &Spec, text: &str) -> String {
    match text {
        "" => String::new(),
        _ if spec.secret => "(hidden)".into(),
        text if spec.name.ends_with("url") => hide_password(text),
        text => text.into(),
    }
}
