//! What `simgate serve` prints when it begins to serve: where it is, and where to look next.

use super::output::Record;
use crate::start::Greeting;

pub fn greeting(greeting: Greeting) -> Record {
    let Greeting { version, base_url, mode, database, plans, demo_file, portal, demo_owner } = greeting;
    let (docs, api) = (format!("{base_url}/docs"), format!("{base_url}/api/b2b/v1/openapi.json"));
    let demo_file = demo_file.map(|file| format!("./{}", file.display()));
    let mode = mode.as_str();
    let mut text = format!(
        "simgate {version} serves {base_url} ({mode} mode, {database}, {plans} plans)\n  docs      {docs}\n  API       {api}\n"
    );
    text.push_str(&format!("  portal    {portal}"));
    if let Some((owner, outbox)) = &demo_owner {
        text.push_str(&format!("   (sign in as {owner}; the code is in {outbox})"));
    }
    text.push('\n');
    if let Some(file) = &demo_file {
        text.push_str(&format!("  demo key  {file}   (try: . {file}; curl -H \"X-B2B-Key: $B2B_KEY\" -H \"X-B2B-Secret: $B2B_SECRET\" $B2B_URL/api/b2b/v1/balance)\n"));
    }
    Record::new()
        .with("version", version)
        .with("baseUrl", base_url)
        .with("mode", mode)
        .with("database", database)
        .with("plans", plans as i64)
        .with("docs", docs)
        .with("openapi", api)
        .with("portal", portal)
        .with("demoOwner", demo_owner.map(|(owner, _)| owner))
        .with("demoFile", demo_file)
        .prose(text)
}
