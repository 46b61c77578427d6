//! What every page says of the house: its name, its mark, whom to ask; and the files that pages are made with. The files
//! lie under a path that changes with them, so that a browser may keep them for ever.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;

use axum::body::Bytes;

use crate::config::{Brand, Mode, Settings};
use crate::domain::email::Email;
use crate::vault;

const STYLE: &str = include_str!("../../../assets/style.css");
const FAVICON: &str = include_str!("../../../assets/favicon.svg");

/// By the last part of their paths.
const SCRIPTS: &[(&str, &str)] = &[
    ("copy.js", include_str!("../../../assets/js/copy.js")),
    ("countdown.js", include_str!("../../../assets/js/countdown.js")),
    ("docs-search.js", include_str!("../../../assets/js/docs-search.js")),
    ("docs-try.js", include_str!("../../../assets/js/docs-try.js")),
    ("live.js", include_str!("../../../assets/js/live.js")),
    ("parts.js", include_str!("../../../assets/js/parts.js")),
    ("times.js", include_str!("../../../assets/js/times.js")),
];

/// The colours by their names, in light and in dark.
const COLOURS: &[(&str, &str, &str)] = &[
    ("ground", "#f6f8fb", "#0b1020"),
    ("surface", "#ffffff", "#131b30"),
    ("ink", "#0f172a", "#e9eef8"),
    ("muted", "#55617a", "#9fabc5"),
    ("line", "#e2e8f0", "#26324f"),
    ("edge", "#76839c", "#6b7ba0"),
    ("good", "#0b7a4b", "#4cc38a"),
    ("caution", "#8f5a00", "#e2b04a"),
    ("bad", "#b3261e", "#ff8f87"),
];
/// A colour of the style sheet.
pub struct Colour {
    pub name: &'static str,
    pub light: String,
    pub dark: String,
}

/// What is written on the accent.
const ON_ACCENT: (&str, &str) = ("#ffffff", "#0b1020");

pub struct Site {
    pub name: String,
    pub sandbox: bool,
    /// The path of the operator's logo.
    pub logo: Option<String>,
    /// The folder of all files.
    pub assets: String,
    pub support: Option<Contact>,
    pub terms_url: Option<String>,
    pub privacy_url: Option<String>,
    files: BTreeMap<&'static str, File>,
}

/// Whom to ask.
pub struct Contact {
    /// `None` when the operator wrote something that is no address.
    pub href: Option<String>,
    pub text: String,
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
            logo: brand.logo.is_some().then(|| format!("{assets}/logo")),
            assets,
            support: settings.support_contact.as_deref().map(contact),
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

fn contact(text: &str) -> Contact {
    let href = match Email::parse(text.strip_prefix("mailto:").unwrap_or(text)) {
        Some(email) => Some(format!("mailto:{email}")),
        None => {
            Some(text.to_string()).filter(|text| text.starts_with("https://") || text.starts_with("http://"))
        }
    };
    Contact { href, text: text.strip_prefix("mailto:").unwrap_or(text).to_string() }
}

/// All colours, with those that follow from the operator's own.
pub fn colours(brand: &Brand) -> Vec<Colour> {
    let (light, dark) = brand.accents();
    let fixed = COLOURS.iter().chain([&("on-accent", ON_ACCENT.0, ON_ACCENT.1)]);
    let mut all: Vec<Colour> = fixed
        .map(|(name, light, dark)| Colour { name, light: light.to_string(), dark: dark.to_string() })
        .collect();
    all.push(Colour { name: "accent", light: light.to_string(), dark: dark.to_string() });
    all
}

/// The style sheet with its colours: the system chooses between light and dark, unless the page does.
fn style(brand: &Brand) -> String {
    let (mut light, mut dark) = (String::from("color-scheme:light;"), String::from("color-scheme:dark;"));
    for Colour { name, light: in_light, dark: in_dark } in colours(brand) {
        write!(light, "--{name}:{in_light};").expect("writing to a text does not fail");
        write!(dark, "--{name}:{in_dark};").expect("writing to a text does not fail");
    }
    format!(
        ":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         :root[data-theme=dark]{{{dark}}}\n{STYLE}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::accents;
    use crate::domain::colour;

    fn colour(text: &str) -> colour::Colour {
        colour::Colour::parse(text).unwrap()
    }

    #[test]
    fn every_colour_of_text_is_legible_on_both_grounds() {
        for (name, light, dark) in COLOURS.iter().copied() {
            if ["ground", "surface", "line", "edge"].contains(&name) {
                continue;
            }
            for (text, grounds) in
                [(light, [COLOURS[0].1, COLOURS[1].1]), (dark, [COLOURS[0].2, COLOURS[1].2])]
            {
                for ground in grounds {
                    assert!(colour(text).contrast(colour(ground)) >= 4.5, "{name} {text} on {ground}");
                }
            }
        }
    }

    #[test]
    fn the_edge_of_a_field_can_be_seen() {
        let (_, light, dark) = COLOURS.iter().find(|(name, ..)| *name == "edge").unwrap();
        assert!(colour(light).contrast(colour("#ffffff")) >= 3.0);
        assert!(colour(dark).contrast(colour("#131b30")) >= 3.0);
    }

    #[test]
    fn any_accent_carries_its_text() {
        for chosen in ["#ffe600", "#000000", "#ffffff", "#ff00aa", "#2450e6", "#00ff66"] {
            let (light, dark) = accents(Some(colour(chosen)));
            for (accent, others) in [
                (light, [ON_ACCENT.0, COLOURS[0].1, COLOURS[1].1]),
                (dark, [ON_ACCENT.1, COLOURS[0].2, COLOURS[1].2]),
            ] {
                for other in others {
                    assert!(accent.contrast(colour(other)) >= 4.5, "{chosen}: {accent} and {other}");
                }
            }
        }
    }

    #[test]
    fn whom_to_ask_is_a_link_when_it_can_be_one() {
        for (text, href, shown) in [
            ("help@shop.example", Some("mailto:help@shop.example"), "help@shop.example"),
            ("https://shop.example/help", Some("https://shop.example/help"), "https://shop.example/help"),
            ("call 123", None, "call 123"),
            ("javascript:alert(1)", None, "javascript:alert(1)"),
        ] {
            let found = contact(text);
            assert_eq!((found.href.as_deref(), &*found.text), (href, shown));
        }
    }
}
