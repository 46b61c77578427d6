//! What somebody does by hand: a member of a partner's team, or an operator. A member's role is looked at when a deed is asked
//! for, and once more in the write that does it, under the lock that a change of the team takes too: whoever was removed
//! meanwhile, or has another role, does not do it any more.

use crate::domain::ids::MemberId;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::Result;
use crate::store::audit::{self, Line};
use crate::store::tx::Tx;
use crate::store::{members, wallet};

#[derive(Clone, Debug)]
pub struct ByHand {
    /// What the audit log says of it.
    pub(super) line: Line,
    /// Who must be able to do what when it is done; `None` for an operator.
    asks: Option<(MemberId, Ability)>,
}

/// A deed that takes no role: an operator's, or to leave a team.
impl From<Line> for ByHand {
    fn from(line: Line) -> ByHand {
        ByHand { line, asks: None }
    }
}

impl ByHand {
    pub(super) fn of_member(id: MemberId, ability: Ability, line: Line) -> ByHand {
        ByHand { line, asks: Some((id, ability)) }
    }

    /// Refuses what the member may not do now. Every write of a deed begins with this: a member's takes the wallet's lock.
    pub(super) fn check(&self, tx: &mut Tx) -> Result<()> {
        let Some((id, ability)) = &self.asks else { return Ok(()) };
        if let Some(account) = self.line.account {
            wallet::lock(tx, account)?;
        }
        // A first run of the write did it when it was still allowed.
        if tx.is_rerun() && audit::exists(tx, &self.line.id)? {
            return Ok(());
        }
        let found = members::by_id(tx, id)?.filter(|person| person.joined_at.is_some());
        match found.is_some_and(|person| person.role.may(*ability)) {
            true => Ok(()),
            false => Err(Refusal::RoleNotAllowed(*ability).into()),
        }
    }
}
