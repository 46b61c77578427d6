//! What mails say. A letter is what a row of the outbox holds; it is written out when it is sent, as plain text and
//! as HTML, where every value is escaped by its template.

use askama::Template;
use serde::{Deserialize, Serialize};

use crate::domain::login::Door;

/// A mail to be written. Codes and links are not in it: a `Contents` adds them when it is written out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Letter {
    Code {
        login: String,
        long: bool,
        /// Where it was asked for; a row from before doors were named has none.
        #[serde(default)]
        door: String,
    },
    NewToken {
        token: String,
        prefix: String,
        agent_name: String,
        made: i64,
    },
    /// What was bought, to the person it was bought for.
    Receipt {
        order: String,
        order_ref: String,
        plan_name: String,
        amount: String,
    },
    /// What became of a payment, to the owner of the token that asked for it.
    Checkout {
        news: News,
        order_ref: String,
        plan_name: String,
        amount: String,
        /// A guest's invoice: the money is owed to it, and is in no wallet.
        #[serde(default)]
        invoice: Option<String>,
    },
    /// A payment that had no owner is in this account's wallet.
    Credited {
        amount: String,
    },
    /// A partner's balance fell below its threshold.
    LowBalance {
        company: String,
        balance: String,
        threshold: String,
        /// Where to pay in, if anywhere; a row from before addresses were named has none.
        #[serde(default)]
        refill: Option<Refill>,
    },
    /// A webhook accepted nothing for a day, and gets no more events.
    WebhookDisabled {
        company: String,
        webhook: String,
        url: String,
    },
}

/// An address that a wallet is refilled by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refill {
    pub currency: String,
    pub network: String,
    pub address: String,
}

/// What there is to tell about the payment of a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    LateDelivery,
    TooLate,
    PaidAgain,
    Failed,
    TopUpFailed,
    /// A top-up of an eSIM that was given back meanwhile.
    EsimGone,
    Assigned,
}

impl News {
    fn subject(self, owed: bool) -> &'static str {
        match self {
            News::LateDelivery => "Your late payment arrived",
            News::TooLate => "Your payment came too late",
            News::PaidAgain if owed => "Your second payment is owed to you",
            News::PaidAgain => "Your second payment is in your wallet",
            News::Failed => "Your eSIM could not be delivered",
            News::TopUpFailed | News::EsimGone => "Your eSIM could not be topped up",
            News::Assigned => "Your payment was found",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            News::LateDelivery => {
                "It came after the time to pay was over. The plan is delivered all the same."
            }
            News::TooLate => {
                "It came after the time to pay was over, and the plan is no longer sold at this price."
            }
            News::PaidAgain => "This purchase had been paid for already.",
            News::Failed | News::TopUpFailed => "The supplier refused to deliver it.",
            News::EsimGone => "The eSIM was given back, or about to be, when the payment became final.",
            News::Assigned => {
                "It could not be matched at first and was found by hand. The plan is delivered now."
            }
        }
    }

    /// Where the money is that the plan did not need.
    fn money(self, owed: bool) -> Option<&'static str> {
        match (self, owed) {
            (News::LateDelivery, _) => None,
            (News::Assigned, false) => Some("Whatever was paid beyond its price is in your wallet."),
            (News::Assigned, true) => Some("Whatever was paid beyond its price is owed to you."),
            (News::TooLate | News::PaidAgain | News::Failed | News::TopUpFailed | News::EsimGone, owed) => {
                Some(if owed {
                    "The money is owed to you: claim it on the page below. Anyone who has its address can."
                } else {
                    "The money is in your wallet: your agent can buy with it."
                })
            }
        }
    }
}

impl Letter {
    /// The word in the outbox's column.
    pub fn kind(&self) -> &'static str {
        match self {
            Letter::Code { .. } => "code",
            Letter::NewToken { .. } => "new_token",
            Letter::Receipt { .. } => "receipt",
            Letter::Checkout { .. } => "checkout",
            Letter::Credited { .. } => "credited",
            Letter::LowBalance { .. } => "low_balance",
            Letter::WebhookDisabled { .. } => "webhook_disabled",
        }
    }
}

/// What is made only when a letter is written out.
pub enum Contents<'a> {
    Code {
        code: &'a str,
        door: Option<Door>,
        /// The host of that door.
        host: &'a str,
        not_me_url: String,
    },
    NewToken {
        prefix: &'a str,
        agent_name: &'a str,
        made: &'a str,
        revoke_url: String,
    },
    Receipt {
        order_ref: &'a str,
        plan_name: &'a str,
        amount: &'a str,
        install_url: String,
    },
    Checkout {
        news: News,
        order_ref: &'a str,
        plan_name: &'a str,
        amount: &'a str,
        /// The page where a guest claims what is owed.
        claim_url: Option<String>,
    },
    Credited {
        amount: &'a str,
    },
    LowBalance {
        company: &'a str,
        balance: &'a str,
        threshold: &'a str,
        refill: Option<&'a Refill>,
        /// No real money is meant.
        sandbox: bool,
    },
    WebhookDisabled {
        company: &'a str,
        webhook: &'a str,
        url: &'a str,
    },
}

/// A mail, ready to be sent.
#[derive(Clone, Debug)]
pub struct Written {
    pub subject: &'static str,
    pub text: String,
    pub html: String,
}

/// The two forms of a mail: the same values, and for HTML sometimes one more.
macro_rules! forms {
    ($text:ident $text_path:tt, $html:ident $html_path:tt { $($field:ident: $kind:ty),+ } $($more:ident: $more_kind:ty)?) => {
        #[derive(Template)]
        #[template(path = $text_path)]
        struct $text<'a> {
            $($field: $kind),+
        }

        #[derive(Template)]
        #[template(path = $html_path)]
        struct $html<'a> {
            $($more: $more_kind,)?
            $($field: $kind),+
        }
    };
}

forms! {
    CodeText "mail/code.txt", CodeHtml "mail/code.html"
    { code: &'a str, asked_by: &'a str, host: &'a str, not_me_url: &'a str }
}

forms! {
    TokenText "mail/token.txt", TokenHtml "mail/token.html"
    { prefix: &'a str, agent_name: &'a str, made: &'a str, revoke_url: &'a str }
}

forms! {
    ReceiptText "mail/receipt.txt", ReceiptHtml "mail/receipt.html"
    { order_ref: &'a str, plan_name: &'a str, amount: &'a str, install_url: &'a str }
}

forms! {
    CheckoutText "mail/checkout.txt", CheckoutHtml "mail/checkout.html"
    {
        sentence: &'a str,
        money: Option<&'a str>,
        claim_url: Option<&'a str>,
        order_ref: &'a str,
        plan_name: &'a str,
        amount: &'a str
    }
    subject: &'a str
}

forms! { CreditedText "mail/credited.txt", CreditedHtml "mail/credited.html" { amount: &'a str } }

forms! {
    LowBalanceText "mail/low_balance.txt", LowBalanceHtml "mail/low_balance.html"
    { company: &'a str, balance: &'a str, threshold: &'a str, refill: &'a Option<&'a Refill>, sandbox: bool }
}

forms! {
    WebhookDisabledText "mail/webhook_disabled.txt", WebhookDisabledHtml "mail/webhook_disabled.html"
    { company: &'a str, webhook: &'a str, url: &'a str }
}

/// Who wants a code, in words that its owner understands.
fn asked_by(door: Option<Door>) -> &'static str {
    match door {
        Some(Door::Rest) => "An agent, through its API,",
        Some(Door::Tools) => "An assistant, through its tools,",
        Some(Door::Pages) => {
            "Somebody who claims money on a payment page, or pays from a wallet on a checkout page,"
        }
        None => "Somebody",
    }
}

impl Contents<'_> {
    pub fn write(&self) -> Result<Written, askama::Error> {
        Ok(match self {
            Contents::Code { code, door, host, not_me_url } => {
                let asked_by = asked_by(*door);
                Written {
                    subject: "Your sign-in code",
                    text: CodeText { code, asked_by, host, not_me_url }.render()?,
                    html: CodeHtml { code, asked_by, host, not_me_url }.render()?,
                }
            }
            Contents::NewToken { prefix, agent_name, made, revoke_url } => Written {
                subject: "A new access token for your account",
                text: TokenText { prefix, agent_name, made, revoke_url }.render()?,
                html: TokenHtml { prefix, agent_name, made, revoke_url }.render()?,
            },
            Contents::Receipt { order_ref, plan_name, amount, install_url } => Written {
                subject: "Your eSIM is ready",
                text: ReceiptText { order_ref, plan_name, amount, install_url }.render()?,
                html: ReceiptHtml { order_ref, plan_name, amount, install_url }.render()?,
            },
            Contents::Checkout { news, order_ref, plan_name, amount, claim_url } => {
                let (owed, sentence) = (claim_url.is_some(), news.sentence());
                let (subject, money, claim_url) =
                    (news.subject(owed), news.money(owed), claim_url.as_deref());
                let text = CheckoutText { sentence, money, claim_url, order_ref, plan_name, amount };
                let html = CheckoutHtml { subject, sentence, money, claim_url, order_ref, plan_name, amount };
                Written { subject, text: text.render()?, html: html.render()? }
            }
            Contents::Credited { amount } => Written {
                subject: "A payment was put into your wallet",
                text: CreditedText { amount }.render()?,
                html: CreditedHtml { amount }.render()?,
            },
            Contents::LowBalance { company, balance, threshold, refill, sandbox } => {
                let sandbox = *sandbox;
                Written {
                    subject: "Your balance is low",
                    text: LowBalanceText { company, balance, threshold, refill, sandbox }.render()?,
                    html: LowBalanceHtml { company, balance, threshold, refill, sandbox }.render()?,
                }
            }
            Contents::WebhookDisabled { company, webhook, url } => Written {
                subject: "A webhook was disabled",
                text: WebhookDisabledText { company, webhook, url }.render()?,
                html: WebhookDisabledHtml { company, webhook, url }.render()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_comes_back_from_its_row() {
        for letter in [
            Letter::Code { login: "lgn_1".into(), long: true, door: "TOOLS".into() },
            Letter::NewToken {
                token: "tok_1".into(),
                prefix: "sgp_abcd".into(),
                agent_name: "\"a\"".into(),
                made: 5,
            },
            Letter::Checkout {
                news: News::TooLate,
                order_ref: "SG1".into(),
                plan_name: "Japan".into(),
                amount: "4.5".into(),
                invoice: None,
            },
            Letter::LowBalance {
                company: "Acme".into(),
                balance: "1".into(),
                threshold: "50".into(),
                refill: Some(Refill {
                    currency: "USDC".into(),
                    network: "Base".into(),
                    address: "0x12".into(),
                }),
            },
            Letter::WebhookDisabled {
                company: "Acme".into(),
                webhook: "whk_1".into(),
                url: "https://a".into(),
            },
        ] {
            let row = serde_json::to_string(&letter).unwrap();
            assert!(row.contains(letter.kind()));
            assert_eq!(serde_json::from_str::<Letter>(&row).unwrap(), letter);
        }
    }

    #[test]
    fn names_are_escaped_where_they_could_act() {
        let name = "<script>alert(1)</script> & \"x\"";
        let contents = Contents::NewToken {
            prefix: "sgp_abcd",
            agent_name: name,
            made: "now",
            revoke_url: "https://x.example/a".into(),
        };
        let written = contents.write().unwrap();
        assert!(written.text.contains(name));
        assert!(!written.html.contains("<script>") && written.html.contains("script"), "{}", written.html);
    }

    #[test]
    fn a_code_mail_has_no_other_digits_together() {
        for door in Door::ALL.map(Some).into_iter().chain([None]) {
            let (host, not_me_url) = ("pay.example:54321", "https://x.example/not-me/abc".to_string());
            let written = Contents::Code { code: "123456", door, host, not_me_url }.write().unwrap();
            for part in [&written.text, &written.html] {
                let runs = part.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= 6);
                assert_eq!(runs.collect::<Vec<_>>(), ["123456"]);
                assert!(part.contains(asked_by(door)) && part.contains("pay.example:54321"), "{part}");
                assert!(part.contains("wallet"), "what the code grants: {part}");
            }
        }
    }

    #[test]
    fn a_code_mail_from_before_doors_were_named_is_read() {
        let letter: Letter = serde_json::from_str(r#"{"kind":"code","login":"lgn_1","long":false}"#).unwrap();
        assert_eq!(letter, Letter::Code { login: "lgn_1".into(), long: false, door: String::new() });
    }
}
