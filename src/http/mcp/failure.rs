//! What a tool says when it cannot do what was asked: the code and sentence of the one table of refusals, in words for
//! a language model, and which tool helps. It is a result like any other, because a model reads results.

use serde::Serialize;
use utoipa::ToSchema;

use super::call::Output;
use crate::domain::order::CancelReason;
use crate::domain::refusal::{PlanMistake, Refusal};
use crate::error::{self, Error, Result};
use crate::http::kit::problem::FieldProblem;
use crate::http::kit::wire::{CancelReasonWord, Money};

/// Something went wrong.
#[derive(Serialize, ToSchema)]
pub struct FailureView {
    pub error: WhyView,
}

#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyView {
    /// What happened, in a word: UNAUTHENTICATED, INVALID_REQUEST, PLAN_NOT_FOUND, NOT_CANCELLABLE, RATE_LIMITED, …
    pub code: &'static str,
    /// The HTTP status that says the same.
    #[schema(minimum = 400, maximum = 599)]
    pub http_status: u16,
    /// What happened and what to do, in sentences.
    pub message: String,
    /// Whether the same call may succeed later: at once after `next`, or after a pause.
    pub retryable: bool,
    /// The tool that helps, and which of its inputs are needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<NextView>,
    /// How long to wait before the call is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub retry_after_seconds: Option<u64>,
    /// Every argument that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldProblem>,
    /// With NOT_CANCELLABLE: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<CancelReasonWord>,
    /// With PRICE_CHANGED: what the plan costs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub price_usd: Option<Money>,
    /// With IDEMPOTENCY_CONFLICT: the order that holds the key, or the invoice of the checkout that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order_id: Option<String>,
    /// With INTERNAL: quote this when you ask for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct NextView {
    pub tool: &'static str,
    pub requires: Vec<&'static str>,
}

/// A failure of this tool. A fault is logged here, once; the caller learns only the request id.
pub fn of(tool: &str, error: &Error, request_id: &str) -> Result<Output> {
    let why = match error.refusal() {
        Some(refusal) => of_refusal(tool, refusal),
        None => {
            tracing::error!(request_id, tool, what = %error, "a tool failed");
            internal(request_id)
        }
    };
    let code = why.code;
    Output::failed(&FailureView { error: why }, code)
}

fn internal(request_id: &str) -> WhyView {
    WhyView {
        code: "INTERNAL",
        http_status: 500,
        message: "Something went wrong on our side. Try again; with an idempotencyKey that is safe.".into(),
        retryable: true,
        request_id: Some(request_id.into()),
        ..WhyView::default()
    }
}

fn of_refusal(tool: &str, refusal: &Refusal) -> WhyView {
    let problem = refusal.problem();
    WhyView {
        code: problem.code,
        http_status: problem.status,
        message: match (sentence(tool, refusal), hint(refusal)) {
            (Some(sentence), _) => sentence,
            (None, Some(hint)) => format!("{} {hint}", problem.detail),
            (None, None) => problem.detail,
        },
        retryable: matches!(problem.status, 401 | 408 | 429 | 500 | 503)
            || *refusal == Refusal::NotCancellable(CancelReason::Provisioning),
        next: next(tool, refusal),
        retry_after_seconds: refusal.retry_after_secs(),
        errors: match refusal {
            Refusal::Invalid(fields) => fields.iter().map(FieldProblem::from).collect(),
            _ => Vec::new(),
        },
        reason: match refusal {
            Refusal::NotCancellable(reason) => Some(CancelReasonWord(*reason)),
            _ => None,
        },
        price_usd: match refusal {
            Refusal::PriceChanged { price } => Some(Money(*price)),
            _ => None,
        },
        order_id: match refusal {
            Refusal::IdempotencyConflict(conflict) => conflict.holder.clone(),
            _ => None,
        },
        request_id: None,
    }
}

/// Where the table's sentence speaks of headers and paths, a tool says it in its own words.
fn sentence(tool: &str, refusal: &Refusal) -> Option<String> {
    Some(match refusal {
        Refusal::Unauthenticated | Refusal::TokenRequired => format!(
            "HTTP 401 Unauthorized: the customer must log in first. Call send_agent_otp with the customer's email, ask \
             the customer for the code, call verify_agent_otp, then call {tool} again with the token."
        ),
        Refusal::OtpInvalid => {
            "This code is wrong, used or expired. Ask the customer to look at the newest mail, or call \
                                send_agent_otp for another."
                .into()
        }
        Refusal::IdempotencyConflict(conflict) => format!(
            "This idempotencyKey {}. Nothing was done. Use a new key for something new.",
            error::earlier(conflict)
        ),
        Refusal::EsimNotFound => {
            "This order has no eSIM yet, or its eSIM is no longer the customer's. A top-up (top_…) has none of its own: \
             pass the id of the order that it was bought for (ord_…)."
                .into()
        }
        Refusal::CouponInvalid if tool == "validate_coupon" => {
            "This code is unknown, expired, used up, not valid for this plan, or only for the shop's app (MOBILE_APP). One \
             that a partner gave the customer can be good all the same: try it with purchase_esim_with_wallet and dryRun."
                .into()
        }
        Refusal::OrderNotFound => "The customer has no order with this orderId.".into(),
        Refusal::DailyLimit { limit } => format!(
            "This token may spend {limit} USD a day (UTC), and with its open checkouts this purchase would exceed it. Nothing \
             was charged."
        ),
        _ => return None,
    })
}

/// What helps, behind the table's own sentence.
fn hint(refusal: &Refusal) -> Option<&'static str> {
    let Refusal::WrongPlanType(mistake) = refusal else { return None };
    Some(match mistake {
        PlanMistake::Unfit => "Choose one from get_topup_packages.",
        PlanMistake::BaseAsTopup => {
            "Buy it with purchase_esim_with_wallet, or choose a TOPUP plan from get_topup_packages."
        }
        PlanMistake::TopupAlone => {
            "Add it to an eSIM with purchase_topup, or choose a BASE plan from get_esim_catalog."
        }
    })
}

fn next(tool: &str, refusal: &Refusal) -> Option<NextView> {
    let (tool, requires) = match refusal {
        Refusal::Unauthenticated | Refusal::TokenRequired | Refusal::OtpInvalid => {
            ("send_agent_otp", vec!["email"])
        }
        Refusal::PlanNotFound | Refusal::WrongPlanType(_) if tool == "purchase_topup" => {
            ("get_topup_packages", vec!["orderId"])
        }
        Refusal::WrongPlanType(_) => ("purchase_topup", vec!["orderId", "packageCode"]),
        Refusal::PlanNotFound => ("get_esim_catalog", vec![]),
        Refusal::OrderNotFound | Refusal::EsimNotFound => ("get_user_orders", vec![]),
        Refusal::CouponInvalid => ("get_available_coupons", vec![]),
        _ => return None,
    };
    Some(NextView { tool, requires })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_not_to_cancel_is_explained() {
        for reason in CancelReason::ALL {
            let why = of_refusal("cancel_order", &Refusal::NotCancellable(reason));
            assert!(why.message.contains(reason.in_words()), "{}", why.message);
            assert_eq!(why.retryable, reason == CancelReason::Provisioning, "{}", why.message);
        }
    }
}
