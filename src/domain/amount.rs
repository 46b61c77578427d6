//! Amounts in the currency that a supplier bills in: whole millionths of its unit, like `Usd`.

use std::fmt;

use super::money::{MoneyError, Usd};

/// Three capital letters, as ISO 4217 has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fiat([u8; 3]);

impl Fiat {
    pub const USD: Fiat = Fiat(*b"USD");

    pub fn parse(text: &str) -> Option<Fiat> {
        let letters: [u8; 3] = text.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_uppercase).then_some(Fiat(letters))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Fiat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Fiat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    pub micros: i64,
    pub currency: Fiat,
}

impl Amount {
    pub fn usd(amount: Usd) -> Amount {
        Amount { micros: amount.micros(), currency: Fiat::USD }
    }

    /// Reads a number of units as text, digit by digit.
    pub fn parse(text: &str, currency: Fiat) -> Result<Amount, MoneyError> {
        Ok(Amount { micros: Usd::parse(text)?.micros(), currency })
    }

    /// The dollars that it is; `None` for another currency.
    pub fn in_usd(self) -> Option<Usd> {
        (self.currency == Fiat::USD).then_some(Usd::from_micros(self.micros))
    }
}

impl From<Usd> for Amount {
    fn from(amount: Usd) -> Amount {
        Amount::usd(amount)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Usd::from_micros(self.micros).priced(), self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currencies_are_three_capitals() {
        assert_eq!(Fiat::parse("EUR").map(|currency| currency.to_string()), Some("EUR".into()));
        for wrong in ["", "eur", "EURO", "E1R", "€€"] {
            assert_eq!(Fiat::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn amounts_keep_their_currency() {
        let euros = Amount::parse("12.5", Fiat::parse("EUR").unwrap()).unwrap();
        assert_eq!((euros.to_string().as_str(), euros.in_usd()), ("12.50 EUR", None));
        assert_eq!(Amount::usd(Usd::dollars(3)).in_usd(), Some(Usd::dollars(3)));
    }
}
