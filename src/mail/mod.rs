//! Sends one message by SMTP. `letter.rs` is what the outbox keeps of a mail, `contents.rs` writes it out; `ops::mail`
//! decides when to send one, and how often to try. No text of a user's reaches a header: subjects are ours, and an
//! address is an `Email`, which is plain.

mod contents;
mod house;
mod letter;
mod plain;
mod receipt;

use std::path::PathBuf;
use std::time::Duration;

use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};

pub use self::contents::{Contents, Written};
pub use self::house::House;
pub use self::letter::{FactorChange, Letter, News, Refill};
pub use self::receipt::{Coverage, Filled, PaidBy, Receipt};
use crate::domain::email::Email;
use crate::domain::words::words;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Answers about our own login, not about the mail: the operator must act, and the mail may wait.
const OURS: [u16; 4] = [530, 534, 535, 538];

words! {
    /// How the line to the mail server is kept private.
    pub enum Security: parse {
        /// Plain text: for a server on the same machine.
        None = "none",
        /// Plain at first, then encrypted; a server that does not offer encryption gets no mail.
        StartTls = "starttls",
        Tls = "tls",
    }
}

impl Security {
    pub fn usual_port(self) -> u16 {
        match self {
            Security::None => 25,
            Security::StartTls => 587,
            Security::Tls => 465,
        }
    }
}

#[derive(Clone)]
pub struct SmtpSettings {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub login: Option<(String, SecretString)>,
    /// A certificate to trust besides the system's, for a mail server of one's own.
    pub certificate: Option<PathBuf>,
    pub from: Sender,
}

/// The sender of mails: `a@b.example` or `Name <a@b.example>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    name: Option<String>,
    email: Email,
}

impl Sender {
    pub fn parse(text: &str) -> Option<Sender> {
        let (name, email) = match text.trim().strip_suffix('>') {
            Some(rest) => {
                let (name, email) = rest.split_once('<')?;
                (Some(name.trim().trim_matches('"').to_string()), email)
            }
            None => (None, text),
        };
        let plain = name.as_ref().is_none_or(|name| !name.is_empty() && !name.chars().any(char::is_control));
        Some(Sender { name, email: Email::parse(email)? }).filter(|_| plain)
    }

    fn domain(&self) -> &str {
        self.email.as_str().rsplit('@').next().unwrap_or_default()
    }
}

/// Why a mail was not taken.
#[derive(Debug)]
pub enum Trouble {
    /// Worth another try.
    Later(String),
    /// The server refuses this mail for good.
    Never(String),
}

pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    domain: String,
}

/// Tells other machines not to answer.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AutoSubmitted)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".into())
    }
}

impl Mailer {
    pub fn new(settings: &SmtpSettings) -> Result<Mailer, String> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let tls = || -> Result<TlsParameters, String> {
            let mut tls = TlsParameters::builder(settings.host.clone());
            if let Some(path) = &settings.certificate {
                let pem = std::fs::read(path).map_err(|e| wrong(&path.display().to_string(), &e))?;
                let pem = Certificate::from_pem(&pem).map_err(|e| wrong("smtp_certificate", &e))?;
                tls = tls.add_root_certificate(pem);
            }
            tls.build_rustls().map_err(|e| wrong("smtp_host", &e))
        };
        let tls = match settings.security {
            Security::None => Tls::None,
            Security::StartTls => Tls::Required(tls()?),
            Security::Tls => Tls::Wrapper(tls()?),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(settings.host.clone())
            .port(settings.port)
            .timeout(Some(TIMEOUT))
            .tls(tls);
        if let Some((user, password)) = &settings.login {
            let login = Credentials::new(user.clone(), password.expose_secret().into());
            transport = transport.credentials(login);
        }
        let from = address(&settings.from.email).map_err(|e| wrong("mail_from", &e))?;
        Ok(Mailer {
            transport: transport.build(),
            from: Mailbox::new(settings.from.name.clone(), from),
            domain: settings.from.domain().into(),
        })
    }

    /// Hands a mail to the server. `id` names it: the same mail tried again has the same Message-ID, so a mailbox that
    /// got it twice can tell.
    pub async fn send(&self, id: &str, to: &Email, written: Written) -> Result<(), Trouble> {
        let to = address(to).map_err(Trouble::Never)?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(written.subject)
            .message_id(Some(format!("<{id}@{}>", self.domain)))
            .header(AutoSubmitted)
            .multipart(MultiPart::alternative_plain_html(written.text, written.html))
            .map_err(|error| Trouble::Never(error.to_string()))?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let ours = error.status().is_some_and(|code| OURS.contains(&code.into()));
                let text = describe(&error);
                Err(if error.is_permanent() && !ours { Trouble::Never(text) } else { Trouble::Later(text) })
            }
        }
    }
}

fn address(email: &Email) -> Result<Address, String> {
    email.as_str().parse().map_err(|error: lettre::address::AddressError| error.to_string())
}

/// Server answers may quote the mailbox; logs must not.
fn describe(error: &lettre::transport::smtp::Error) -> String {
    match error.status() {
        Some(code) => format!("the mail server answered {code}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_an_address_with_or_without_a_name() {
        for (text, name) in [
            ("codes@example.com", None),
            ("simgate <codes@example.com>", Some("simgate")),
            ("\"Acme, Inc.\" <codes@example.com>", Some("Acme, Inc.")),
        ] {
            let sender = Sender::parse(text).unwrap();
            assert_eq!((sender.name.as_deref(), sender.email.as_str()), (name, "codes@example.com"));
        }
        for wrong in [
            "",
            "codes",
            "<>",
            "<codes@example.com>",
            "a\nb <codes@example.com>",
            "a <b> <codes@example.com>",
        ] {
            assert_eq!(Sender::parse(wrong), None, "{wrong:?}");
        }
    }
}
