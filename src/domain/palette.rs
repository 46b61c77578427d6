//! The colours of pages and mails, each by its name, in light and in dark. Only the accent is the operator's own.

use super::colour::Colour;

#[derive(Clone, Copy)]
pub struct Tone {
    pub name: &'static str,
    pub light: Colour,
    pub dark: Colour,
}

const fn tone(name: &'static str, light: u32, dark: u32) -> Tone {
    Tone { name, light: Colour::of(light), dark: Colour::of(dark) }
}

pub const GROUND: Tone = tone("ground", 0xf6f8fb, 0x0b1020);
pub const SURFACE: Tone = tone("surface", 0xffffff, 0x131b30);
pub const INK: Tone = tone("ink", 0x0f172a, 0xe9eef8);
pub const MUTED: Tone = tone("muted", 0x55617a, 0x9fabc5);
pub const LINE: Tone = tone("line", 0xe2e8f0, 0x26324f);
pub const EDGE: Tone = tone("edge", 0x76839c, 0x6b7ba0);
pub const GOOD: Tone = tone("good", 0x0b7a4b, 0x4cc38a);
pub const CAUTION: Tone = tone("caution", 0x8f5a00, 0xe2b04a);
pub const BAD: Tone = tone("bad", 0xb3261e, 0xff8f87);
/// What is written on the accent.
pub const ON_ACCENT: Tone = tone("on-accent", 0xffffff, 0x0b1020);

pub const ALL: [Tone; 10] = [GROUND, SURFACE, INK, MUTED, LINE, EDGE, GOOD, CAUTION, BAD, ON_ACCENT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_text_is_legible_on_both_grounds() {
        for text in [INK, MUTED, GOOD, CAUTION, BAD] {
            for ground in [GROUND, SURFACE] {
                assert!(text.light.contrast(ground.light) >= 4.5, "{} on {}", text.name, ground.name);
                assert!(text.dark.contrast(ground.dark) >= 4.5, "{} on {}, dark", text.name, ground.name);
            }
        }
    }

    #[test]
    fn the_edge_of_a_field_can_be_seen() {
        assert!(EDGE.light.contrast(SURFACE.light) >= 3.0);
        assert!(EDGE.dark.contrast(SURFACE.dark) >= 3.0);
    }
}
