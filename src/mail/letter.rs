//! What a row of the outbox holds. `contents.rs` writes it out as a mail.

use serde::{Deserialize, Serialize};

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
    /// What was bought, to the person it was bought for. What an order charged, and how, is never changed once it is
    /// written: so the receipt is made from the order, says the same whenever it is sent, and no row copies it. Rows from
    /// before have more, which is not read.
    Receipt {
        order: String,
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
    /// Somebody is invited to a partner's team.
    Invitation {
        member: String,
        company: String,
        role: String,
        by: String,
        invited: i64,
    },
    /// Something else than before signs its reader in.
    SecondFactor {
        change: FactorChange,
        at: i64,
    },
    /// A webhook accepted nothing for a day, and gets no more events.
    WebhookDisabled {
        company: String,
        webhook: String,
        url: String,
    },
}

/// What became of somebody's second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorChange {
    On,
    Off,
    NewCodes,
    /// By the operator, for somebody who has lost it.
    TakenAway,
}

impl FactorChange {
    pub(super) fn subject(self) -> &'static str {
        match self {
            FactorChange::On => "Your second factor is on",
            FactorChange::Off => "Your second factor is off",
            FactorChange::NewCodes => "You have new recovery codes",
            FactorChange::TakenAway => "Your second factor was taken away",
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            FactorChange::On => {
                "The partner portal asks for a code of your authenticator app from now on, after the mailed code."
            }
            FactorChange::Off => "The mailed code alone signs you in to the partner portal from now on.",
            FactorChange::NewCodes => {
                "Recovery codes were made for your second factor. The earlier ones open nothing any more."
            }
            FactorChange::TakenAway => {
                "We took it away. The mailed code alone signs you in to the partner portal until you set it up again."
            }
        }
    }
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
    pub(super) fn subject(self, owed: bool) -> &'static str {
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

    pub(super) fn sentence(self) -> &'static str {
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
    pub(super) fn money(self, owed: bool) -> Option<&'static str> {
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
            Letter::Invitation { .. } => "invitation",
            Letter::SecondFactor { .. } => "second_factor",
            Letter::WebhookDisabled { .. } => "webhook_disabled",
        }
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
            Letter::Receipt { order: "ord_1".into() },
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
            Letter::Invitation {
                member: "mbr_1".into(),
                company: "Acme".into(),
                role: "VIEWER".into(),
                by: "ann@acme.example".into(),
                invited: 5,
            },
            Letter::SecondFactor { change: FactorChange::TakenAway, at: 5 },
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
    fn a_code_mail_from_before_doors_were_named_is_read() {
        let letter: Letter = serde_json::from_str(r#"{"kind":"code","login":"lgn_1","long":false}"#).unwrap();
        assert_eq!(letter, Letter::Code { login: "lgn_1".into(), long: false, door: String::new() });
    }

    #[test]
    fn a_receipt_from_before_lines_were_listed_is_read() {
        let row =
            r#"{"kind":"receipt","order":"ord_1","order_ref":"SG1","plan_name":"Japan","amount":"4.5"}"#;
        assert_eq!(serde_json::from_str::<Letter>(row).unwrap(), Letter::Receipt { order: "ord_1".into() });
    }
}
