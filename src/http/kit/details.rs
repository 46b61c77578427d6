//! What suppliers say of a plan beyond its size, time and price, as all APIs show it. A member is absent when the
//! supplier does not say.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::wire::PlanKindWord;
use crate::domain::plan::{Carrier, Details, Plan, PlanType};
use crate::error::{Error, Result};

/// A search leaves longer lists of networks out: agents and language models read all of an answer.
const BRIEF_BYTES: usize = 1_000;

#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetailsView {
    /// What its data volume means: so much in all, so much a day, or no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "FIXED")]
    kind: Option<PlanKindWord>,
    /// The fair-use rule of a day pass or an unlimited plan, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1 GB a day, then 512 kbit/s")]
    fair_use: Option<String>,
    /// The mobile networks that it uses, by country; base plans only. Searches leave it out when it is long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    networks: Vec<CountryNetworksView>,
    /// In the supplier's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "4G/5G")]
    speed: Option<String>,
    /// When its days begin, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Its days begin with its first use.")]
    activation_policy: Option<String>,
    /// Whether its data can be shared with other devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hotspot: Option<bool>,
    /// Where its traffic reaches the internet: an ISO 3166 code, or several with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "NL")]
    exit_country: Option<String>,
    /// Whether more data can be added later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    top_up: Option<bool>,
    /// Whether the user must prove who they are before it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    kyc_required: Option<bool>,
}

/// The networks of one country.
#[derive(Serialize, ToSchema)]
#[schema(as = CountryNetworks)]
struct CountryNetworksView {
    /// ISO 3166 code.
    #[schema(example = "JP")]
    country: String,
    operators: Vec<OperatorView>,
}

/// A mobile network.
#[derive(Serialize, ToSchema)]
#[schema(as = MobileNetwork)]
struct OperatorView {
    #[schema(example = "NTT Docomo")]
    name: String,
    /// `2G`, `3G`, `4G` or `5G`; none when the supplier does not say.
    #[schema(example = json!(["4G", "5G"]))]
    technologies: Vec<String>,
}

impl From<&Plan> for DetailsView {
    fn from(plan: &Plan) -> DetailsView {
        let view = DetailsView::of(&plan.details);
        if plan.plan_type == PlanType::Base { view } else { DetailsView { networks: Vec::new(), ..view } }
    }
}

impl DetailsView {
    fn of(details: &Details) -> DetailsView {
        let details = details.clone();
        DetailsView {
            networks: details.by_country().map(CountryNetworksView::of).collect(),
            kind: details.kind.map(PlanKindWord),
            fair_use: details.fair_use,
            speed: details.speed,
            activation_policy: details.activation_policy,
            hotspot: details.hotspot,
            exit_country: details.exit_country,
            top_up: details.top_up,
            kyc_required: details.kyc_required,
        }
    }

    /// Without networks if these are long.
    fn in_brief(self) -> Result<DetailsView> {
        let written = serde_json::to_string(&self.networks).map_err(Error::fault)?;
        Ok(if written.len() > BRIEF_BYTES { DetailsView { networks: Vec::new(), ..self } } else { self })
    }
}

impl CountryNetworksView {
    fn of((country, carriers): (&str, &[Carrier])) -> CountryNetworksView {
        let operator = |carrier: &Carrier| OperatorView {
            name: carrier.operator.clone(),
            technologies: carrier.technologies.clone(),
        };
        CountryNetworksView { country: country.into(), operators: carriers.iter().map(operator).collect() }
    }
}

/// How much of the details is written.
#[derive(Clone, Copy)]
pub enum Length {
    Whole,
    Brief,
}

/// Details as the last members of a plan, each written once: a snapshot shares equal ones between its plans.
pub struct Members {
    length: Length,
    written: HashMap<(*const Details, PlanType), Arc<str>>,
}

impl Members {
    pub fn new(length: Length) -> Members {
        Members { length, written: HashMap::new() }
    }

    /// What follows the other members of this plan: nothing, or a comma and more members.
    pub fn of(&mut self, plan: &Plan) -> Result<Arc<str>> {
        let key = (Arc::as_ptr(&plan.details), plan.plan_type);
        if let Some(known) = self.written.get(&key) {
            return Ok(known.clone());
        }
        let view = match self.length {
            Length::Whole => DetailsView::from(plan),
            Length::Brief => DetailsView::from(plan).in_brief()?,
        };
        let object = serde_json::to_string(&view).map_err(Error::fault)?;
        let inner = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        let members: Arc<str> = if inner.is_empty() { "".into() } else { format!(",{inner}").into() };
        self.written.insert(key, members.clone());
        Ok(members)
    }
}
