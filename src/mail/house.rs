//! Who writes: what every mail shows of the operator, and in which colours. The name stands there as text and the logo
//! does not: mail clients load no pictures of strangers, and the logo's address changes with the pages' files, so that
//! an old mail would show a broken one.

use crate::domain::colour::Colour;
use crate::domain::contact::Contact;
use crate::domain::palette::{GROUND, INK, LINE, MUTED, ON_ACCENT, SURFACE, Tone};

#[derive(Clone)]
pub struct House {
    /// Empty where it must not be shown.
    pub name: String,
    pub support: Option<Contact>,
    pub terms_url: Option<String>,
    pub privacy_url: Option<String>,
    /// The operator's company, line by line.
    pub details: Vec<String>,
    /// What a mail of a sandbox is not.
    pub sandbox: Option<&'static str>,
    pub accent: Tone,
}

/// Colours as mails write them.
pub struct Colours {
    pub ground: String,
    pub surface: String,
    pub ink: String,
    pub muted: String,
    pub line: String,
    pub accent: String,
    pub on_accent: String,
}

impl House {
    /// The same house in a mail with a code: people and programs find the code as the only six digits together, so
    /// nothing that has as many is shown beside it.
    pub(super) fn beside_a_code(&self) -> House {
        let fits = |text: &str| !has_six_digits(text);
        House {
            name: Some(self.name.clone()).filter(|name| fits(name)).unwrap_or_default(),
            support: self.support.clone().filter(|support| fits(&support.text)),
            terms_url: self.terms_url.clone().filter(|url| fits(url)),
            privacy_url: self.privacy_url.clone().filter(|url| fits(url)),
            details: self.details.iter().filter(|line| fits(line)).cloned().collect(),
            ..*self
        }
    }

    pub fn light(&self) -> Colours {
        self.colours(|tone| tone.light)
    }

    pub fn dark(&self) -> Colours {
        self.colours(|tone| tone.dark)
    }

    fn colours(&self, of: impl Fn(&Tone) -> Colour) -> Colours {
        let written = |tone| of(tone).rgb();
        Colours {
            ground: written(&GROUND),
            surface: written(&SURFACE),
            ink: written(&INK),
            muted: written(&MUTED),
            line: written(&LINE),
            accent: written(&self.accent),
            on_accent: written(&ON_ACCENT),
        }
    }

    /// The foot of a plain text.
    pub(super) fn foot(&self) -> String {
        let named = |what: &str, text: Option<&str>| text.map(|text| format!("{what}: {text}"));
        let support = self.support.as_ref().map(|support| support.text.as_str());
        let links = [
            named("Help", support),
            named("Terms", self.terms_url.as_deref()),
            named("Privacy", self.privacy_url.as_deref()),
        ];
        let own = Some(self.name.clone()).filter(|name| !name.is_empty());
        let said = self.sandbox.map(str::to_string);
        let lines = own.into_iter().chain(links.into_iter().flatten()).chain(said);
        lines.chain(self.details.iter().cloned()).collect::<Vec<_>>().join("\n")
    }
}

fn has_six_digits(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() >= 6)
}
