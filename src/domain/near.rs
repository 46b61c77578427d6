//! What was meant by a word that is misspelt: of a field, a parameter, a setting or a place.

/// The name that was meant, if one is near: written in another case or with other punctuation, with a typing error or
/// two, or without the beginning or the end that it has (`maxPrice` for `maxPriceUsd`), or with one that it has not.
pub fn meant<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let word = plain(word);
    let far = |name: &str| {
        let name = plain(name);
        match edits(&word, &name, forgiven(word.len().min(name.len()))) {
            Some(few) => Some(few),
            None if is_part(&word, &name) => Some(MOST_EDITS + word.len().abs_diff(name.len())),
            None => None,
        }
    };
    names
        .iter()
        .copied()
        .filter_map(|name| Some((far(name)?, name)))
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
        .or_else(|| names.iter().copied().find(|name| are_alike(&word, &plain(name))))
}

/// Names that other services have for the same thing, as `plain` writes them.
const ALIKE: &[&[&str]] = &[
    &["otp", "code", "pin"],
    &["packagecode", "plan", "plancode", "planid", "sku"],
    &["partnerrefid", "reference", "externalid", "idempotencykey"],
    &["discountcode", "coupon", "couponcode", "promocode"],
];

fn are_alike(one: &str, other: &str) -> bool {
    ALIKE.iter().any(|names| names.contains(&one) && names.contains(&other))
}

const MOST_EDITS: usize = 2;
/// A shorter word stands in too many names.
const LEAST_PART: usize = 4;

/// Whether one of them is the beginning or the end of the other, and at least half of it.
fn is_part(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    short.len() >= LEAST_PART
        && long.len() <= short.len() * 2
        && (long.starts_with(short) || long.ends_with(short))
}

/// A name in lower case and without punctuation, which people write in different ways.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(LONGEST).collect()
}

/// How many typing errors are forgiven in a word of this many letters.
pub fn forgiven(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 1,
        _ => MOST_EDITS,
    }
}

/// The fewest edits from one word to another, if that is at most `most`: letters left out, added, changed, or two
/// neighbours exchanged.
pub fn edits(from: &str, to: &str, most: usize) -> Option<usize> {
    if from.is_ascii() && to.is_ascii() {
        return letter_edits(from.as_bytes(), to.as_bytes(), most);
    }
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    letter_edits(&from, &to, most)
}

/// Longer than any name, or any misspelling of one.
const LONGEST: usize = 64;

fn letter_edits<T: PartialEq>(from: &[T], to: &[T], most: usize) -> Option<usize> {
    if from.len().abs_diff(to.len()) > most || to.len() >= LONGEST {
        return None;
    }
    let mut before_last = [0; LONGEST];
    let mut last: [usize; LONGEST] = std::array::from_fn(|j| j);
    for i in 1..=from.len() {
        let mut row = [i; LONGEST];
        for j in 1..=to.len() {
            let changed = last[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        // Both rows are too far already: the next can only be farther.
        if row[..=to.len()].iter().chain(&last[..=to.len()]).all(|fewest| *fewest > most) {
            return None;
        }
        (before_last, last) = (last, row);
    }
    Some(last[to.len()]).filter(|fewest| *fewest <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_known_again() {
        let order = ["packageCode", "partnerRefId", "maxPriceUsd"];
        let checkout = [
            "packageCode",
            "preferredNetwork",
            "preferredCurrency",
            "customerEmail",
            "discountCode",
            "payWith",
        ];
        for (word, names, name) in [
            ("maxPrice", &order[..], Some("maxPriceUsd")),
            ("max_price_usd", &order, Some("maxPriceUsd")),
            ("MAXPRICEUSD", &order, Some("maxPriceUsd")),
            ("maxPriceUSDT", &order, Some("maxPriceUsd")),
            ("partnerRef", &order, Some("partnerRefId")),
            ("partnerReferenceId", &order, None),
            ("partner-ref-id", &order, Some("partnerRefId")),
            ("pakageCode", &order, Some("packageCode")),
            ("package", &order, Some("packageCode")),
            ("quantity", &order, None),
            ("code", &order, None),
            ("id", &order, None),
            ("", &order, None),
            ("日本", &order, None),
            ("email", &checkout, None),
            ("customer_mail", &checkout, Some("customerEmail")),
            ("discount", &checkout, Some("discountCode")),
            ("prefferedNetwork", &checkout, Some("preferredNetwork")),
            ("paywith", &checkout, Some("payWith")),
            ("amount", &["amountUsd", "currency", "network"], Some("amountUsd")),
            ("contry", &["country", "type", "query"], Some("country")),
            ("code", &["email", "otp", "agentName"], Some("otp")),
            ("OTP", &["email", "code"], Some("code")),
            ("plan", &order, Some("packageCode")),
            ("idempotency_key", &order, Some("partnerRefId")),
            ("coupon", &checkout, Some("discountCode")),
        ] {
            assert_eq!(meant(word, names), name, "{word}");
        }
        assert_eq!(meant(&"maxPriceUsd".repeat(9_000), &order), None);
    }

    #[test]
    fn edits_are_counted_with_exchanged_neighbours() {
        for (from, to, fewest) in [
            ("germny", "germany", Some(1)),
            ("itlay", "italy", Some(1)),
            ("spain", "spain", Some(0)),
            ("carribean", "caribbean", Some(2)),
            ("japan", "", None),
            ("north", "south", Some(2)),
            ("peru", "china", None),
        ] {
            assert_eq!(edits(from, to, 2), fewest, "{from} {to}");
            assert_eq!(edits(to, from, 2), fewest, "{to} {from}");
        }
        assert_eq!(edits("north", "south", 1), None);
        assert_eq!(edits("日本", "日木", 1), Some(1));
        assert_eq!(edits(&"a".repeat(99), &"a".repeat(99), 2), None);
    }
}
