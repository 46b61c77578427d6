//! Colours of pages and mails, and whether text in one can be read on another (WCAG 2).

use std::fmt;

/// The least contrast of text.
const LEGIBLE: f64 = 4.5;
/// Of how many parts a shade is moved towards black or white at a time.
const STEPS: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    red: u8,
    green: u8,
    blue: u8,
}

impl Colour {
    pub const BLACK: Colour = Colour::new(0, 0, 0);
    pub const WHITE: Colour = Colour::new(255, 255, 255);

    const fn new(red: u8, green: u8, blue: u8) -> Colour {
        Colour { red, green, blue }
    }

    /// Red, green and blue as hexadecimal digits are written: `0x2450e6`.
    pub const fn of(digits: u32) -> Colour {
        let [_, red, green, blue] = digits.to_be_bytes();
        Colour::new(red, green, blue)
    }

    /// Reads `#2450e6`.
    pub fn parse(text: &str) -> Option<Colour> {
        let digits = text.strip_prefix('#').filter(|rest| rest.len() == 6 && rest.is_ascii())?;
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        // A sign is not a digit, though numbers may have one.
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        Some(Colour::new(part(0)?, part(2)?, part(4)?))
    }

    /// How far apart two colours are in brightness: 1 for none, 21 for black and white.
    pub fn contrast(self, other: Colour) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// The nearest shade towards `end` that can be read as text on `ground`.
    pub fn legible_on(self, ground: Colour, end: Colour) -> Colour {
        (0..=STEPS)
            .map(|step| self.mixed(end, step))
            .find(|shade| shade.contrast(ground) >= LEGIBLE)
            .unwrap_or(end)
    }

    /// As style sheets may also write it: never six digits together, which a mail with a code must not have beside it.
    pub fn rgb(self) -> String {
        format!("rgb({}, {}, {})", self.red, self.green, self.blue)
    }

    fn mixed(self, end: Colour, step: u32) -> Colour {
        let part = |from: u8, to: u8| {
            ((u32::from(from) * (STEPS - step) + u32::from(to) * step + STEPS / 2) / STEPS) as u8
        };
        Colour::new(part(self.red, end.red), part(self.green, end.green), part(self.blue, end.blue))
    }

    fn luminance(self) -> f64 {
        let part = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(self.red) + 0.7152 * part(self.green) + 0.0722 * part(self.blue)
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_read_as_style_sheets_write_them() {
        assert_eq!(Colour::parse("#2450E6").unwrap().to_string(), "#2450e6");
        assert_eq!(Colour::of(0x2450e6), Colour::parse("#2450e6").unwrap());
        assert_eq!(Colour::of(0x123456).rgb(), "rgb(18, 52, 86)");
        for wrong in ["", "#", "#fff", "2450e6", "#2450e", "#2450e6f", "#24g0e6", "#+10203", "#ä50e6", "red"]
        {
            assert_eq!(Colour::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn black_and_white_are_furthest_apart() {
        assert!((Colour::BLACK.contrast(Colour::WHITE) - 21.0).abs() < 0.01);
        assert!((Colour::WHITE.contrast(Colour::WHITE) - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        let blue = Colour::parse("#2450e6").unwrap();
        assert_eq!(blue.legible_on(Colour::WHITE, Colour::BLACK), blue);
        let yellow = Colour::parse("#ffe600").unwrap();
        assert_ne!(yellow.legible_on(Colour::WHITE, Colour::BLACK), yellow);
    }

    proptest! {
        #[test]
        fn any_accent_can_be_made_legible(red: u8, green: u8, blue: u8) {
            let accent = Colour::new(red, green, blue);
            for (ground, end) in [(Colour::WHITE, Colour::BLACK), (Colour::BLACK, Colour::WHITE)] {
                prop_assert!(accent.legible_on(ground, end).contrast(ground) >= LEGIBLE);
            }
        }
    }
}
