//! How types are described, where utoipa's own words are hard to read for generators and models.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

/// A struct that is flattened into another is described as a part beside it. Here the members of all parts become those
/// of one object, as they are on the wire. It must be `#[schema(inline)]`.
pub fn flat(schema: RefOr<Schema>) -> RefOr<Schema> {
    let RefOr::T(Schema::AllOf(all)) = &schema else { return schema };
    let mut whole = ObjectBuilder::new().description(all.description.clone()).build();
    for part in &all.items {
        let RefOr::T(Schema::Object(part)) = part else { return schema };
        whole.properties.extend(part.properties.clone());
        whole.required.extend(part.required.clone());
    }
    whole.into()
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use utoipa::{PartialSchema, ToSchema};

    use super::*;

    #[derive(Serialize, ToSchema)]
    struct Part {
        one: i64,
    }

    /// Both.
    #[derive(Serialize, ToSchema)]
    struct Whole {
        #[serde(flatten)]
        #[schema(inline)]
        part: Part,
        two: Option<String>,
    }

    #[test]
    fn parts_become_one_object() {
        let written = serde_json::to_value(flat(Whole::schema())).unwrap();
        assert_eq!(written["type"], "object");
        assert_eq!(written["description"], "Both.");
        assert_eq!(written["required"], serde_json::json!(["one"]));
        assert_eq!(written["properties"]["one"]["type"], "integer");
        assert!(written["properties"]["two"].is_object() && written.get("allOf").is_none());
    }
}
