//! The vendor's SDKs for Node.js and Python make the same journey against the fake as our adapter. They take every
//! answer, and their requests agree with ours in every field; the exceptions and their reasons stand below.
//! SIMGATE_TEST_NODE and SIMGATE_TEST_PYTHON name programs that find the SDKs; `./test` sets both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::*;
use crate::suppliers::fakes::airalo::Request;
use crate::support::environment::required;

const ORDER: &str = "ord_0PqxW2zT5mVbC8dEfGhJkLmNpQ";
const FILLING: &str = "top_0PqxW2zT5mVbC8dEfGhJkLmNpR";

/// Headers that say who sends, or how the line is used.
const OF_THE_LINE: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "accept-encoding",
    "user-agent",
    "accept",
    "airalo-nodejs-sdk",
    "airalo-python-sdk",
    "accept-language",
];

/// Method and path, query, headers and body.
type Essence = (String, BTreeMap<String, String>, BTreeMap<String, String>, Value);

/// A request without what may differ:
/// - tokens are random, so only that there is one counts;
/// - the token is asked for with JSON by one SDK and with a form by the other, whose fields are the same;
/// - the SDKs send the type of a body with requests that have none;
/// - `Accept` is sent by us and by Python, as the documents want it, and not by Node.js.
fn essence(request: &Request) -> Essence {
    let mut headers = request.headers.clone();
    headers.retain(|name, _| !OF_THE_LINE.contains(&name.as_str()));
    if let Some(token) = headers.get_mut("authorization") {
        assert!(token.starts_with("Bearer eyJ0"), "{token}");
        *token = "Bearer".into();
    }
    let fields = match request.method.as_str() {
        "GET" => Value::Null,
        _ => request.fields(),
    };
    if request.method == "GET" || request.path == "/v2/token" {
        headers.remove("content-type");
    }
    (format!("{} {}", request.method, request.path), request.query.clone(), headers, fields)
}

/// What both make: token, two lists of packages, an order, a top-up, a reading of the meter.
fn shared(fake: &Fake) -> Vec<Essence> {
    // The last ones are questions that only the SDKs ask, and an order of what is not sold.
    let ours = ["/v2/token", "/v2/packages", "/v2/orders", "/v2/orders/topups"];
    let world = fake.world();
    let is_shared =
        |request: &&Request| ours.contains(&request.path.as_str()) || request.path.ends_with("/usage");
    world.requests.iter().filter(is_shared).take(6).map(essence).collect()
}

async fn our_journey() -> Fake {
    let (fake, supplier) = start().await;
    assert_eq!(supplier.plans().await.told().unwrap().len(), 6);
    let (profile, ..) = profile_of(buy(&supplier, &OrderId::from_text(ORDER)).await);
    assert!(matches!(fill(&supplier, &OrderId::from_text(FILLING), &profile).await, Answer::Done(_)));
    let usage = supplier.usage(Reading { profile: &profile.id, now: now() }).await.told().unwrap();
    assert_eq!((usage.total_mb, usage.status()), (2048, EsimStatus::New));
    fake
}

/// A folder that is gone at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("simgate-airalo-{:032x}", vault::random()));
        std::fs::create_dir(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn make_certificate(folder: &Path) {
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem";
    let made = Command::new("openssl").current_dir(folder).args(request.split_whitespace()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Runs an SDK's journey, and answers what it understood.
async fn their_journey(program: &str, script: &str) -> (Fake, Value) {
    let (fake, folder) = (Fake::start().await, Folder::new());
    make_certificate(&folder.0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox").join(script);
    let mut command = Command::new(required(program));
    command
        .arg(script)
        .args([&fake.url, CLIENT, SECRET, BASE, TOPUP, ORDER, FILLING])
        .arg(&folder.0)
        .env("NODE_EXTRA_CA_CERTS", folder.0.join("cert.pem"))
        .env("AIRALO_SDK_CACHE_PATH", &folder.0)
        .env_remove("HTTPS_PROXY")
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy")
        .env_remove("https_proxy");
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{told}{}", String::from_utf8_lossy(&ended.stderr));
    (fake, serde_json::from_str(told.trim()).unwrap())
}

/// The SDK took every answer.
fn must_have_understood(said: &Value) {
    assert_eq!(said["local"]["data"].as_array().unwrap().len(), 4);
    assert_eq!(said["global"]["data"].as_array().unwrap().len(), 2);
    let base = &said["local"]["data"][0];
    assert_eq!((base["package_id"].as_str(), base["net_price"].as_f64()), (Some(BASE), Some(2.7)));
    assert_eq!((base["countries"][0].as_str(), base["amount"].as_i64()), (Some("US"), Some(1024)));
    let order = &said["order"]["data"];
    assert_eq!((order["description"].as_str(), order["package_id"].as_str()), (Some(ORDER), Some(BASE)));
    assert_eq!(order["sims"][0]["iccid"].as_str().unwrap().len(), 19);
    let filled = &said["filled"]["data"];
    assert_eq!((filled["description"].as_str(), filled["type"].as_str()), (Some(FILLING), Some("topup")));
    assert_eq!(said["usage"]["data"]["total"], 2048);
    let others = &said["others"];
    assert_eq!(others["topups"]["data"].as_array().unwrap().len(), 2);
    assert_eq!(others["history"]["data"][0]["package"], BASE);
    assert_eq!(others["instructions"]["data"]["instructions"]["language"], "EN");
    assert!(said["refusal"].as_str().unwrap().contains("422"), "{}", said["refusal"]);
}

async fn agrees(program: &str, script: &str) {
    let ours = our_journey().await;
    let (theirs, said) = their_journey(program, script).await;
    must_have_understood(&said);
    let (ours, theirs) = (shared(&ours), shared(&theirs));
    assert_eq!(ours.len(), 6);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "ours, and the SDK's");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[tokio::test]
#[ignore = "needs the vendor's SDK for Node.js"]
async fn the_sdk_for_node_makes_our_journey() {
    agrees("SIMGATE_TEST_NODE", "airalo_sdk.cjs").await;
}

#[tokio::test]
#[ignore = "needs the vendor's SDK for Python"]
async fn the_sdk_for_python_makes_our_journey() {
    agrees("SIMGATE_TEST_PYTHON", "airalo_sdk.py").await;
}
