//! Claiming what is owed to a guest: by somebody who signs in with a mailed code, and has money of his own.

use simgate::domain::email::Email;
use simgate::domain::ledger::CreditKind;
use simgate::domain::login::Door;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::domain::token::TokenKind;
use simgate::error::Error;
use simgate::ops::login::{self, Ask, CodeAnswer};
use simgate::ops::operator::{self, Adjustment, Direction};
use simgate::ops::{guests, mail};

use super::play::{Play, Told, told};
use crate::support::logins::user;

/// What who claims has besides.
const OWN: Usd = Usd::dollars(300);

pub async fn collect(play: &mut Play<'_>, at: usize) -> Told {
    let Some(checkout) = play.places[at].filter(|checkout| play.model.checkouts[*checkout].owner.is_none())
    else {
        return Ok(());
    };
    let app = play.world.app.clone();
    let text = format!("claimer{}-{}@example.com", play.world.stories, play.accounts.len());
    let email = Email::parse(&text).unwrap();
    let number = play.world.stories as u32;
    let client = std::net::Ipv4Addr::from_bits(0x0b00_0000 + number).into();
    let asked = Ask { door: Door::Pages, email: email.clone(), client };
    login::ask(&app, asked).await.map_err(told)?;
    let mails = mail::outbox(&app, &text).await.map_err(told)?;
    let mailed =
        mails.iter().find(|mail| mail.written.subject == "Your sign-in code").ok_or("no code was mailed")?;
    let code =
        mailed.written.text.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
    let answer = CodeAnswer {
        door: Door::Pages,
        email: email.clone(),
        code: code.into(),
        client,
        agent_name: "story".into(),
        kind: TokenKind::Session,
    };
    let claimable = play.model.claimable(checkout);
    let invoice = play.model.checkouts[checkout].id.clone();
    match guests::claim(&app, &invoice, answer).await {
        Ok(amount) if amount == claimable && amount.is_positive() => {}
        Err(Error::Refused(Refusal::NothingOwed)) if !claimable.is_positive() => return Ok(()),
        Ok(amount) => return Err(format!("{amount} of checkout {at} was claimed, and {claimable} is owed")),
        Err(error) => return Err(format!("a claim of {claimable} failed: {error:?}")),
    }
    let account = user(&app, &email).await.map_err(told)?.no;
    let credit = Adjustment { account, amount: OWN, kind: CreditKind::Promo, reason: "story".into() };
    operator::adjust_wallet(&app, "test", Direction::Credit, credit, None).await.map_err(told)?;
    play.accounts.push(account);
    play.model.wallets.push(OWN);
    play.model.collect(checkout, play.accounts.len() - 1);
    Ok(())
}
