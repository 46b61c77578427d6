//! Bodies that the gateway sent or took once, kept as text so that their members stay in order.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The bodies of one operation: `request`, and each answer by its status.
pub type Bodies = BTreeMap<String, String>;

/// The bodies of one API by operation.
pub fn bodies(file: &str) -> BTreeMap<String, Bodies> {
    let read: BTreeMap<String, BTreeMap<String, Box<RawValue>>> =
        serde_json::from_str(file).unwrap_or_default();
    let texts = |bodies: BTreeMap<String, Box<RawValue>>| -> Bodies {
        bodies.into_iter().map(|(name, raw)| (name, outdented(raw.get()))).collect()
    };
    read.into_iter().map(|(id, bodies)| (id, texts(bodies))).collect()
}

/// A body lies two steps deep in its file.
fn outdented(text: &str) -> String {
    text.replace("\n    ", "\n")
}
