//! Writes mails out, as plain text and as HTML: the same words in both, in the house's frame. Templates escape every value
//! for HTML; names that others chose are put on one line first, so that they break no text either.

use askama::Template;

use super::house::{Colours, House};
use super::letter::{FactorChange, News, Refill};
use super::plain::{one_line, wrapped};
use super::receipt::Receipt;
use crate::domain::login::{Door, Realm};
use crate::domain::money::Usd;
use crate::domain::role::Role;

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
    Receipt(&'a Receipt),
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
    Invitation {
        company: &'a str,
        role: Role,
        /// Who invites; none for the operator.
        by: Option<&'a str>,
        join_url: String,
    },
    SecondFactor {
        change: FactorChange,
        to: &'a str,
        at: &'a str,
        portal_url: String,
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

/// The frame around a mail's HTML.
struct Frame<'a> {
    house: &'a House,
    light: Colours,
    dark: Colours,
    subject: &'static str,
}

/// The two forms of a mail, of the same values, and how both are written.
macro_rules! forms {
    ($name:ident, $text:literal, $html:literal { $($field:ident: $kind:ty),+ }) => {
        struct $name<'a> {
            $($field: $kind),+
        }

        impl<'a> $name<'a> {
            fn written(self, house: &'a House, subject: &'static str) -> Result<Written, askama::Error> {
                #[derive(Template)]
                #[template(path = $text)]
                struct Text<'a> {
                    $($field: &'a $kind),+
                }

                #[derive(Template)]
                #[template(path = $html)]
                struct Html<'a> {
                    frame: Frame<'a>,
                    $($field: &'a $kind),+
                }

                let text = Text { $($field: &self.$field),+ }.render()?;
                let frame = Frame { house, light: house.light(), dark: house.dark(), subject };
                let html = Html { frame, $($field: &self.$field),+ }.render()?;
                let text = format!("{}\n\n-- \n{}\n", wrapped(&text), wrapped(&house.foot()));
                Ok(Written { subject, text, html })
            }
        }
    };
}

forms! {
    Code, "mail/code.txt", "mail/code.html"
    { code: &'a str, asked_by: &'a str, grants: &'a str, host: &'a str, not_me_url: &'a str }
}

forms! {
    NewToken, "mail/token.txt", "mail/token.html"
    { prefix: &'a str, agent_name: String, made: &'a str, revoke_url: &'a str }
}

forms! { Bought, "mail/receipt.txt", "mail/receipt.html" { receipt: &'a Receipt, seller: Vec<String> } }

forms! { Given, "mail/given.txt", "mail/given.html" { receipt: &'a Receipt, company: String } }

forms! {
    Checkout, "mail/checkout.txt", "mail/checkout.html"
    {
        headline: &'a str,
        sentence: &'a str,
        money: Option<&'a str>,
        claim_url: Option<&'a str>,
        order_ref: &'a str,
        plan_name: String,
        amount: String
    }
}

forms! { Credited, "mail/credited.txt", "mail/credited.html" { amount: &'a str } }

forms! {
    LowBalance, "mail/low_balance.txt", "mail/low_balance.html"
    { company: String, balance: String, threshold: String, refill: Option<&'a Refill>, sandbox: bool }
}

forms! {
    Invitation, "mail/invitation.txt", "mail/invitation.html"
    { company: String, by: Option<String>, role: &'a str, about: &'a str, join_url: &'a str }
}

forms! {
    SecondFactor, "mail/second_factor.txt", "mail/second_factor.html"
    { sentence: &'a str, to: &'a str, at: &'a str, portal_url: &'a str }
}

forms! {
    WebhookDisabled, "mail/webhook_disabled.txt", "mail/webhook_disabled.html"
    { company: String, webhook: &'a str, url: String }
}

/// Who wants a code, in words that its owner understands.
fn asked_by(door: Option<Door>) -> &'static str {
    match door {
        Some(Door::Rest) => "An agent, through its API,",
        Some(Door::Tools) => "An assistant, through its tools,",
        Some(Door::Pages) => {
            "Somebody who claims money on a payment page, or pays from a wallet on a checkout page,"
        }
        Some(Door::Account) => "Somebody who signs in to your account with a browser,",
        Some(Door::Portal) => "Somebody who signs in to the partner portal with a browser,",
        None => "Somebody",
    }
}

/// What a code opens, and what anyone who has it can do there.
fn grants(door: Option<Door>) -> &'static str {
    match door.map(Door::realm) {
        Some(Realm::Partners) => {
            "It signs in to the partner portal as the member of a team with this address, and opens nothing else. Anyone who \
             has it can do there what your role may do, unless you turned on a second factor."
        }
        Some(Realm::Buyers) | None => {
            "It signs in as the customer with this address, at every door for customers: agents, tools and account pages. \
             Anyone who has it can see your orders, spend what is in your wallet, and put money that is claimed into it."
        }
    }
}

/// An amount of a row, as people write money.
fn priced(amount: &str) -> String {
    Usd::parse(amount).map_or_else(|_| amount.to_string(), Usd::priced)
}

impl Contents<'_> {
    pub fn write(&self, house: &House) -> Result<Written, askama::Error> {
        match self {
            Contents::Code { code, door, host, not_me_url } => {
                let (asked_by, grants) = (asked_by(*door), grants(*door));
                let form = Code { code, asked_by, grants, host, not_me_url };
                form.written(&house.beside_a_code(), "Your sign-in code")
            }
            Contents::NewToken { prefix, agent_name, made, revoke_url } => {
                let form = NewToken { prefix, agent_name: one_line(agent_name), made, revoke_url };
                form.written(house, "A new access token for your account")
            }
            Contents::Receipt(receipt) => {
                let subject =
                    if receipt.is_topup() { "Your eSIM is topped up" } else { "Your eSIM is ready" };
                if let Some(company) = receipt.given_by() {
                    return Given { receipt, company }.written(house, subject);
                }
                // It names the seller itself, so its foot need not.
                let bare = House { details: Vec::new(), ..house.clone() };
                let own_name = || vec![house.name.clone()];
                let seller = if house.details.is_empty() { own_name() } else { house.details.clone() };
                Bought { receipt, seller }.written(&bare, subject)
            }
            Contents::Checkout { news, order_ref, plan_name, amount, claim_url } => {
                let owed = claim_url.is_some();
                let subject = news.subject(owed);
                let form = Checkout {
                    headline: subject,
                    sentence: news.sentence(),
                    money: news.money(owed),
                    claim_url: claim_url.as_deref(),
                    order_ref,
                    plan_name: one_line(plan_name),
                    amount: priced(amount),
                };
                form.written(house, subject)
            }
            Contents::Credited { amount } => {
                Credited { amount: &priced(amount) }.written(house, "A payment was put into your wallet")
            }
            Contents::LowBalance { company, balance, threshold, refill, sandbox } => {
                let form = LowBalance {
                    company: one_line(company),
                    balance: priced(balance),
                    threshold: priced(threshold),
                    refill: *refill,
                    sandbox: *sandbox,
                };
                form.written(house, "Your balance is low")
            }
            Contents::Invitation { company, role, by, join_url } => {
                let by = by.map(one_line);
                let (role, about) = (role.name(), role.about());
                let form = Invitation { company: one_line(company), by, role, about, join_url };
                form.written(house, "You are invited to a team")
            }
            Contents::SecondFactor { change, to, at, portal_url } => {
                let form = SecondFactor { sentence: change.sentence(), to, at, portal_url };
                form.written(house, change.subject())
            }
            Contents::WebhookDisabled { company, webhook, url } => {
                let form = WebhookDisabled { company: one_line(company), webhook, url: one_line(url) };
                form.written(house, "A webhook was disabled")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::colour::Colour;
    use crate::domain::contact::Contact;
    use crate::domain::coupon::Applied;
    use crate::domain::ids::OrderId;
    use crate::domain::network::{Currency, Network};
    use crate::domain::order::{Order, OrderStatus};
    use crate::domain::palette::Tone;
    use crate::domain::time::Time;
    use crate::mail::receipt::{Coverage, Filled, PaidBy};

    /// With as many digits as an operator may have.
    fn house() -> House {
        House {
            name: "Ann & Bob's <eSIMs>".into(),
            support: Some(Contact::read("help@shop.example")),
            terms_url: Some("https://shop.example/terms".into()),
            privacy_url: Some("https://shop.example/privacy/20260131".into()),
            details: vec!["Acme <Ltd>".into(), "VAT 123456789".into()],
            sandbox: Some("Sandbox: nothing real was bought or paid."),
            accent: Tone { name: "accent", light: Colour::of(0x123456), dark: Colour::of(0x987654) },
        }
    }

    fn receipt(paid_by: PaidBy, filled: Option<Filled>) -> Receipt {
        let at = Time::from_micros(0);
        let order = OrderId::from_text("ord_1");
        Receipt {
            order: Order {
                id: order.clone(),
                account: crate::domain::ids::AccountNo(1),
                seq: None,
                number: None,
                esim_order: filled.is_some().then(|| order.clone()),
                reference: None,
                package_code: "JP".into(),
                plan_name: "Japan <b>1 GB</b>\r\nPaid: 0.00 USD".into(),
                family: "JP".into(),
                data_mb: 1536,
                duration_days: 1,
                price: Usd::from_micros(1_266_184),
                uniqueness_discount: Usd::from_micros(3_816),
                coupon: Some(Applied { code: "SUMMER<i>".into(), discount: Usd::from_micros(220_000) }),
                customer_email: None,
                cost: Usd::ZERO,
                billed: None,
                supplier: "sim".into(),
                supplier_code: "JP".into(),
                supplier_number: None,
                key_id: String::new(),
                status: OrderStatus::Fulfilled,
                ask_until: at,
                created_at: at,
                updated_at: at,
                failure: None,
                refunded: None,
                cancel_request: None,
                cancel_withdrawn_at: None,
                esim: None,
            },
            order_ref: "SG-AB12".into(),
            placed: "1 January 2026, 12:00 UTC".into(),
            paid_by,
            coverage: Coverage { countries: vec!["Japan".into()], volume: None },
            filled,
            esim_url: Some("https://shop.example/esim/token".into()),
        }
    }

    fn paid_on_base() -> PaidBy {
        PaidBy::Payment { network: Network::Base, currency: Currency::Usdc, unique: Usd::from_micros(3_816) }
    }

    fn said(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_mail_is_of_the_house() {
        let refill = Refill { currency: "USDC".into(), network: "Base".into(), address: "0x12".into() };
        let bought = receipt(paid_on_base(), None);
        let given = receipt(PaidBy::Partner { company: "Acme <b>".into() }, None);
        let revoke_url = || "https://x.example/a".to_string();
        let all = [
            Contents::Code { code: "123456", door: None, host: "x.example", not_me_url: revoke_url() },
            Contents::NewToken { prefix: "sgp_1", agent_name: "a", made: "now", revoke_url: revoke_url() },
            Contents::Receipt(&bought),
            Contents::Receipt(&given),
            Contents::Checkout {
                news: News::TooLate,
                order_ref: "SG1",
                plan_name: "Japan",
                amount: "4.5",
                claim_url: Some(revoke_url()),
            },
            Contents::Credited { amount: "4.5" },
            Contents::LowBalance {
                company: "Acme",
                balance: "1",
                threshold: "50",
                refill: Some(&refill),
                sandbox: true,
            },
            Contents::Invitation {
                company: "Acme",
                role: Role::Viewer,
                by: Some("ann@acme.example"),
                join_url: revoke_url(),
            },
            Contents::SecondFactor {
                change: FactorChange::TakenAway,
                to: "ann@acme.example",
                at: "now",
                portal_url: revoke_url(),
            },
            Contents::WebhookDisabled { company: "Acme", webhook: "whk_1", url: "https://a" },
        ];
        for contents in all {
            let written = contents.write(&house()).unwrap();
            let Written { subject, text, html } = &written;
            assert!(
                text.contains("\n-- \nAnn & Bob's <eSIMs>\nHelp: help@shop.example\n"),
                "{subject}: {text}"
            );
            assert!(
                text.contains("Terms: https://shop.example/terms")
                    && text.contains("nothing real was bought"),
                "{text}"
            );
            assert!(text.lines().all(|line| line.chars().count() <= 78), "{text}");
            for part in [
                "Ann &#38; Bob",
                "mailto:help@shop.example",
                "https://shop.example/terms",
                "nothing real was bought",
                "prefers-color-scheme: dark",
                "lang=\"en\"",
            ] {
                assert!(html.contains(part), "{part} is not in {subject}: {html}");
            }
            assert!(
                html.contains(&format!("<title>{subject}</title>")) && html.matches("<h1").count() == 1,
                "{html}"
            );
            let own_company = !matches!(contents, Contents::Code { .. });
            assert_eq!(
                (text.matches("VAT 123456789").count(), html.matches("VAT 123456789").count()),
                (usize::from(own_company), usize::from(own_company)),
                "{subject}"
            );
            for hostile in ["<eSIMs>", "<Ltd>", "<b>", "<i>", "{{", "{%"] {
                assert!(!html.contains(hostile), "{hostile} is in {html}");
            }
        }
    }

    #[test]
    fn a_receipt_adds_up() {
        let written = Contents::Receipt(&receipt(paid_on_base(), None)).write(&house()).unwrap();
        assert_eq!(written.subject, "Your eSIM is ready");
        let parts = [
            "1.49 USD",
            "Coupon SUMMER",
            "−0.22 USD",
            "Small discount that marks your payment",
            "−0.003816 USD",
            "1.266184 USDC",
            "on the Base network",
            "SG-AB12",
            "1 January 2026",
            "1.5 GB · 1 day · Japan",
            "https://shop.example/esim/token",
            "Sold by",
        ];
        for part in parts {
            assert!(said(&written.text).contains(part), "{part} is not in {}", written.text);
            assert!(written.html.contains(part), "{part} is not in {}", written.html);
        }
        assert!(!written.text.lines().any(|line| line.starts_with("Paid: 0.00")), "{}", written.text);
        assert_eq!(
            written.text.lines().filter(|line| line.trim_start().starts_with("Paid")).count(),
            1,
            "{}",
            written.text
        );
    }

    #[test]
    fn a_receipt_names_the_wallet_and_the_esim_that_was_filled() {
        let filled =
            Filled { plan_name: "Korea".into(), order_ref: "SG-CD34".into(), iccid: Some("8981".into()) };
        let own =
            Contents::Receipt(&receipt(PaidBy::Wallet { own: true }, Some(filled))).write(&house()).unwrap();
        assert_eq!(own.subject, "Your eSIM is topped up");
        for part in ["Korea", "SG-CD34", "8981", "1.266184 USD", "from your wallet", "Not charged"] {
            assert!(own.text.contains(part) && own.html.contains(part), "{part} is not in {}", own.text);
        }
        // Whoever pays for more data on somebody's eSIM is not led to it.
        let filled = Filled { plan_name: "Korea".into(), order_ref: "SG-CD34".into(), iccid: None };
        let others = Receipt { esim_url: None, ..receipt(paid_on_base(), Some(filled)) };
        let others = Contents::Receipt(&others).write(&house()).unwrap();
        for part in ["/esim/", "ICCID", "Keep this address"] {
            assert!(!others.text.contains(part) && !others.html.contains(part), "{part}: {}", others.text);
        }
        assert!(others.text.contains("Korea") && !others.text.contains("\n\n\n"), "{}", others.text);
        let gift = Contents::Receipt(&receipt(PaidBy::Wallet { own: false }, None)).write(&house()).unwrap();
        assert!(gift.text.contains("from the buyer's wallet"), "{}", gift.text);
    }

    /// A partner sells at its own price: its customer sees the plan and the way to install it, and no amount.
    #[test]
    fn what_a_partner_gives_has_no_price() {
        let given = receipt(PaidBy::Partner { company: "Acme\r\nTravel".into() }, None);
        let written = Contents::Receipt(&given).write(&house()).unwrap();
        assert_eq!(written.subject, "Your eSIM is ready");
        for part in [&written.text, &written.html] {
            let said = said(part);
            for told in
                ["Acme Travel", "1.5 GB · 1 day · Japan", "https://shop.example/esim/token", "SG-AB12"]
            {
                assert!(said.contains(told), "{told} is not in {part}");
            }
            for secret in ["1.266184", "1.27", "1.49", "SUMMER", "Receipt", "RECEIPT", "wallet"] {
                assert!(!said.contains(secret), "{secret} is in {part}");
            }
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
        let written = contents.write(&house()).unwrap();
        assert!(written.text.contains(name));
        assert!(!written.html.contains("<script>") && written.html.contains("script"), "{}", written.html);
        let company = "Acme\r\n-- \r\nSubject: x";
        let contents =
            Contents::LowBalance { company, balance: "1", threshold: "2", refill: None, sandbox: false };
        let text = contents.write(&house()).unwrap().text;
        assert_eq!(text.lines().filter(|line| line.starts_with("-- ")).count(), 1, "{text}");
        assert!(!text.lines().any(|line| line.starts_with("Subject")), "{text}");
    }

    #[test]
    fn a_code_mail_has_no_other_digits_together() {
        let hostile =
            House { name: "Shop 123456".into(), support: Some(Contact::read("+49 1234567")), ..house() };
        for house in [house(), hostile] {
            for door in Door::ALL.map(Some).into_iter().chain([None]) {
                let (host, not_me_url) = ("pay.example:54321", "https://x.example/not-me/abc".to_string());
                let code = Contents::Code { code: "123456", door, host, not_me_url };
                let written = code.write(&house).unwrap();
                for part in [&written.text, &written.html] {
                    let runs = part.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= 6);
                    assert_eq!(runs.collect::<Vec<_>>(), ["123456"]);
                    assert!(
                        said(part).contains(asked_by(door)) && part.contains("pay.example:54321"),
                        "{part}"
                    );
                    assert!(said(part).contains(&said(grants(door))), "what the code grants: {part}");
                }
            }
        }
    }
}
