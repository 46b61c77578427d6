//! What the callers of an API can do there about a refusal. The table of refusals says what happened, for every door; where
//! the way out has another name in each API, it is named here, behind that sentence.

use crate::domain::refusal::{PlanMistake, Refusal};

/// The API that a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Partner,
    Agentic,
    Consumer,
}

impl Api {
    /// By the path of a request; `None` for pages and helpers, where nobody is logged in.
    pub fn of(path: &str) -> Option<Api> {
        let below = path.strip_prefix("/api/")?;
        Some(match below.split('/').next() {
            Some("b2b") => Api::Partner,
            Some("agentic") => Api::Agentic,
            _ => Api::Consumer,
        })
    }

    pub fn hint(self, refusal: &Refusal) -> Option<&'static str> {
        use Api::{Agentic, Consumer, Partner};
        Some(match (refusal, self) {
            (Refusal::InsufficientBalance { .. }, Partner) => {
                "Pay in with POST /api/b2b/v1/balance/deposit, then send the same request again."
            }
            (Refusal::InvoiceNotFound, Partner) => "Only invoices of this account are found here.",
            (Refusal::InvoiceNotFound, Agentic) => "A token that is sent must be its owner's.",
            (Refusal::EsimNotFound, _) => "Only eSIMs of this account are found here.",
            (Refusal::IdempotencyConflict(_), Partner) => {
                "It was sent as partnerRefId, or as the header Idempotency-Key."
            }
            (Refusal::IdempotencyConflict(_), Agentic | Consumer) => {
                "It was sent as the header Idempotency-Key."
            }
            (Refusal::WrongPlanType(PlanMistake::TopupAlone), Partner) => {
                "Add it to an eSIM with POST /api/b2b/v1/orders/{iccid}/topup."
            }
            // The consumer API takes the same tokens.
            (Refusal::WrongPlanType(PlanMistake::TopupAlone), Agentic | Consumer) => {
                "Add it to an eSIM with POST /api/esims/{id}/topup, by the id of the order that the eSIM came with."
            }
            (Refusal::WrongPlanType(PlanMistake::BaseAsTopup), Partner) => {
                "Buy a new eSIM with POST /api/b2b/v1/orders."
            }
            (Refusal::WrongPlanType(PlanMistake::BaseAsTopup), Consumer) => {
                "Buy a new eSIM with POST /api/orders."
            }
            (Refusal::WrongPlanType(PlanMistake::Unfit), Partner) => {
                "GET /api/b2b/v1/orders/{iccid}/topup-plans lists those that fit."
            }
            (Refusal::WrongPlanType(PlanMistake::Unfit), Consumer) => {
                "GET /api/esims/{id}/topup lists those that fit."
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_known_by_its_path() {
        for (path, api) in [
            ("/api/b2b/v1/orders", Some(Api::Partner)),
            ("/api/agentic/checkout", Some(Api::Agentic)),
            ("/api/orders", Some(Api::Consumer)),
            ("/api/esims/ord_1/topup", Some(Api::Consumer)),
            ("/sandbox/pay", None),
            ("/pay/inv_1", None),
            ("/", None),
        ] {
            assert_eq!(Api::of(path), api, "{path}");
        }
    }
}
