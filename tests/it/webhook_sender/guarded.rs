//! Receivers that speak TLS: whose certificates are believed, and for which names.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use simgate::vault;
use simgate::webhook::{Attempt, Sender, Target};

use super::receiver::{Manner, Names, Receiver, answer};
use super::{NAME, failed, rules, status};

/// A folder with an authority and what it signed; it is gone at the end of its test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn openssl(folder: &Path, args: &str) {
    let done = Command::new("openssl").current_dir(folder).args(args.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Folder {
    /// `good` is for the name of the tests, `other` for another one, `lone` is signed by itself.
    fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("simgate-webhook-{:032x}", vault::random()));
        std::fs::create_dir(&folder).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(
            &folder,
            &format!("req -x509 {key} -days 2 -subj /CN=authority -keyout authority.key -out authority.crt"),
        );
        let lone = format!("-days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}");
        openssl(&folder, &format!("req -x509 {key} {lone} -keyout lone.key -out lone.crt"));
        for (name, host) in [("good", NAME), ("other", "other.example")] {
            openssl(&folder, &format!("req -new {key} -subj /CN={host} -keyout {name}.key -out {name}.csr"));
            std::fs::write(folder.join("more"), format!("subjectAltName=DNS:{host}")).unwrap();
            let sign = "-CA authority.crt -CAkey authority.key -CAcreateserial -days 2 -extfile more";
            openssl(&folder, &format!("x509 -req -in {name}.csr {sign} -out {name}.crt"));
        }
        Folder(folder)
    }

    async fn receiver(&self, name: &str) -> Receiver {
        let file = |ending: &str| self.0.join(format!("{name}.{ending}"));
        let chain = vec![CertificateDer::from_pem_file(file("crt")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(file("key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Receiver::with_tls(config, |_| answer("200 OK", "safe")).await
    }

    /// A sender that trusts the authority, or only what the system trusts.
    fn sender(&self, names: &Arc<Names>, trusting: bool) -> Sender {
        let certificates = match trusting {
            true => std::fs::read(self.0.join("authority.crt")).unwrap(),
            false => Vec::new(),
        };
        Sender::trusting(rules(true), names.clone(), &certificates).unwrap()
    }
}

async fn post(sender: &Sender, host: &str, port: u16) -> Attempt {
    let target = Target::parse(&format!("https://{host}:{port}/in?key=hush"), sender.rules()).unwrap();
    sender.post(&target, &[], Bytes::from_static(b"{}")).await
}

#[tokio::test]
#[ignore = "needs openssl"]
async fn a_certificate_of_the_name_is_believed_and_its_line_used_again() {
    let folder = Folder::new();
    let receiver = folder.receiver("good").await;
    let sender = folder.sender(&Names::leading_to([receiver.address]), true);
    for host in [NAME, "Hooks.Partner.Example."] {
        assert_eq!(status(&post(&sender, host, receiver.port()).await), Some(200));
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 2));
}

#[tokio::test]
#[ignore = "needs openssl"]
async fn other_certificates_get_no_message() {
    let folder = Folder::new();
    for (certificate, trusting, host, told) in [
        ("other", true, NAME.to_string(), "not valid for name"),
        ("good", true, "elsewhere.example".into(), "not valid for name"),
        ("good", true, "127.0.0.1".into(), "not valid for name"),
        ("good", false, NAME.into(), "UnknownIssuer"),
        ("lone", true, NAME.into(), "certificate"),
        ("lone", false, NAME.into(), "certificate"),
    ] {
        let receiver = folder.receiver(certificate).await;
        let sender = folder.sender(&Names::leading_to([receiver.address]), trusting);
        let attempt = post(&sender, &host, receiver.port()).await;
        let why = failed(&attempt);
        assert!(why.starts_with("no TLS: ") && why.contains(told), "{certificate} {host}: {why}");
        assert_eq!(receiver.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_receiver_without_tls_gets_no_message() {
    let receiver = Receiver::start(|_| Manner::Leave(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())).await;
    let names = Names::leading_to([receiver.address]);
    let sender = Sender::new(rules(true), names).unwrap().within(std::time::Duration::from_secs(1));
    let attempt = post(&sender, NAME, receiver.port()).await;
    assert!(failed(&attempt).starts_with("no "), "{attempt:?}");
    assert_eq!(receiver.requests().len(), 0);
}
