//! The details of a plan as the text that its row holds.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::plan::{Carrier, Details, VolumeKind};
use crate::error::{Error, Result};

/// As it is written: short, and nothing for what is not known.
#[derive(Serialize, Deserialize)]
struct Text {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fair_use: Option<String>,
    /// Country, operator, technologies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<(String, String, Vec<String>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activation_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hotspot: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_country: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_up: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kyc_required: Option<bool>,
}

/// `None` when nothing is known.
pub fn write(details: &Details) -> Result<Option<String>> {
    if *details == Details::default() {
        return Ok(None);
    }
    let details = details.clone();
    let carrier = |carrier: Carrier| (carrier.country, carrier.operator, carrier.technologies);
    let text = Text {
        kind: details.kind.map(|kind| kind.as_str().to_string()),
        fair_use: details.fair_use,
        networks: details.networks.into_iter().map(carrier).collect(),
        speed: details.speed,
        activation_policy: details.activation_policy,
        hotspot: details.hotspot,
        exit_country: details.exit_country,
        top_up: details.top_up,
        kyc_required: details.kyc_required,
    };
    serde_json::to_string(&text).map(Some).map_err(Error::fault)
}

fn read(text: &str) -> Result<Details> {
    let text: Text = serde_json::from_str(text).map_err(Error::fault)?;
    let kind = |word: String| {
        VolumeKind::parse(&word).ok_or_else(|| Error::fault(format!("unknown kind of plan {word:?}")))
    };
    let carrier =
        |(country, operator, technologies): (String, String, _)| Carrier { country, operator, technologies };
    Ok(Details {
        kind: text.kind.map(kind).transpose()?,
        fair_use: text.fair_use,
        networks: text.networks.into_iter().map(carrier).collect(),
        speed: text.speed,
        activation_policy: text.activation_policy,
        hotspot: text.hotspot,
        exit_country: text.exit_country,
        top_up: text.top_up,
        kyc_required: text.kyc_required,
    })
}

/// Details by their texts: most plans share theirs with others, and so they are in memory once.
#[derive(Default)]
pub struct Known(HashMap<String, Arc<Details>>);

impl Known {
    /// What cannot be read is logged, and the plan is sold without it.
    pub fn read(&mut self, text: Option<String>, code: &str) -> Arc<Details> {
        let text = text.unwrap_or_else(|| "{}".into());
        if let Some(details) = self.0.get(&text) {
            return details.clone();
        }
        let details = read(&text).unwrap_or_else(|error| {
            tracing::error!(%error, code, "the details of a plan cannot be read; it is shown without them");
            Details::default()
        });
        self.0.entry(text).or_insert_with(|| Arc::new(details)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Details {
        Details {
            kind: Some(VolumeKind::DayPass),
            fair_use: Some("1 GB a day, then 512 kbit/s".into()),
            networks: vec![Carrier {
                country: "JP".into(),
                operator: "NTT \"Docomo\"".into(),
                technologies: vec!["4G".into(), "5G".into()],
            }],
            speed: Some("4G/5G".into()),
            activation_policy: Some("With its first use".into()),
            hotspot: Some(false),
            exit_country: Some("HK,SG".into()),
            top_up: Some(true),
            kyc_required: Some(false),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = write(&full()).unwrap().unwrap();
        assert_eq!(read(&text).unwrap(), full());
        assert_eq!(write(&Details::default()).unwrap(), None);
        let speed = Details { speed: Some("4G".into()), ..Details::default() };
        assert_eq!(write(&speed).unwrap().as_deref(), Some(r#"{"speed":"4G"}"#));
    }

    #[test]
    fn equal_details_are_in_memory_once() {
        let mut known = Known::default();
        let text = || write(&full()).unwrap();
        assert!(Arc::ptr_eq(&known.read(text(), "JP-1"), &known.read(text(), "JP-2")));
        assert!(Arc::ptr_eq(&known.read(None, "JP-3"), &known.read(None, "JP-4")));
        assert_eq!(*known.read(None, "JP-3"), Details::default());
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        let mut known = Known::default();
        for text in [
            "",
            "null",
            "[]",
            "{\"kind\":\"SIDEWAYS\"}",
            "{\"networks\":[[\"JP\"]]}",
            "{\"hotspot\":\"yes\"}",
        ] {
            assert_eq!(*known.read(Some(text.into()), "JP-1"), Details::default(), "{text}");
        }
        let newer = known.read(Some(r#"{"speed":"4G","colour":"blue"}"#.into()), "JP-1");
        assert_eq!(newer.speed.as_deref(), Some("4G"), "what a later version has added does not matter");
    }
}
