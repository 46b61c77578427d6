//! Encryption of the connection to PostgreSQL as `sslmode` says, and how we verify that the other end is our server.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, Identity, Roots, SslMode};

/// Checks that the files named in the URL exist and are valid.
pub fn check(address: &Address) -> Result<(), String> {
    if let Some(Roots::File(file)) = &address.roots {
        Trusted::read(file)?;
    }
    address.identity.as_ref().map_or(Ok(()), |identity| read_identity(identity).map(drop))
}

/// Reads the files for each connection, so that a renewed certificate counts from the next one on.
pub fn connector(address: &Address, mode: SslMode) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let belief = match (mode, &address.roots) {
        (SslMode::Disable | SslMode::Prefer | SslMode::Require, _) => Belief::Anybody,
        (SslMode::VerifyCa, Some(Roots::File(file))) => Belief::Signed(Trusted::read(file)?),
        (SslMode::VerifyFull, Some(Roots::File(file))) => Belief::SignedByName(Trusted::read(file)?),
        (SslMode::VerifyCa | SslMode::VerifyFull, Some(Roots::System) | None) => {
            let verifier = Verifier::new(provider.clone());
            let verifier = verifier.map_err(|error| format!("the machine's root certificates: {error}"))?;
            return finish(provider, Arc::new(verifier), address);
        }
    };
    let verifier = Arc::new(OurVerifier { belief, provider: provider.clone() });
    finish(provider, verifier, address)
}

fn finish(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    address: &Address,
) -> Result<MakeRustlsConnect, String> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match &address.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = read_identity(identity)?;
            let fits = builder.with_client_auth_cert(chain, key);
            fits.map_err(|error| format!("sslcert and sslkey do not match: {error}"))?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn read_identity(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = read_certificates("sslcert", &identity.certificate)?;
    let file = &identity.key;
    let wrong = |why: String| format!("sslkey {}: {why}", file.display());
    let about = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
    // The same rule as libpq's, so that `pg_dump` accepts what we accept: a group may read a key that root owns.
    let too_open = if about.uid() == 0 { 0o037 } else { 0o077 };
    if about.mode() & too_open != 0 {
        return Err(wrong("others can read it; run chmod 600 on it".into()));
    }
    let key = PrivateKeyDer::from_pem_file(file)
        .map_err(|error| wrong(format!("it is not an unencrypted private key in PEM: {error}")))?;
    Ok((chain, key))
}

fn read_certificates(name: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found: Vec<_> = read.map_err(|error| format!("{name} {}: {error}", file.display()))?;
    if found.is_empty() {
        return Err(format!("{name} {} holds no certificate in PEM", file.display()));
    }
    Ok(found)
}

/// The contents of the `sslrootcert` file.
#[derive(Debug)]
struct Trusted {
    roots: RootCertStore,
    /// The file may also hold the server's own certificate.
    itself: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn read(file: &Path) -> Result<Trusted, String> {
        let itself = read_certificates("sslrootcert", file)?;
        let mut roots = RootCertStore::empty();
        for certificate in &itself {
            let added = roots.add(certificate.clone());
            added.map_err(|error| format!("sslrootcert {}: {error}", file.display()))?;
        }
        Ok(Trusted { roots, itself })
    }
}

#[derive(Debug)]
enum Belief {
    /// The connection is encrypted; the other end is not verified.
    Anybody,
    Signed(Trusted),
    SignedByName(Trusted),
}

#[derive(Debug)]
struct OurVerifier {
    belief: Belief,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OurVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (trusted, by_name) = match &self.belief {
            Belief::Anybody => return Ok(ServerCertVerified::assertion()),
            Belief::Signed(trusted) => (trusted, false),
            Belief::SignedByName(trusted) => (trusted, true),
        };
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !trusted.itself.contains(certificate) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &trusted.roots, chain, now, algorithms)?;
        }
        if by_name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
