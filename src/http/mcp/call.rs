//! One call of a tool: who asks, with which arguments, and what is given back. A login comes from the argument `token`
//! or from the request's own header, and is judged before the other arguments.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metrics::counter;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;

use super::input::{IGNORED, Input};
use crate::app::App;
use crate::config::X402Offers;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::doorway::RequestId;
use crate::http::kit::fields::Fields;
use crate::http::kit::{State, auth};
use crate::ops::tokens::Holder;

/// Where a payer's signature comes in, and where its receipt goes out.
const PAYMENT: &str = "x402/payment";
const PAYMENT_RESPONSE: &str = "x402/payment-response";
const TOKEN_CHARS: usize = 128;

pub struct Call {
    pub state: State,
    pub client: IpAddr,
    /// What the client calls itself.
    pub client_name: Option<String>,
    /// Whether a demand for payment by signature is shown: to clients that say they can sign, or to all.
    pub takes_x402: bool,
    /// A payment by signature, as its header would bring it.
    pub payment: Option<String>,
    pub request_id: String,
    /// The inputs that are passed over.
    pub ignored: Vec<String>,
    /// The names of the tool's inputs, when anything else is refused.
    inputs: Option<Vec<&'static str>>,
    arguments: Vec<u8>,
    header_token: Option<String>,
}

impl Call {
    pub fn new(
        state: &State,
        input: &Input,
        arguments: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Call> {
        let parts = context
            .extensions
            .get::<Parts>()
            .ok_or_else(|| Error::fault("a tool call without its request"))?;
        let capabilities = context.client_capabilities().unwrap_or_default();
        let declared = [capabilities.extensions, capabilities.experimental].into_iter().flatten();
        let about_x402 = |name: &String| name == "x402" || name.starts_with("x402/");
        let payment = context.meta.get(PAYMENT);
        let mut arguments = arguments.unwrap_or_default();
        input.rename(&mut arguments);
        Ok(Call {
            client: auth::client_address(parts, &state.app.settings),
            client_name: context.meta.client_info().map(|info| info.name),
            takes_x402: state.app.settings.mcp.x402 == X402Offers::Always
                || declared.flat_map(|named| named.into_keys()).any(|name| about_x402(&name))
                || context.meta.keys().any(about_x402),
            payment: payment.map(|payment| STANDARD.encode(payment.to_string())),
            ignored: input.ignored(&arguments),
            inputs: input.all(),
            request_id: parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default(),
            arguments: serde_json::to_vec(&arguments).map_err(Error::fault)?,
            header_token: auth::bearer_token(&parts.headers).map(str::to_string),
            state: state.clone(),
        })
    }

    pub fn app(&self) -> &App {
        &self.state.app
    }

    pub fn fields(&self) -> Result<Fields<'_>, Refusal> {
        let mut fields = Fields::of(&self.arguments)?.for_models();
        if let Some(inputs) = &self.inputs {
            fields.allow(inputs);
        }
        Ok(fields)
    }

    /// The customer, by the argument or else by the header, within the token's limit.
    pub async fn login(&self) -> Result<Arc<Holder>> {
        let mut fields = Fields::of(&self.arguments)?;
        let given = fields.filled("token", TOKEN_CHARS);
        fields.finish()?;
        let given = given.as_deref().map(|text| text.strip_prefix("Bearer ").unwrap_or(text).trim());
        let text = given.or(self.header_token.as_deref()).ok_or(Refusal::TokenRequired)?;
        let holder = auth::holder(&self.state, text, self.client).await.inspect_err(|_| {
            counter!("simgate_strangers_total").increment(1);
        })?;
        // A token in the header was counted on the way in.
        if given.is_some()
            && let Err((refusal, _)) = self.state.limits.by_token(holder.token.as_str())
        {
            return Err(refusal.into());
        }
        Ok(holder)
    }
}

const OK: &str = "ok";

/// What a tool gives back: the same JSON as a value and as text.
pub struct Output {
    text: String,
    value: Value,
    /// `ok`, or the code of what went wrong.
    pub outcome: &'static str,
    meta: Option<MetaObject>,
}

impl Output {
    pub fn of(view: &impl Serialize) -> Result<Output> {
        Output::of_text(serde_json::to_string(view).map_err(Error::fault)?)
    }

    /// From JSON that is already written.
    pub fn of_text(text: String) -> Result<Output> {
        let value = serde_json::from_str(&text).map_err(Error::fault)?;
        Ok(Output { text, value, outcome: OK, meta: None })
    }

    /// A result that is an error with this code.
    pub fn failed(view: &impl Serialize, code: &'static str) -> Result<Output> {
        Ok(Output { outcome: code, ..Output::of(view)? })
    }

    /// With the names of the inputs that were passed over, if there are any.
    pub fn naming_ignored(mut self, names: Vec<String>) -> Output {
        if let (false, Some(before), Value::Object(members)) =
            (names.is_empty(), self.text.strip_suffix('}'), &mut self.value)
        {
            let names = Value::from(names);
            self.text = format!("{before},\"{IGNORED}\":{names}}}");
            members.insert(IGNORED.into(), names);
        }
        self
    }

    /// With the receipt of a payment by signature, if there is one.
    pub fn with_receipt(mut self, receipt: Option<&impl Serialize>) -> Result<Output> {
        if let Some(receipt) = receipt {
            let receipt = serde_json::to_value(receipt).map_err(Error::fault)?;
            self.meta.get_or_insert_default().insert(PAYMENT_RESPONSE.into(), receipt);
        }
        Ok(self)
    }
}

impl From<Output> for CallToolResult {
    fn from(output: Output) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(output.text)]);
        result.structured_content = Some(output.value);
        result.is_error = Some(output.outcome != OK);
        result.meta = output.meta;
        result
    }
}
