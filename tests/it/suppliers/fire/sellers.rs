//! Sellers in trouble: the fake of each adapter, and what each trouble is there.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::supplier::airalo::signature;

use crate::suppliers::fakes::airalo::{self, Manner};
use crate::suppliers::fakes::esim_access::{self, Fault};
use crate::suppliers::fakes::first_number;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EsimAccess,
    Airalo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It sells, and never answers.
    SoldAndSilent,
    /// It neither sells nor answers.
    Silent,
    /// It sells, and answers 500.
    SoldAndBroken,
    /// It sells, and its answer cannot be read.
    SoldAndMumbling,
    /// It answers with another sale, and sells nothing.
    AnswersForAnother,
    TooManyRequests,
    /// It sells, and the profile takes long.
    SlowToAllocate,
    SoldOut,
    Dearer,
    NoFunds,
    /// It sells the last one and is silent; then it is sold out.
    LastOne,
    /// Our credentials are not good for a while.
    LockedOut,
    /// Our token ends again and again.
    TokenEnds,
    /// It tells of a sale before it answers, and tells it twice.
    EarlyMessages,
    /// Somebody sends messages in its name, about the sales of others and about nothing.
    ForgedMessages,
}

/// Each has a seller of its own, which is a supplier of this name: a line that fails names its trouble.
pub const TROUBLES: [(&str, Trouble); 15] = [
    ("sold-and-silent", Trouble::SoldAndSilent),
    ("silent", Trouble::Silent),
    ("sold-and-broken", Trouble::SoldAndBroken),
    ("sold-and-mumbling", Trouble::SoldAndMumbling),
    ("answers-for-another", Trouble::AnswersForAnother),
    ("too-many-requests", Trouble::TooManyRequests),
    ("slow-to-allocate", Trouble::SlowToAllocate),
    ("sold-out", Trouble::SoldOut),
    ("dearer", Trouble::Dearer),
    ("no-funds", Trouble::NoFunds),
    ("last-one", Trouble::LastOne),
    ("locked-out", Trouble::LockedOut),
    ("token-ends", Trouble::TokenEnds),
    ("early-messages", Trouble::EarlyMessages),
    ("forged-messages", Trouble::ForgedMessages),
];

/// When something is played: before the gateway dies, while the next one recovers, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hour {
    Day,
    Night,
    Calm,
}

/// A sale in the seller's own records.
pub struct Sale {
    pub reference: String,
    pub iccid: String,
    pub given_back: bool,
}

/// A message as it comes to us: its body, and its signature where there are any.
pub struct Message {
    pub body: Value,
    pub signature: Option<String>,
}

pub enum Seller {
    Access(esim_access::Fake),
    Airalo(airalo::Fake),
}

impl Seller {
    pub async fn start(kind: Kind) -> Seller {
        match kind {
            Kind::EsimAccess => {
                let fake = esim_access::Fake::start().await;
                fake.world().numbers = first_number();
                Seller::Access(fake)
            }
            Kind::Airalo => {
                let fake = airalo::Fake::start().await;
                fake.world().balance = Usd::dollars(1_000);
                fake.world().made = first_number();
                Seller::Airalo(fake)
            }
        }
    }

    /// Its table in the settings.
    pub fn table(&self, name: &str) -> String {
        let fields = match self {
            Seller::Access(fake) => {
                format!(
                    "kind = \"esim-access\"\nurl = \"{}\"\naccess_code = \"{}\"",
                    fake.url,
                    esim_access::CODE
                )
            }
            Seller::Airalo(fake) => format!(
                "kind = \"airalo\"\nurl = \"{}\"\nclient_id = \"{}\"\nclient_secret = \"{}\"",
                fake.url,
                airalo::CLIENT,
                airalo::SECRET
            ),
        };
        format!("[supplier.{name}]\n{fields}\nrate = 1000\nquiet_minutes = 1\n")
    }

    /// What it calls a plan, and a top-up of it.
    pub fn codes(&self) -> (&'static str, &'static str) {
        match self {
            Seller::Access(_) => ("JC172", "TOPUP_JC172"),
            Seller::Airalo(_) => (airalo::BASE, airalo::TOPUP),
        }
    }

    pub fn play(&self, trouble: Trouble, hour: Hour) {
        let trouble = (hour != Hour::Calm).then_some(trouble);
        match self {
            Seller::Access(fake) => play_access(&mut fake.world(), trouble, hour),
            Seller::Airalo(fake) => play_airalo(fake, trouble, hour),
        }
    }

    pub fn sales(&self) -> Vec<Sale> {
        match self {
            Seller::Access(fake) => {
                let world = fake.world();
                let sale = |reference: &str, esim: &esim_access::Sold, given_back| Sale {
                    reference: reference.to_string(),
                    iccid: esim.digits(),
                    given_back,
                };
                let of = |esim: &esim_access::Sold| {
                    let first = sale(&esim.transaction, esim, esim.esim_status == "CANCEL");
                    let others = esim.top_ups.iter().map(|(reference, ..)| sale(reference, esim, false));
                    [first].into_iter().chain(others).collect::<Vec<_>>()
                };
                world.sold.iter().flat_map(of).collect()
            }
            Seller::Airalo(fake) => {
                let sale = |order: &airalo::Order| Sale {
                    reference: order.fields["description"].as_str().unwrap().to_string(),
                    iccid: order.iccid.clone(),
                    given_back: false,
                };
                fake.world().orders.iter().map(sale).collect()
            }
        }
    }

    /// How often it was asked to sell, or for a token to buy with.
    pub fn asked(&self) -> usize {
        match self {
            Seller::Access(fake) => {
                let sells = |path: &str| matches!(path, "esim/order" | "esim/topup");
                fake.world().requests.iter().filter(|request| sells(&request.path)).count()
            }
            Seller::Airalo(fake) => {
                fake.world().requests.iter().filter(|request| request.method == "POST").count()
            }
        }
    }

    /// The messages about its sales from this one on, and how many there are.
    pub fn messages(&self, from: usize) -> Vec<Message> {
        match self {
            Seller::Access(fake) => {
                let of = |esim: &esim_access::Sold| Message {
                    body: json!({
                        "notifyType": "ORDER_STATUS", "notifyId": format!("n-{}", esim.order_no),
                        "content": { "orderNo": esim.order_no, "transactionId": esim.transaction, "orderStatus": "GOT_RESOURCE" },
                    }),
                    signature: None,
                };
                fake.world().sold.iter().skip(from).map(of).collect()
            }
            Seller::Airalo(fake) => {
                let of = |order: &airalo::Order| {
                    let body =
                        json!({ "code": order.fields["code"], "description": order.fields["description"] });
                    Message { signature: Some(signature::sign(airalo::SECRET, &body.to_string())), body }
                };
                fake.world().orders.iter().skip(from).map(of).collect()
            }
        }
    }

    /// Messages that it never sent. Whoever knows the path needs no signature where there is none.
    pub fn forgeries(&self, n: usize) -> Vec<Message> {
        let mut messages = self.messages(0);
        messages.truncate(8);
        for (nth, message) in messages.iter_mut().enumerate() {
            match self {
                Seller::Access(_) => {
                    message.body["notifyId"] = json!(format!("forged-{n}-{nth}"));
                    message.body["content"]["orderStatus"] = json!("CANCEL");
                }
                Seller::Airalo(_) => message.signature = Some("00".repeat(64)),
            }
        }
        messages
    }

    /// No token is good any more; the next one is.
    pub fn end_tokens(&self) {
        if let Seller::Airalo(fake) = self {
            fake.world().tokens.clear();
        }
    }
}

fn play_access(world: &mut esim_access::World, trouble: Option<Trouble>, hour: Hour) {
    world.fault = Fault::None;
    (world.sold_out, world.no_funds, world.locked, world.forgetful) = (false, false, false, false);
    (world.surcharge, world.questions) = (0, 0);
    let Some(trouble) = trouble else {
        world.sold.iter_mut().for_each(|esim| esim.questions = 0);
        return;
    };
    match trouble {
        Trouble::SoldAndSilent => world.fault = Fault::HangAfter,
        Trouble::Silent => world.fault = Fault::HangBefore,
        Trouble::SoldAndBroken => world.fault = Fault::BreakAfter,
        Trouble::SoldAndMumbling => world.fault = Fault::MumbleAfter,
        Trouble::AnswersForAnother => world.fault = Fault::AnswerBefore,
        Trouble::TooManyRequests => world.fault = Fault::TooMany,
        Trouble::SlowToAllocate => world.questions = 1_000,
        Trouble::SoldOut => world.sold_out = true,
        Trouble::Dearer => world.surcharge = 1_500,
        Trouble::NoFunds => world.no_funds = true,
        Trouble::LastOne if hour == Hour::Day => world.fault = Fault::HangAfter,
        Trouble::LastOne => (world.sold_out, world.forgetful) = (true, true),
        Trouble::LockedOut => world.locked = true,
        Trouble::EarlyMessages => (world.fault, world.questions) = (Fault::LateAfter, 3),
        Trouble::ForgedMessages => world.questions = 5,
        Trouble::TokenEnds => unreachable!("there are no tokens here"),
    }
}

fn play_airalo(fake: &airalo::Fake, trouble: Option<Trouble>, hour: Hour) {
    fake.world().surcharge =
        if trouble == Some(Trouble::Dearer) { Usd::from_micros(300_000) } else { Usd::ZERO };
    let Some(trouble) = trouble else {
        fake.world().orders.iter_mut().for_each(|order| order.hidden = 0);
        return fake.set(Manner::Fine);
    };
    fake.set(match trouble {
        Trouble::SoldAndSilent => Manner::BuysAndHangs,
        Trouble::Silent => Manner::Hangs,
        Trouble::SoldAndBroken => Manner::BuysAndBreaks,
        Trouble::SoldAndMumbling => Manner::BuysAndMumbles,
        Trouble::AnswersForAnother => Manner::Duplicates,
        Trouble::TooManyRequests => Manner::Busy(1),
        Trouble::SlowToAllocate | Trouble::ForgedMessages => Manner::Slow,
        Trouble::SoldOut => Manner::Refuses(33),
        Trouble::NoFunds => Manner::Refuses(11),
        Trouble::LastOne if hour == Hour::Day => Manner::BuysAndHangs,
        Trouble::LastOne => Manner::Refuses(33),
        Trouble::LockedOut => Manner::LocksOut,
        Trouble::EarlyMessages => Manner::BuysAndDawdles,
        Trouble::Dearer | Trouble::TokenEnds => Manner::Fine,
    });
}
