//! What a partner's team should look at: each is told by what stands in the database now, and is gone when it is mended.

use super::operator;
use super::orders::{self, Waiting};
use super::team::Member;
use super::webhooks;
use crate::app::App;
use crate::domain::ids::{KeyId, WebhookId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::webhook::WebhookStatus;
use crate::error::Result;

/// How long before its end a key is named.
const KEY_ENDS_DAYS: i64 = 14;

pub enum Attention {
    LowBalance {
        balance: Usd,
        threshold: Usd,
    },
    /// Orders that have waited for their supplier for too long.
    Waiting(Box<Waiting>),
    /// It gets no events, since it accepted nothing for a day.
    WebhookDisabled {
        id: WebhookId,
        url: String,
    },
    WebhookFailing {
        id: WebhookId,
        url: String,
        since: Time,
    },
    /// Events that were refused for a day, and are not tried again by themselves.
    EventsSetAside {
        id: WebhookId,
        url: String,
        count: i64,
    },
    KeyEnds {
        id: KeyId,
        name: String,
        at: Time,
    },
}

/// What needs attention now, the most urgent first.
pub async fn of(app: &App, member: &Member) -> Result<Vec<Attention>> {
    let (account, now) = (member.account, app.now());
    let mut found = Vec::new();
    if member.balance < member.low_balance {
        found.push(Attention::LowBalance { balance: member.balance, threshold: member.low_balance });
    }
    let waiting = orders::waiting_long(app, account).await?;
    if waiting.count > 0 {
        found.push(Attention::Waiting(Box::new(waiting)));
    }
    for standing in webhooks::list(app, Some(account)).await? {
        let (webhook, count) = (standing.webhook, standing.set_aside);
        let (id, url) = (webhook.id, webhook.url);
        match (webhook.status, webhook.failing_since) {
            // One that was switched off by hand is as somebody wants it.
            (WebhookStatus::Disabled, Some(_)) => found.push(Attention::WebhookDisabled { id, url }),
            (WebhookStatus::Active, Some(since)) => {
                found.push(Attention::WebhookFailing { id, url, since });
            }
            (WebhookStatus::Active, None) if count > 0 => {
                found.push(Attention::EventsSetAside { id, url, count });
            }
            _ => {}
        }
    }
    let soon = now.plus_days(KEY_ENDS_DAYS);
    for key in operator::keys_in_use(app, account).await? {
        if let Some(at) = key.expires_at.filter(|at| *at < soon)
            && key.replaced_by.is_none()
        {
            found.push(Attention::KeyEnds { id: key.id, name: key.name, at });
        }
    }
    Ok(found)
}
