//! What a tool takes: the names of its inputs, others that stand for them, and what becomes of those it does not know.

use serde_json::{Map, Value};

use crate::domain::text::visible;

/// The member of a result that names the inputs that were passed over: so many, and so much of each.
pub const IGNORED: &str = "ignoredInputs";
const MOST_IGNORED: usize = 20;
const NAME_CHARS: usize = 64;

pub const TOKEN: &str = "token";

/// What a tool takes.
pub struct Input {
    pub names: Vec<&'static str>,
    /// Other names that are taken and not listed, each with the name that it stands for.
    pub other_names: Vec<(&'static str, &'static str)>,
    /// Whether anything else is refused. Where money is spent, a misspelt input must not be passed over.
    pub nothing_else: bool,
    pub schema: Value,
}

impl Input {
    /// The names of the tool's inputs, when anything else is refused.
    pub fn all(&self) -> Option<Vec<&'static str>> {
        self.nothing_else.then(|| self.names.clone())
    }

    /// Takes an input by another name too.
    pub fn also_called(mut self, other: &'static str, name: &'static str) -> Input {
        self.other_names.push((other, name));
        self
    }

    /// Gives inputs that came by another name their own. What came by both is taken by its own name.
    pub fn rename(&self, arguments: &mut Map<String, Value>) {
        for &(other, name) in &self.other_names {
            if arguments.get(name).is_none_or(Value::is_null)
                && let Some(value) = arguments.remove(other)
            {
                arguments.insert(name.into(), value);
            }
        }
    }

    /// The inputs that are passed over. A token is known to every tool, whether or not it needs one.
    pub fn ignored(&self, arguments: &Map<String, Value>) -> Vec<String> {
        if self.nothing_else {
            return Vec::new();
        }
        let known = |name: &str| name == TOKEN || self.names.contains(&name);
        let others = arguments.keys().filter(|name| !known(name));
        others.take(MOST_IGNORED).map(|name| visible(name, NAME_CHARS)).collect()
    }
}
