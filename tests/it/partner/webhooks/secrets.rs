//! The keys of signatures: shown once, kept sealed, and two of them while one is rotated.

use serde_json::{Value, json};
use simgate::webhook::Secret;

use super::{PRIVATE, WEBHOOKS, active, change, friendly, made, sent, tested, text, url_of};
use crate::support::database::rows;
use crate::support::harness::{Db, both_databases};
use crate::webhook_sender::receiver::Receiver;

const DAY_MS: i64 = 86_400_000;

/// Which of these secrets signed a message.
fn signers(receiver: &Receiver, told: &Value, secrets: &[&str]) -> Vec<bool> {
    let id = text(&told["delivery"]["eventId"]).to_string();
    let requests = receiver.requests();
    let request = requests
        .iter()
        .rfind(|request| request.contains(&format!("webhook-id: {id}\r\n")))
        .expect("it was sent");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap();
    let at = header("webhook-timestamp").parse().unwrap();
    let signatures: Vec<&str> = header("webhook-signature").split(' ').collect();
    let signed = |secret: &&str| {
        let signature = Secret::parse(secret).unwrap().sign(&id, at, body.as_bytes());
        signatures.contains(&signature.as_str())
    };
    assert_eq!(signatures.len(), secrets.iter().filter(|secret| signed(secret)).count(), "{head}");
    secrets.iter().map(signed).collect()
}

both_databases! {
    async fn a_rotation_overlaps_for_a_day(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, first) = active(gateway, &url_of(&receiver)).await;
        let rotate = async || sent(gateway, "POST", &format!("/{id}/rotate"), None).await.expect(200);
        let told = tested(gateway, &id).await;
        assert_eq!(signers(&receiver, &told, &[&first]), [true]);
        let rotated = rotate().await;
        let second = text(&rotated["secret"]).to_string();
        assert_ne!(second, first);
        assert!(rotated["webhook"]["oldSecretUntil"].is_string(), "{rotated}");
        assert_eq!(rotated["webhook"]["status"], "ACTIVE");
        let told = tested(gateway, &id).await;
        assert_eq!(signers(&receiver, &told, &[&first, &second]), [true, true]);
        gateway.pass_time(DAY_MS);
        let told = tested(gateway, &id).await;
        assert_eq!(signers(&receiver, &told, &[&first, &second]), [false, true]);
        assert_eq!(told["webhook"].get("oldSecretUntil"), None);
        // Two signatures at most: what was replaced twice is gone.
        let third = text(&rotate().await["secret"]).to_string();
        let fourth = text(&rotate().await["secret"]).to_string();
        let told = tested(gateway, &id).await;
        assert_eq!(signers(&receiver, &told, &[&first, &second, &third, &fourth]), [false, false, true, true]);
    }

    async fn a_secret_is_shown_once_and_kept_sealed(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, first) = made(gateway, &url_of(&receiver)).await;
        let rotated = sent(gateway, "POST", &format!("/{id}/rotate"), None).await;
        assert_eq!(rotated.header("cache-control"), "no-store");
        let second = text(&rotated.json()["secret"]).to_string();
        let mut said = Vec::new();
        said.push(gateway.get(WEBHOOKS).await.text);
        said.push(change(gateway, &id, json!({ "description": "mine" })).await.to_string());
        said.push(tested(gateway, &id).await.to_string());
        said.push(sent(gateway, "GET", &format!("/{id}/deliveries"), None).await.text);
        for secret in [&first, &second] {
            assert!(said.iter().all(|text| !text.contains(secret.as_str()) && !text.contains("whsec_")), "{said:?}");
        }
        let hex = if gateway.db == Db::Sqlite { "lower(hex" } else { "(encode" };
        let ends = if gateway.db == Db::Sqlite { "))" } else { ", 'hex'))" };
        let sealed = &rows(&gateway.app.settings.database, &format!("SELECT {hex}(secret{ends}, {hex}(old_secret{ends} FROM webhooks"))[0];
        let in_hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for secret in [&first, &second] {
            // Neither the text nor its bare key.
            let bare = secret.strip_prefix("whsec_").unwrap();
            assert!(sealed.iter().all(|column| !column.contains(&in_hex(bare.as_bytes()))), "{sealed:?}");
            if gateway.db == Db::Sqlite {
                for file in std::fs::read_dir(&gateway.dir).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
                    let bytes = std::fs::read(&file).unwrap();
                    assert!(!bytes.windows(bare.len()).any(|part| part == bare.as_bytes()), "{}", file.display());
                }
            }
        }
    }
}
