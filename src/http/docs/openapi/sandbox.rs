//! What the sandbox's helpers have in common: no credentials, and a caller that knows the gateway by its own name.

use std::sync::LazyLock;

use super::Surface;
use crate::http::docs::examples::Examples;

const INTRODUCTION: &str = "Play the world around a gateway in sandbox mode: the payer, the chains, the phone, the supplier, the \
mailbox, and failures of each.\n\n\
These calls take no credentials, and do not exist in live mode. They answer only to the gateway's own names and addresses, so \
that no page of another site can call them. What they set is shared by everybody who uses this sandbox.";

static EXAMPLES: LazyLock<Examples> =
    LazyLock::new(|| Examples::read(include_str!("../examples/sandbox.json")));

pub static SANDBOX: Surface = Surface {
    title: "simgate sandbox",
    introduction: INTRODUCTION,
    tags: &[
        ("chains", "Paying invoices, and what becomes of payments"),
        ("phone", "What a customer does with an eSIM"),
        ("supplier", "Who delivers eSIMs, and fails to"),
        ("mail", "What customers are mailed"),
        ("events", "What partners and agents hear"),
        ("jobs", "The gateway's own work"),
    ],
    keys: Vec::new,
    common: &[
        (403, "LIMIT_EXCEEDED: called by a name that is not the gateway's"),
        (405, "METHOD_NOT_ALLOWED"),
        (429, "RATE_LIMITED: slow down; Retry-After says for how long"),
        (500, "INTERNAL: our fault; quote the requestId"),
        (503, "OVERLOADED: nothing was done, try again"),
    ],
    strict: &["PayRequest", "ChainRequest", "UsageRequest", "SupplierRequest", "JobRequest", "EventRequest"],
    refusals: &[
        ("payInvoice", 404, "INVOICE_NOT_FOUND"),
        ("payInvoice", 422, "UNSUPPORTED_PAIR, with the pairs that work"),
        ("moveUsage", 404, "ESIM_NOT_FOUND"),
        ("makeEvent", 404, "ACCOUNT_NOT_FOUND: nobody has this id or email"),
        ("moveUsage", 409, "ESIM_NOT_ACTIVE: it was cancelled"),
    ],
    webhooks: false,
    examples: &EXAMPLES,
};
