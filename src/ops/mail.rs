//! Mail: queued in the write that it reports, composed and sent afterwards, and tried again with growing pauses for a
//! day. A row never holds a code: the text is made when the mail is sent or, in a sandbox without a mail server, when
//! it is viewed.

use std::time::Duration;

use metrics::counter;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::LANE;
use super::deposits::checkout_url;
use super::{login, receipts, team};
use crate::app::App;
use crate::config::{Mode, NetworkSettings};
use crate::domain::checkout::Checkout;
use crate::domain::contact::Contact;
use crate::domain::email::Email;
use crate::domain::ids::{InvoiceId, LoginId, MailId, MemberId, OrderId};
use crate::domain::login::{DAY_MS, Door, Realm};
use crate::domain::money::Usd;
use crate::domain::palette::Tone;
use crate::domain::role::Role;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::mail::{Contents, House, Trouble, Written};
pub use crate::mail::{FactorChange, Letter, News, Refill};
use crate::store::mails::{self, Mail, NewMail};
use crate::store::tx::Tx;
use crate::store::{logins, users};
use crate::telemetry::EveryMinute;
use crate::vault::{self, Numbers};
use crate::wire::dates::readable;

const AT_ONCE: i64 = 32;
/// Longer than a try may take: nobody else sends the mail meanwhile.
const HOLD_MS: i64 = 60_000;
const PATIENCE: Duration = Duration::from_secs(45);
/// How long to wait after each failed try; the last pause repeats.
const PAUSES_MS: [i64; 8] = [5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000];
const SHOWN: i64 = 100;

pub const NOT_ME: &str = "not-me";
pub const REVOKE: &str = "revoke-token";

/// A mail's id and time, made before the write that queues it, because a write makes up neither; and what it needs to
/// spell order numbers.
#[derive(Clone)]
pub struct Slip {
    id: MailId,
    pub at: Time,
    pub numbers: Numbers,
}

pub fn slip(app: &App) -> Slip {
    let at = app.now();
    Slip { id: MailId::new(at, vault::random()), at, numbers: app.numbers.clone() }
}

/// Queues a mail in the write that it reports. It is dropped after `until`, and after a day in any case. Call `wake`
/// when the write is done.
pub fn queue(tx: &mut Tx, slip: &Slip, to: &Email, letter: &Letter, until: Option<Time>) -> Result<()> {
    let data = serde_json::to_string(letter).map_err(Error::fault)?;
    let a_day = slip.at.plus_millis(DAY_MS);
    let drop_at = until.map_or(a_day, |until| until.min(a_day));
    let new = NewMail { id: &slip.id, to, kind: letter.kind(), data: &data, created_at: slip.at, drop_at };
    mails::queue(tx, &new)
}

/// Does the same work without a mail: one is queued to nobody, and dropped. So the time of an answer does not reveal
/// whether somebody was mailed.
pub fn queue_for_nobody(tx: &mut Tx, slip: &Slip, letter: &Letter) -> Result<()> {
    queue(tx, slip, &Email::from_text(""), letter, Some(slip.at))
}

/// Mails the owner of a checkout what became of a payment. A guest's checkout has no owner until it is claimed: then
/// the typed-in address gets the mail, with the way to claim what is owed.
pub(super) fn tell_owner(
    tx: &mut Tx,
    slip: &Slip,
    checkout: &Checkout,
    news: News,
    amount: Usd,
) -> Result<()> {
    let email = if checkout.is_nobodys() {
        checkout.customer_email.clone()
    } else {
        users::email(tx, checkout.claimed_by.unwrap_or(checkout.account))?
    };
    let letter = Letter::Checkout {
        news,
        order_ref: slip.numbers.of_checkout(checkout),
        plan_name: checkout.plan_name.clone(),
        amount: amount.to_string(),
        invoice: checkout.is_nobodys().then(|| checkout.id.to_string()),
    };
    match email {
        Some(email) => queue(tx, slip, &email, &letter, None),
        None => Ok(()),
    }
}

/// Sends queued mails now instead of at the next look.
pub fn wake(app: &App) {
    app.mail_now.notify_one();
}

/// Whether mails are shown by the sandbox instead of being sent.
pub fn is_shown(app: &App) -> bool {
    app.settings.mode == Mode::Sandbox && app.mailer.is_none()
}

/// The operator, as every mail shows them.
fn house(app: &App) -> House {
    let (settings, brand) = (&app.settings, &app.settings.brand);
    let (light, dark) = brand.accents();
    let is_simulated = settings.suppliers.is_empty()
        && settings.settlement.networks.values().all(NetworkSettings::is_simulated);
    let sandbox = match (settings.mode, is_simulated) {
        (Mode::Live, _) => None,
        (Mode::Sandbox, true) => Some("Sandbox: nothing real was bought or paid."),
        (Mode::Sandbox, false) => Some("Sandbox: this is a test."),
    };
    House {
        name: brand.name.clone(),
        support: settings.support_contact.as_deref().map(Contact::read),
        terms_url: brand.terms_url.clone(),
        privacy_url: brand.privacy_url.clone(),
        details: brand.details.clone(),
        sandbox,
        accent: Tone { name: "accent", light, dark },
    }
}

/// Composes a mail, with the code and the links that are stored nowhere.
async fn write(app: &App, mail: &Mail) -> Result<Written> {
    let letter: Letter = serde_json::from_str(&mail.data).map_err(Error::fault)?;
    let link = |purpose: &'static str, matter: &str| {
        format!("{}/{purpose}/{}", app.settings.checkout_url, app.vault.links.seal(purpose, matter))
    };
    let house = house(app);
    let written = match &letter {
        Letter::Code { login, long, door } => {
            let code = app.vault.codes.code(&LoginId::from_text(login), *long);
            let door = Door::parse(door);
            let realm = door.map_or(Realm::Buyers, Door::realm);
            let not_me_url = link(NOT_ME, &login::not_me_matter(mail.created_at, &mail.to, realm));
            let site = match door {
                Some(Door::Rest | Door::Tools) => &app.settings.agent_url,
                Some(Door::Pages | Door::Account | Door::Portal) | None => &app.settings.checkout_url,
            };
            Contents::Code { code: &code, door, host: host(site), not_me_url }.write(&house)
        }
        Letter::NewToken { token, prefix, agent_name, made } => {
            let made = readable(Time::from_micros(*made));
            Contents::NewToken { prefix, agent_name, made: &made, revoke_url: link(REVOKE, token) }
                .write(&house)
        }
        Letter::Receipt { order } => {
            let receipt = receipts::of(app, &OrderId::from_text(order), &mail.to).await?;
            Contents::Receipt(&receipt).write(&house)
        }
        Letter::Checkout { news, order_ref, plan_name, amount, invoice } => {
            let claim_url = invoice.as_ref().map(|id| checkout_url(app, &InvoiceId::from_text(id)));
            Contents::Checkout { news: *news, order_ref, plan_name, amount, claim_url }.write(&house)
        }
        Letter::Credited { amount } => Contents::Credited { amount }.write(&house),
        Letter::LowBalance { company, balance, threshold, refill } => {
            let (refill, sandbox) = (refill.as_ref(), app.settings.mode == Mode::Sandbox);
            Contents::LowBalance { company, balance, threshold, refill, sandbox }.write(&house)
        }
        Letter::Invitation { member, company, role, by, invited } => {
            let matter = team::matter(&MemberId::from_text(member), Time::from_micros(*invited));
            let role = Role::parse(role).ok_or_else(|| Error::fault("a role that nobody knows"))?;
            let by = Some(by.as_str()).filter(|by| !by.is_empty());
            Contents::Invitation { company, role, by, join_url: link(team::JOIN, &matter) }.write(&house)
        }
        Letter::SecondFactor { change, at } => {
            let at = readable(Time::from_micros(*at));
            let portal_url = format!("{}/portal", app.settings.checkout_url);
            Contents::SecondFactor { change: *change, to: mail.to.as_str(), at: &at, portal_url }
                .write(&house)
        }
        Letter::WebhookDisabled { company, webhook, url } => {
            Contents::WebhookDisabled { company, webhook, url }.write(&house)
        }
    };
    written.map_err(Error::fault)
}

/// The host of a URL, as people know it.
fn host(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// Begins to send due mails, beside those being sent: one slow mail must not delay a code.
pub async fn round(app: &App, sending: &mut JoinSet<Result<()>>) -> Result<()> {
    if app.mailer.is_none() {
        return Ok(());
    }
    while let Some(sent) = sending.try_join_next() {
        sent.map_err(Error::fault)??;
    }
    let room = AT_ONCE - sending.len() as i64;
    let now = app.now();
    let latest = now.plus_millis(PAUSES_MS[PAUSES_MS.len() - 1]);
    for mail in app.store.read(move |tx| mails::due(tx, now, latest, room)).await? {
        sending.spawn(send(app.clone(), mail));
    }
    Ok(())
}

/// How many mails are overdue.
pub async fn count_late(app: &App) -> Result<i64> {
    if app.mailer.is_none() {
        return Ok(0);
    }
    let before = app.now().plus_millis(-HOLD_MS);
    app.store.read(move |tx| mails::waiting(tx, before)).await
}

/// When the mail server is down, all mails fail alike: log once a minute.
static POSTPONED: EveryMinute = EveryMinute::new();

async fn send(app: App, mail: Mail) -> Result<()> {
    let (id, seen, now) = (mail.id.clone(), mail.next_try, app.now());
    let held_until = now.plus_millis(HOLD_MS);
    if !app.store.finish(LANE, move |tx| mails::hold(tx, &id, seen, held_until)).await? {
        return Ok(());
    }
    if mail.drop_at <= now || !is_wanted(&app, &mail).await? {
        counter!("simgate_mails_total", "outcome" => "dropped").increment(1);
        return remove(&app, mail.id).await;
    }
    let Some(mailer) = &app.mailer else { return Ok(()) };
    let tried = timeout(PATIENCE, mailer.send(mail.id.as_str(), &mail.to, write(&app, &mail).await?)).await;
    let (to, tries) = (mail.to.masked(), mail.tries + 1);
    match tried.unwrap_or_else(|_| Err(Trouble::Later("the mail server does not answer".into()))) {
        Ok(()) => {
            counter!("simgate_mails_total", "outcome" => "sent").increment(1);
            remove(&app, mail.id).await
        }
        Err(Trouble::Never(why)) => {
            counter!("simgate_mails_total", "outcome" => "refused").increment(1);
            tracing::warn!(to, why, "a mail was refused and is not sent again");
            remove(&app, mail.id).await
        }
        Err(Trouble::Later(why)) => {
            counter!("simgate_mails_total", "outcome" => "postponed").increment(1);
            let pause = PAUSES_MS[(mail.tries as usize).min(PAUSES_MS.len() - 1)];
            let again = app.now().plus_millis(pause);
            if let Some(left_out) = POSTPONED.turn() {
                tracing::warn!(to, why, tries, left_out, "a mail could not be sent; trying again");
            }
            let id = mail.id;
            app.store.finish(LANE, move |tx| mails::postpone(tx, &id, held_until, again)).await
        }
    }
}

/// Whether the mail is still useful: a code that can no longer be used is not sent.
async fn is_wanted(app: &App, mail: &Mail) -> Result<bool> {
    let letter: Letter = serde_json::from_str(&mail.data).map_err(Error::fault)?;
    match letter {
        Letter::Code { login, .. } => {
            let (login, now) = (LoginId::from_text(login), app.now());
            app.store.read(move |tx| logins::is_open(tx, &login, now)).await
        }
        Letter::Invitation { member, invited, .. } => {
            let (member, invited) = (MemberId::from_text(member), Time::from_micros(invited));
            app.store.read(move |tx| team::is_open(tx, &member, invited)).await
        }
        Letter::NewToken { .. }
        | Letter::Receipt { .. }
        | Letter::Checkout { .. }
        | Letter::Credited { .. }
        | Letter::LowBalance { .. }
        | Letter::SecondFactor { .. }
        | Letter::WebhookDisabled { .. } => Ok(true),
    }
}

async fn remove(app: &App, id: MailId) -> Result<()> {
    app.store.finish(LANE, move |tx| mails::remove(tx, &id)).await
}

/// A mail as the sandbox shows it.
pub struct Shown {
    pub to: Email,
    pub written: Written,
    pub created_at: Time,
}

/// The mails to an address that were not sent because there is no mail server, newest first.
pub async fn outbox(app: &App, email: &str) -> Result<Vec<Shown>> {
    let email = email.trim().to_lowercase();
    let since = app.now().plus_millis(-DAY_MS);
    let found = app.store.read(move |tx| mails::to(tx, &email, since, SHOWN)).await?;
    let mut shown = Vec::new();
    for mail in found {
        let written = write(app, &mail).await?;
        shown.push(Shown { to: mail.to, written, created_at: mail.created_at });
    }
    Ok(shown)
}
