//! What every page says of the house: its name, its mark, whom to ask; and the files that pages are made with. The files
//! lie under a path that changes with them, so that a browser may keep them for ever.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;

use axum::body::Bytes;

use crate::config::{Brand, Mode, Settings};
use crate::domain::contact::Contact;
use crate::domain::palette::{self, Tone};
use crate::vault;

const STYLE: &str = include_str!("../../../assets/style.css");
const FAVICON: &str = include_str!("../../../assets/favicon.svg");

/// By the last part of their paths.
const SCRIPTS: &[(&str, &str)] = &[
    ("copy.js", include_str!("../../../assets/js/copy.js")),
    ("countdown.js", include_str!("../../../assets/js/countdown.js")),
    ("docs-search.js", include_str!("../../../assets/js/docs-search.js")),
    ("docs-try.js", include_str!("../../../assets/js/docs-try.js")),
    ("file.js", include_str!("../../../assets/js/file.js")),
    ("filter.js", include_str!("../../../assets/js/filter.js")),
    ("live.js", include_str!("../../../assets/js/live.js")),
    ("parts.js", include_str!("../../../assets/js/parts.js")),
    ("poll.js", include_str!("../../../assets/js/poll.js")),
    ("times.js", include_str!("../../../assets/js/times.js")),
];

pub struct Site {
    pub name: String,
    pub sandbox: bool,
    /// Whether the landing page sells plans.
    pub storefront: bool,
    /// The path of the operator's logo.
    pub logo: Option<String>,
    /// The folder of all files.
    pub assets: String,
    pub support: Option<Contact>,
    pub terms_url: Option<String>,
    pub privacy_url: Option<String>,
    files: BTreeMap<&'static str, File>,
}

#[derive(Clone)]
pub struct File {
    pub content_type: &'static str,
    pub bytes: Bytes,
}

impl Site {
    pub fn new(settings: &Settings) -> Site {
        let brand = &settings.brand;
        let mut files = BTreeMap::new();
        let mut add = |name, content_type, bytes: Bytes| files.insert(name, File { content_type, bytes });
        add("style.css", "text/css; charset=utf-8", style(brand).into());
        for (name, code) in SCRIPTS {
            add(name, "text/javascript; charset=utf-8", Bytes::from_static(code.as_bytes()));
        }
        let favicon = FAVICON.replace("ACCENT", &brand.accents().0.to_string());
        add("favicon.svg", "image/svg+xml", favicon.into());
        if let Some(logo) = &brand.logo {
            add("logo", logo.content_type, logo.bytes.clone().into());
        }
        let assets = format!("/assets/{}", fingerprint(&files));
        Site {
            name: brand.name.clone(),
            sandbox: settings.mode == Mode::Sandbox,
            storefront: brand.storefront,
            logo: brand.logo.is_some().then(|| format!("{assets}/logo")),
            assets,
            support: settings.support_contact.as_deref().map(Contact::read),
            terms_url: brand.terms_url.clone(),
            privacy_url: brand.privacy_url.clone(),
            files,
        }
    }

    pub fn file(&self, name: &str) -> Option<&File> {
        self.files.get(name)
    }
}

/// Templates find it by its name, without each page handing it on.
impl askama::Values for Site {
    fn get_value<'a>(&'a self, key: &str) -> Option<&'a dyn Any> {
        (key == "site").then_some(self as &dyn Any)
    }
}

/// A short name of all files as they are now.
fn fingerprint(files: &BTreeMap<&'static str, File>) -> String {
    let mut all = String::new();
    for (name, file) in files {
        let hash = vault::hex(&vault::hash_bytes(&file.bytes));
        writeln!(all, "{name} {hash}").expect("writing to a text does not fail");
    }
    vault::hex(&vault::hash_secret(&all)[..8])
}

/// All colours, with the operator's own.
pub fn tones(brand: &Brand) -> Vec<Tone> {
    let (light, dark) = brand.accents();
    palette::ALL.into_iter().chain([Tone { name: "accent", light, dark }]).collect()
}

/// The style sheet with its colours: the system chooses between light and dark, unless the page does.
fn style(brand: &Brand) -> String {
    let (mut light, mut dark) = (String::from("color-scheme:light;"), String::from("color-scheme:dark;"));
    for tone in tones(brand) {
        write!(light, "--{}:{};", tone.name, tone.light).expect("writing to a text does not fail");
        write!(dark, "--{}:{};", tone.name, tone.dark).expect("writing to a text does not fail");
    }
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n{STYLE}"
    )
}

#[cfg(test)]
mod tests {
    use crate::config::accents;
    use crate::domain::colour::Colour;
    use crate::domain::palette::{GROUND, ON_ACCENT, SURFACE};

    fn colour(text: &str) -> Colour {
        Colour::parse(text).unwrap()
    }

    #[test]
    fn any_accent_carries_its_text() {
        for chosen in ["#ffe600", "#000000", "#ffffff", "#ff00aa", "#2450e6", "#00ff66"] {
            let (light, dark) = accents(Some(colour(chosen)));
            for other in [ON_ACCENT, GROUND, SURFACE] {
                assert!(light.contrast(other.light) >= 4.5, "{chosen}: {light} and {}", other.name);
                assert!(dark.contrast(other.dark) >= 4.5, "{chosen}: {dark} and {}, dark", other.name);
            }
        }
    }
}
