//! Prompts: two ways of working with the tools that a person can start by name.

use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use crate::domain::text;

const ARGUMENT_CHARS: usize = 200;

pub fn list() -> ListPromptsResult {
    let argument = |name: &str, about: &str, required| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    let buy = Prompt::new(
        "buy_esim",
        Some(
            "Find and buy a travel eSIM: compare plans, agree on one, log in, pay, and help with installing it.",
        ),
        Some(vec![
            argument("destination", "Where the trip goes, in plain words", true),
            argument("needs", "How much data, for how long, at which price, if known", false),
        ]),
    );
    let diagnose = Prompt::new(
        "diagnose_no_data",
        Some("Find out why an eSIM has no internet, step by step, and what to do about it."),
        Some(vec![argument("orderId", "The order of the eSIM, if known", false)]),
    );
    let titled = |prompt: Prompt, title: &str| prompt.with_title(title);
    ListPromptsResult::with_all_items(vec![
        titled(buy, "Buy an eSIM"),
        titled(diagnose, "Why is there no data?"),
    ])
}

pub fn get(name: &str, arguments: JsonObject) -> Result<GetPromptResult, ErrorData> {
    let given = |field: &str| match arguments.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(said)) => {
            Ok(Some(text::visible(said, ARGUMENT_CHARS)).filter(|said| !said.is_empty()))
        }
        Some(_) => Err(ErrorData::invalid_params(format!("{field} must be a string"), None)),
    };
    let (about, words) = match name {
        "buy_esim" => {
            let destination = given("destination")?
                .ok_or_else(|| ErrorData::invalid_params("destination is required", None))?;
            ("Buy an eSIM", buy(&destination, given("needs")?.as_deref()))
        }
        "diagnose_no_data" => ("Why is there no data?", diagnose(given("orderId")?.as_deref())),
        _ => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None)),
    };
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, words)]);
    result.description = Some(about.into());
    Ok(result)
}

fn buy(destination: &str, needs: Option<&str>) -> String {
    let needs = needs.map(|needs| format!(" What I need: {needs}.")).unwrap_or_default();
    format!(
        "Help me buy a travel eSIM for: {destination}.{needs}\n\n\
         1. Search with get_esim_catalog and show me the two or three plans that fit best, with data, days and price.\n\
         2. Ask whether my phone takes eSIMs if I did not say; get_knowledge_base has the list.\n\
         3. When I have chosen, ask whether I want to pay on a page (get_checkout_url) or from my wallet.\n\
         4. For the wallet: send_agent_otp to my email, ask me for the code, verify_agent_otp. Then \
         purchase_esim_with_wallet with dryRun, tell me the price and my balance, and buy only after I have said yes, \
         with an idempotencyKey. If the wallet is short, give me the magicLink and wait.\n\
         5. Give me the install link and the steps for my phone."
    )
}

fn diagnose(order: Option<&str>) -> String {
    let which = match order {
        Some(order) => format!("My eSIM of order {order} has no internet."),
        None => "My eSIM has no internet. Find my order with get_user_orders after logging me in.".into(),
    };
    format!(
        "{which} Find out why and tell me what to do, one step at a time.\n\n\
         1. Look at refresh_esim_usage: NEW means that it is not installed, INSTALLED that it has not met a network yet, \
         DEPLETED that its data is used up, EXPIRED that its time is over, CANCELLED that it was given back.\n\
         2. DEPLETED: show me get_topup_packages. EXPIRED or CANCELLED: help me choose a new one with get_esim_catalog.\n\
         3. Otherwise go through the troubleshooting article of get_knowledge_base with me: the right line for data, \
         data roaming on, a restart, another network chosen by hand, the APN.\n\
         4. If it still does not work, tell me how to reach support, and what to tell them."
    )
}
