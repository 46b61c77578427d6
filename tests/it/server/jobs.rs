//! The gateway's own jobs: what dies is started again, and what hangs is told by `/readyz`, the doctor and the metrics.
//! A sandbox can make any of them die or hang, in the middle of whatever it does.

use serde_json::{Value, json};
use simgate::error::{Error, Result};
use simgate::store::tx::Tx;

use crate::support::command_line::simgate;
use crate::support::harness::{Gateway, both_databases, reply};

const DEPOSIT: &str = "/api/b2b/v1/balance/deposit";

/// The metrics of every job with this name, by the job's.
async fn figures(gateway: &Gateway, name: &str) -> Vec<(String, f64)> {
    let text = gateway.get("/metrics").await.text;
    let of = |line: &str| {
        let (job, value) = line.strip_prefix(name)?.strip_prefix("{job=\"")?.split_once("\"} ")?;
        Some((job.to_string(), value.parse().unwrap()))
    };
    text.lines().filter_map(of).collect()
}

async fn figure(gateway: &Gateway, name: &str, job: &str) -> f64 {
    let all = figures(gateway, name).await;
    all.iter().find(|(of, _)| of == job).map_or(0.0, |(_, value)| *value)
}

async fn tell(gateway: &Gateway, job: &str, mode: &str) {
    gateway.sandbox("job", json!({ "job": job, "mode": mode })).await;
}

async fn readyz(gateway: &Gateway) -> (u16, String) {
    let answer = reply(gateway.client.get(format!("{}/readyz", gateway.base))).await;
    (answer.status, answer.text)
}

async fn until_ready(gateway: &Gateway) {
    gateway.until("it is ready", async || (readyz(gateway).await.0 == 200).then_some(())).await;
}

/// Opens a deposit and pays it: scanners and writers are at work.
async fn pay_in(gateway: &Gateway, network: &str) {
    let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": network });
    let invoice = gateway.post(DEPOSIT, wish).await.expect(200)["invoiceId"].clone();
    gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
    let path = format!("{DEPOSIT}/{}", invoice.as_str().unwrap());
    gateway
        .until("the deposit is confirmed", async || {
            (gateway.get(&path).await.expect(200)["status"] == "CONFIRMED").then_some(())
        })
        .await;
}

/// What the doctor says of the gateway, and how bad it is.
fn doctor(gateway: &Gateway) -> (String, String) {
    let address = gateway.base.strip_prefix("http://").unwrap();
    let told = simgate(gateway, &["doctor", "--json", "--listen", address]);
    let health: Value = serde_json::from_str(&told.stdout).unwrap();
    let line = health["checks"].as_array().unwrap().iter().find(|check| check["check"] == "gateway").unwrap();
    let text = |field: &str| line[field].as_str().unwrap().to_string();
    (text("health"), text("finding"))
}

fn panics<T>(_: &mut Tx) -> Result<T> {
    panic!("a test wanted it")
}

both_databases! {
    async fn every_job_that_dies_is_started_again(gateway) {
        gateway.get("/metrics").await;
        let jobs: Vec<String> = figures(gateway, "simgate_job_age_seconds").await.into_iter().map(|(job, _)| job).collect();
        for job in ["watch", "recover", "mail", "scan BASE", "scan TRON", "resting POLYGON"] {
            assert!(jobs.iter().any(|known| known == job), "{jobs:?}");
        }
        // Figures are the process's, which other gateways may share.
        let mut deaths = Vec::new();
        for job in &jobs {
            deaths.push(figure(gateway, "simgate_job_panics_total", job).await);
            tell(gateway, job, "panic").await;
        }
        for (job, before) in jobs.iter().zip(deaths) {
            let died = async || (figure(gateway, "simgate_job_panics_total", job).await > before).then_some(());
            gateway.until("the job has died", died).await;
        }
        let finished = figures(gateway, "simgate_job_rounds_total").await;
        for job in &jobs {
            let before = finished.iter().find(|(of, _)| of == job).map_or(0.0, |(_, rounds)| *rounds);
            let again = async || (figure(gateway, "simgate_job_rounds_total", job).await > before).then_some(());
            gateway.until("the job works again", again).await;
        }
        pay_in(gateway, "POLYGON").await;
        gateway.order("JP-1GB-7D").await;
        let unknown = gateway.try_sandbox("job", json!({ "job": "scan MARS", "mode": "panic" })).await;
        assert!(unknown.expect(400)["detail"].as_str().unwrap().contains("scan TRON"), "{}", unknown.text);
    }

    /// The patience is longer than a round takes on a machine that runs other tests.
    async fn a_job_that_hangs_is_told(gateway) with [("job_patience_s", "8"), ("supplier_timeout_ms", "1000")] {
        gateway.get("/metrics").await;
        until_ready(gateway).await;
        for job in ["scan POLYGON", "recover", "watch"] {
            tell(gateway, job, "hang").await;
            let told = async || {
                let (status, text) = readyz(gateway).await;
                (status == 503 && text.contains(&format!("the job {job} has not finished a round"))).then_some(())
            };
            gateway.until("the gateway is not ready", told).await;
            let old = async || (figure(gateway, "simgate_job_age_seconds", job).await >= 8.0).then_some(());
            gateway.until("the job is old", old).await;
            let (health, finding) = doctor(gateway);
            assert!(health == "fail" && finding.contains(&format!("the job {job} ")), "{finding}");
            tell(gateway, job, "ok").await;
            until_ready(gateway).await;
        }
        gateway.until("the doctor is content", async || (doctor(gateway).0 == "ok").then_some(())).await;
        pay_in(gateway, "POLYGON").await;

        // No money depends on this one: it grows old, and requests are served.
        tell(gateway, "mail", "hang").await;
        let old = async || (figure(gateway, "simgate_job_age_seconds", "mail").await > 9.0).then_some(());
        gateway.until("the job is late", old).await;
        until_ready(gateway).await;
    }

    /// Ages are those of the moment in which they are read.
    async fn figures_of_a_dead_job_grow_old(gateway) {
        gateway.get("/metrics").await;
        pay_in(gateway, "BASE").await;
        let of_base = async |name: &str| -> f64 {
            let text = gateway.get("/metrics").await.text;
            let line = format!("{name}{{network=\"BASE\"}} ");
            text.lines().find_map(|known| known.strip_prefix(&line)).map_or(0.0, |value| value.parse().unwrap())
        };
        gateway.until("it is our turn", async || (of_base("simgate_scan_turn").await == 1.0).then_some(())).await;
        tell(gateway, "scan BASE", "hang").await;
        for name in ["simgate_chain_head_age_seconds", "simgate_scan_lag_seconds"] {
            let before = of_base(name).await;
            gateway.until("it grows", async || (of_base(name).await > before + 2.0).then_some(())).await;
        }
        gateway.until("our turn is over", async || (of_base("simgate_scan_turn").await == 0.0).then_some(())).await;
        tell(gateway, "scan BASE", "ok").await;
        pay_in(gateway, "BASE").await;
    }

    /// More often than there are threads, in every way to read and to write.
    async fn readers_and_writers_survive_a_panic(gateway) {
        let store = &gateway.app.store;
        for _ in 0..40 {
            let told = [
                store.read(panics::<()>).await,
                store.read_consistent(panics).await,
                store.snapshot(panics).await,
                store.write(7, panics).await,
            ];
            assert!(told.iter().all(|told| matches!(told, Err(Error::Fault(_)))), "{told:?}");
        }
        gateway.order("JP-1GB-7D").await;
        assert_eq!(gateway.get("/api/b2b/v1/orders").await.expect(200)["orders"].as_array().unwrap().len(), 1);
        pay_in(gateway, "POLYGON").await;
    }
}
