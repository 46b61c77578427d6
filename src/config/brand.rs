//! How the operator presents themselves: on every page and in every mail.

use std::fs;
use std::path::Path;

use super::{ConfigError, Mode, Raw, Spec, flag, spec};
use crate::domain::colour::Colour;

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("brand_name", "", "your name on pages and in mails (default: simgate sandbox, or the host of checkout_url in live mode)"),
    spec("brand_logo", "", "file with your logo, SVG or PNG, at most 100 kB; it is shown 28 pixels high"),
    spec("brand_accent", "", "colour of buttons and links, like #2450e6; it is darkened or lightened where text could not be read"),
    spec("brand_details", "", "your company as receipts name it: name, address, tax number; lines are separated by |"),
    spec("terms_url", "", "address of your terms, for the foot of pages and mails"),
    spec("privacy_url", "", "address of your privacy notice, for the foot of pages and mails"),
    spec("storefront", "true", "whether the page at / sells plans to visitors"),
];

const LOGO_BYTES: usize = 100_000;
const NAME_CHARS: usize = 60;
/// The accent of the neutral look, in light and in dark.
const ACCENT: (&str, &str) = ("#2450e6", "#8aa4ff");
/// What an accent must be legible on, in light and in dark.
const GROUNDS: (&str, &str) = ("#f6f8fb", "#131b30");
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

#[derive(Clone)]
pub struct Brand {
    pub name: String,
    pub logo: Option<Logo>,
    pub accent: Option<Colour>,
    /// Line by line.
    pub details: Vec<String>,
    pub terms_url: Option<String>,
    pub privacy_url: Option<String>,
    pub storefront: bool,
}

#[derive(Clone)]
pub struct Logo {
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Brand {
    pub fn check(raw: &Raw, mode: Mode, checkout_url: &str) -> Result<Brand, ConfigError> {
        let name = raw.parse("brand_name", "must have 1 to 60 printable characters", |text| {
            let text = text.trim();
            let fits =
                (1..=NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control);
            fits.then(|| text.to_string())
        })?;
        let host = checkout_url.split_once("://").map_or(checkout_url, |(_, host)| host);
        let usual = || match mode {
            Mode::Sandbox => "simgate sandbox".to_string(),
            Mode::Live => host.to_string(),
        };
        let link =
            |name| raw.parse(name, "must start with http:// or https:// and have no spaces", web_address);
        let details = raw.parse("brand_details", "must have at most 500 printable characters", |text| {
            let is_plain = text.chars().count() <= 500 && !text.chars().any(|c| c.is_control() && c != '\n');
            let lines = text.split(['|', '\n']).map(str::trim).filter(|line| !line.is_empty());
            is_plain.then(|| lines.map(str::to_string).collect())
        })?;
        Ok(Brand {
            name: name.unwrap_or_else(usual),
            logo: raw.parse("brand_logo", "must be an SVG or PNG file of at most 100 kB", logo)?,
            accent: raw.parse("brand_accent", "must be a colour like #2450e6", Colour::parse)?,
            details: details.unwrap_or_default(),
            terms_url: link("terms_url")?,
            privacy_url: link("privacy_url")?,
            storefront: raw.require("storefront", "must be true or false", flag)?,
        })
    }

    /// The accent in light and in dark.
    pub fn accents(&self) -> (Colour, Colour) {
        accents(self.accent)
    }
}

/// An accent in light and in dark, each legible where it stands.
pub fn accents(chosen: Option<Colour>) -> (Colour, Colour) {
    let known = |text| Colour::parse(text).unwrap_or(Colour::BLACK);
    let Some(chosen) = chosen else { return (known(ACCENT.0), known(ACCENT.1)) };
    (chosen.legible_on(known(GROUNDS.0), Colour::BLACK), chosen.legible_on(known(GROUNDS.1), Colour::WHITE))
}

fn web_address(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let is_plain = text.len() <= 500 && text.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && !rest.is_empty()).then(|| text.to_string())
}

fn logo(path: &str) -> Option<Logo> {
    let bytes = fs::read(Path::new(path)).ok().filter(|bytes| bytes.len() <= LOGO_BYTES)?;
    let is_svg = || std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("<svg"));
    let content_type = match bytes.starts_with(PNG) {
        true => "image/png",
        false if is_svg() => "image/svg+xml",
        false => return None,
    };
    Some(Logo { content_type, bytes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn brand(given: &[(&str, &str)]) -> Result<Brand, ConfigError> {
        let flags: BTreeMap<String, String> =
            given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let raw = Raw::collect(&flags, std::iter::empty(), None).unwrap();
        raw.told(Brand::check(&raw, Mode::Sandbox, "https://shop.example"))
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, value) in [
            ("brand_name", "x\u{7}"),
            ("brand_logo", "/nowhere.svg"),
            ("brand_accent", "blue"),
            ("terms_url", "javascript:alert(1)"),
            ("privacy_url", "https://a b"),
            ("storefront", "maybe"),
        ] {
            let told = brand(&[(name, value)]).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(name), "{name}: {told}");
        }
    }

    #[test]
    fn a_logo_is_known_by_what_it_holds() {
        let path = std::env::temp_dir().join(format!("simgate_logo_{:x}", crate::vault::random() as u64));
        for (bytes, kind) in [
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>".as_slice(), Some("image/svg+xml")),
            (b"\x89PNG\r\n\x1a\n...".as_slice(), Some("image/png")),
            (b"<html>".as_slice(), None),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(logo(path.to_str().unwrap()).map(|logo| logo.content_type), kind);
        }
        fs::write(&path, vec![b' '; LOGO_BYTES + 1]).unwrap();
        assert!(logo(path.to_str().unwrap()).is_none());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn details_are_lines() {
        let brand = brand(&[("brand_details", "Acme Ltd | 1 High Street |VAT 12")]).unwrap();
        assert_eq!(brand.details, ["Acme Ltd", "1 High Street", "VAT 12"]);
        assert_eq!(brand.name, "simgate sandbox");
    }
}
