//! JSON Schemas of what tools take and give. Results are described by the same types that write them, as in the OpenAPI
//! files; here references are replaced by their targets, and forms that some clients cannot read by others.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::failure::FailureView;
use super::input::{IGNORED, Input, TOKEN};
use crate::http::kit::fields::Fields;
use crate::http::kit::schema::flat;

/// Keywords that tell a validator nothing, or too much: with floats it cannot decide whether one is a multiple.
const LEFT_OUT: [&str; 5] = ["example", "examples", "multipleOf", "title", "default"];
/// Other formats are names of number types, which validators do not know.
const FORMATS: [&str; 3] = ["date-time", "email", "uri"];
const REFERENCE: &str = "#/components/schemas/";

const MOST_PAGES: i64 = 1_000_000;
const MOST_ENTRIES: i64 = 100;
const USUAL_ENTRIES: i64 = 20;

/// The schema of a type, without references.
pub fn of<T: ToSchema>() -> Value {
    let mut known = vec![(T::name().to_string(), T::schema())];
    T::schemas(&mut known);
    let known: Map<String, Value> = known
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(flat(schema)).unwrap_or_default()))
        .collect();
    tidy(serde_json::to_value(flat(T::schema())).unwrap_or_default(), &known)
}

/// One of these results, or an error.
pub fn results(kinds: impl IntoIterator<Item = Value>) -> Value {
    let kinds: Vec<Value> = kinds.into_iter().chain([of::<FailureView>()]).collect();
    json!({ "type": "object", "anyOf": kinds })
}

fn tidy(schema: Value, known: &Map<String, Value>) -> Value {
    let Value::Object(mut fields) = schema else { return schema };
    if let Some(Value::String(target)) = fields.remove("$ref") {
        let name = target.strip_prefix(REFERENCE).unwrap_or_default();
        let Value::Object(mut whole) = tidy(known.get(name).cloned().unwrap_or(json!({})), known) else {
            return json!({});
        };
        // The words at the place of use are more exact than those of the type.
        whole.extend(fields);
        return Value::Object(whole);
    }
    for keyword in LEFT_OUT {
        fields.remove(keyword);
    }
    if fields.get("format").is_some_and(|format| !FORMATS.iter().any(|known| format == known)) {
        fields.remove("format");
    }
    for (keyword, value) in &mut fields {
        let inner = value.take();
        *value = match (keyword.as_str(), inner) {
            ("properties", Value::Object(named)) => {
                named.into_iter().map(|(name, schema)| (name, tidy(schema, known))).collect()
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.into_iter().map(|schema| tidy(schema, known)).collect()
            }
            ("items" | "additionalProperties", schema) => tidy(schema, known),
            (_, other) => other,
        };
    }
    or_null(fields)
}

/// Writes a type that may be null as a choice: some clients read only one word as a type.
fn or_null(mut fields: Map<String, Value>) -> Value {
    let Some(Value::Array(types)) = fields.get("type") else { return Value::Object(fields) };
    let kinds: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
    let about = fields.remove("description");
    let [kind] = kinds.as_slice() else { return Value::Object(fields) };
    fields.insert("type".into(), kind.clone());
    let mut either = Map::from_iter([("anyOf".to_string(), json!([fields, { "type": "null" }]))]);
    if let Some(about) = about {
        either.insert("description".into(), about);
    }
    Value::Object(either)
}

/// The schema of a tool's results, for a tool that says which inputs it passed over. Every kind of result names them:
/// some clients read only what stands beside a choice, if anything does.
pub fn naming_ignored(mut results: Value) -> Value {
    let about = "Inputs that this tool does not know; they changed nothing.";
    for kind in results["anyOf"].as_array_mut().into_iter().flatten() {
        kind["properties"][IGNORED] =
            json!({ "type": "array", "items": { "type": "string" }, "description": about });
    }
    results
}

/// Named fields, of which some are required.
pub fn input(fields: impl IntoIterator<Item = (&'static str, Value)>, required: &[&str]) -> Input {
    let fields: Vec<(&'static str, Value)> = fields.into_iter().collect();
    let names = fields.iter().map(|(name, _)| *name).collect();
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_string(), schema)).collect();
    let schema = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    Input { names, other_names: Vec::new(), nothing_else: false, schema }
}

/// The input of a tool that buys or cancels: these fields, `idempotencyKey` and `dryRun`, and no others.
pub fn strict_input(fields: impl IntoIterator<Item = (&'static str, Value)>, required: &[&str]) -> Input {
    let mut input = input(fields.into_iter().chain([idempotency_key(), dry_run()]), required);
    input.nothing_else = true;
    input
}

pub fn text(about: &str, most: usize) -> Value {
    json!({ "type": "string", "maxLength": most, "description": about })
}

pub fn number(about: &str, least: i64, most: i64, usual: i64) -> Value {
    json!({ "type": "number", "minimum": least, "maximum": most, "default": usual, "description": about })
}

pub fn token() -> (&'static str, Value) {
    let about = "The customer's session token (sgs_…) from verify_agent_otp, or a personal access token (sgp_…). Leave \
                 it out when the connection itself sends Authorization: Bearer.";
    (TOKEN, text(about, 128))
}

pub fn package_code() -> (&'static str, Value) {
    ("packageCode", text("packageCode of a plan from get_esim_catalog, for example JP-1GB-7D.", 64))
}

pub fn order_id() -> (&'static str, Value) {
    ("orderId", text("id of an order (ord_…) from get_user_orders or from the purchase.", 64))
}

pub fn discount_code() -> (&'static str, Value) {
    (
        "discountCode",
        text("A coupon code of the customer's or from get_available_coupons. Never invent one.", 64),
    )
}

fn idempotency_key() -> (&'static str, Value) {
    let about = "A new unique text of yours for this one purchase or cancel. If the connection breaks, call again with \
                 the same key and the same arguments: it is done once, and you get the first result with replayed: true.";
    ("idempotencyKey", json!({ "type": "string", "minLength": 1, "maxLength": 128, "description": about }))
}

fn dry_run() -> (&'static str, Value) {
    let about =
        "true: only say what would happen and what it would cost; nothing is bought, charged or cancelled.";
    ("dryRun", json!({ "type": "boolean", "default": false, "description": about }))
}

pub fn page() -> (&'static str, Value) {
    ("page", number("Which page, counted from 1; the newest entries come first.", 1, MOST_PAGES, 1))
}

pub fn limit() -> (&'static str, Value) {
    ("limit", number("How many entries a page has.", 1, MOST_ENTRIES, USUAL_ENTRIES))
}

/// Reads `page` and `limit`: the number of a page, and how many entries it has.
pub fn read_page(fields: &mut Fields) -> (i64, i64) {
    let page = fields.whole("page", 1, MOST_PAGES).unwrap_or(1);
    (page, fields.whole("limit", 1, MOST_ENTRIES).unwrap_or(USUAL_ENTRIES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_may_be_null_has_one_word() {
        let schema =
            json!({ "type": ["string", "null"], "format": "int64", "description": "x", "example": 1 });
        let tidied = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "x" });
        assert_eq!(tidy(schema, &Map::new()), tidied);
    }

    #[test]
    fn references_are_put_in_place() {
        let known = Map::from_iter([("A".to_string(), json!({ "type": "number", "multipleOf": 0.1 }))]);
        let schema =
            json!({ "type": "array", "items": { "$ref": "#/components/schemas/A", "description": "b" } });
        let tidied = json!({ "type": "array", "items": { "type": "number", "description": "b" } });
        assert_eq!(tidy(schema, &known), tidied);
    }
}
