//! Coupons: when a coupon is valid, for what, and how much it takes off a price; and the life of each of its uses. A
//! use is reserved by a checkout, spent by a payment, and given back when the purchase fails.

use std::fmt;

use super::client::Shares;
use super::money::Usd;
use super::plan::PlanType;
use super::text;
use super::time::Time;
use super::words::words;

/// No coupon makes a plan cheaper than this.
pub const LEAST_PRICE: Usd = Usd::from_micros(500_000);
/// How much less than the price a payment may be.
const SPARE: Usd = Usd::from_micros(10_000);
pub const CODE_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 300;
/// Official codes with this beginning are never advertised: only buyers who know them can use them.
pub const UNTOLD: &str = "SAVE20";

/// How many invalid codes may be tried within `GUESS_MS`: a code is short enough to guess.
pub const WRONG_OF_ACCOUNT: i64 = 20;
pub const WRONG_FROM: Shares = Shares { client: 300, site: 600, area: 1_200 };
pub const GUESS_MS: i64 = 3_600_000;
/// How many uses of a coupon a guest may have reserved at a time, by network address.
pub const HELD_BY_GUEST: Shares = Shares { client: 2, site: 4, area: 8 };
/// How many uses an account may have reserved at a time.
pub const HELD_BY_ACCOUNT: i64 = 2;

/// A code in the one spelling that is stored: codes match in any case.
pub fn normal(text: &str) -> String {
    text.trim().to_ascii_uppercase()
}

/// A code that a coupon may have: one that can be typed, read out and put into a link.
pub fn parse_code(text: &str) -> Option<String> {
    let code = normal(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=CODE_CHARS).contains(&code.len()).then_some(())?;
    code.chars().all(plain).then_some(code)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discount {
    /// 1 to 100.
    Percent(i64),
    Fixed(Usd),
}

impl Discount {
    fn of(self, price: Usd) -> Usd {
        match self {
            Discount::Percent(percent) => price.percent(percent),
            Discount::Fixed(amount) => amount,
        }
    }
}

impl fmt::Display for Discount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Discount::Percent(percent) => write!(f, "{percent}% off"),
            Discount::Fixed(amount) => write!(f, "{amount} USD off"),
        }
    }
}

words! {
    pub enum CouponStatus {
        Active = "ACTIVE",
        Scheduled = "SCHEDULED",
        Ended = "ENDED",
        UsedUp = "USED_UP",
        Disabled = "DISABLED",
    }
}

words! {
    /// Where a coupon can be used.
    pub enum Applicability: ALL, parse {
        General = "GENERAL",
        /// Only in the mobile app: refused at every door of this gateway.
        MobileApp = "MOBILE_APP",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coupon {
    pub code: String,
    pub discount: Discount,
    /// Handed out by a third party to its own audience: it works, but we never advertise it.
    pub affiliate: bool,
    pub applicability: Applicability,
    pub package_code: Option<String>,
    /// Only for plans that cover this country.
    pub country: Option<String>,
    /// Only for plans that cost at least this much before the discount.
    pub min_price: Option<Usd>,
    pub starts_at: Option<Time>,
    /// The first moment at which it is no longer valid.
    pub ends_at: Option<Time>,
    pub uses: Option<i64>,
    pub uses_per_user: Option<i64>,
    /// It may take a price below what the plan costs us.
    pub below_cost: bool,
    pub description: String,
    /// Uses that are reserved or spent.
    pub used: i64,
    /// Uses that guests have reserved.
    pub held_by_guests: i64,
    pub created_at: Time,
    pub disabled_at: Option<Time>,
}

/// What a coupon is used for, at its price before the discount.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub package_code: &'a str,
    pub plan_type: PlanType,
    pub countries: &'a [String],
    pub price: Usd,
    pub cost: Usd,
}

impl Coupon {
    /// An unrestricted coupon; callers restrict it.
    pub fn new(code: String, discount: Discount, now: Time) -> Coupon {
        Coupon {
            code,
            discount,
            affiliate: false,
            applicability: Applicability::General,
            package_code: None,
            country: None,
            min_price: None,
            starts_at: None,
            ends_at: None,
            uses: None,
            uses_per_user: None,
            below_cost: false,
            description: discount.to_string(),
            used: 0,
            held_by_guests: 0,
            created_at: now,
            disabled_at: None,
        }
    }

    /// The coupon in words for people: the visible part of its description, or else its discount.
    pub fn in_words(&self) -> String {
        let seen = text::visible(&self.description, DESCRIPTION_CHARS);
        if seen.is_empty() { self.discount.to_string() } else { seen }
    }

    pub fn status(&self, now: Time) -> CouponStatus {
        if self.disabled_at.is_some() {
            CouponStatus::Disabled
        } else if self.ends_at.is_some_and(|end| end <= now) {
            CouponStatus::Ended
        } else if self.starts_at.is_some_and(|start| now < start) {
            CouponStatus::Scheduled
        } else if self.uses.is_some_and(|uses| uses <= self.used) {
            CouponStatus::UsedUp
        } else {
            CouponStatus::Active
        }
    }

    /// Whether a buyer who has used it this often may take a use now. `None` is an unknown buyer, who cannot use a
    /// coupon that counts uses by person.
    pub fn has_use_for(&self, used_by_buyer: Option<i64>, now: Time) -> bool {
        let own_left = match (self.uses_per_user, used_by_buyer) {
            (None, _) => true,
            (Some(uses), Some(used)) => used < uses,
            (Some(_), None) => false,
        };
        self.status(now) == CouponStatus::Active && own_left
    }

    /// Whether guests may reserve one more use. They hold at most half of the uses that are neither spent nor reserved
    /// by others, so that nobody can block them all for free; but a guest may have the last one.
    pub fn has_use_for_guests(&self) -> bool {
        match self.uses {
            Some(uses) => {
                let within_reach = uses - self.used + self.held_by_guests;
                self.held_by_guests < (within_reach / 2).max(1)
            }
            None => true,
        }
    }

    /// What it takes off, in whole cents; `None` when it is not valid for this item, or would take off nothing.
    pub fn takes_off(&self, item: &Item, used_by_buyer: Option<i64>, now: Time) -> Option<Usd> {
        if !self.has_use_for(used_by_buyer, now) || !self.fits(item) {
            return None;
        }
        // A payment may be a cent less than the price: rounded, or to make the amount unique.
        let covered = item.cost.plus(SPARE);
        let least = if self.below_cost { LEAST_PRICE } else { LEAST_PRICE.max(covered) };
        let most = item.price.minus(least);
        let off = self.discount.of(item.price).min(most).whole_cents();
        off.is_positive().then_some(off)
    }

    fn fits(&self, item: &Item) -> bool {
        let usable_here = match self.applicability {
            Applicability::General => true,
            Applicability::MobileApp => false,
        };
        usable_here
            && item.plan_type == PlanType::Base
            && self.package_code.as_ref().is_none_or(|code| code == item.package_code)
            && self.country.as_ref().is_none_or(|country| item.countries.contains(country))
            && self.min_price.is_none_or(|least| least <= item.price)
    }
}

/// A coupon on a purchase, and what it took off the price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub code: String,
    pub discount: Usd,
}

/// What a coupon took off, if there was one.
pub fn discount(applied: Option<&Applied>) -> Usd {
    applied.map_or(Usd::ZERO, |applied| applied.discount)
}

words! {
    pub enum UseState: ALL, parse {
        /// Reserved by a checkout that waits for its payment.
        Reserved = "RESERVED",
        Spent = "SPENT",
        /// Given back: somebody else may have it.
        Returned = "RETURNED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseEvent {
    /// A payer has signed for its checkout.
    Signed,
    Paid,
    /// Its checkout expired, or its order failed or was cancelled.
    GivenBack,
}

impl UseState {
    /// Whether this use is taken, so that nobody else can have it.
    pub fn is_live(self) -> bool {
        match self {
            UseState::Reserved | UseState::Spent => true,
            UseState::Returned => false,
        }
    }

    /// Where an event leads; `None` when this state does not allow it. A late payment takes a returned use again, if
    /// the coupon still has one.
    pub fn after(self, event: UseEvent) -> Option<UseState> {
        use UseEvent::*;
        use UseState::*;
        match (self, event) {
            (Reserved | Returned, Signed) => Some(Reserved),
            (Spent, Signed) => None,
            (Reserved | Returned, Paid) => Some(Spent),
            (Reserved | Spent, GivenBack) => Some(Returned),
            (Spent, Paid) | (Returned, GivenBack) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coupon(discount: Discount) -> Coupon {
        Coupon::new("SUMMER".into(), discount, at(0))
    }

    fn at(second: i64) -> Time {
        Time::from_micros(second * 1_000_000)
    }

    fn cents(cents: i64) -> Usd {
        Usd::from_micros(cents * 10_000)
    }

    fn event() -> impl Strategy<Value = UseEvent> {
        prop::sample::select(vec![UseEvent::Signed, UseEvent::Paid, UseEvent::GivenBack])
    }

    const JAPAN: &[&str] = &["JP", "KR"];

    fn off(coupon: &Coupon, price: Usd, cost: Usd) -> Option<Usd> {
        let countries: Vec<String> = JAPAN.iter().map(ToString::to_string).collect();
        let item =
            Item { package_code: "JP-1GB-7D", plan_type: PlanType::Base, countries: &countries, price, cost };
        coupon.takes_off(&item, Some(0), at(100))
    }

    #[test]
    fn discounts_are_whole_cents_and_leave_cost_and_half_a_dollar() {
        for (discount, below_cost, price, cost, expected) in [
            (Discount::Percent(10), false, cents(449), cents(200), Some(cents(44))),
            (Discount::Percent(33), false, cents(1000), cents(200), Some(cents(330))),
            (Discount::Fixed(Usd::from_micros(1_239_999)), false, cents(449), cents(200), Some(cents(123))),
            (Discount::Percent(100), false, cents(449), cents(200), Some(cents(248))),
            (Discount::Percent(100), false, cents(449), Usd::from_micros(2_001_000), Some(cents(247))),
            (Discount::Percent(100), false, cents(449), cents(20), Some(cents(399))),
            (Discount::Percent(100), true, cents(449), cents(200), Some(cents(399))),
            (Discount::Fixed(cents(9_999)), true, cents(449), cents(449), Some(cents(399))),
            (Discount::Percent(10), false, cents(449), cents(449), None),
            (Discount::Percent(10), false, cents(449), cents(500), None),
            (Discount::Percent(50), true, cents(50), cents(10), None),
            (Discount::Percent(1), false, cents(99), cents(10), None),
        ] {
            let made = Coupon { below_cost, ..coupon(discount) };
            assert_eq!(off(&made, price, cost), expected, "{discount} {price} {cost}");
        }
    }

    #[test]
    fn a_coupon_is_good_for_what_it_was_made_for() {
        let plain = coupon(Discount::Percent(10));
        let good = |coupon: &Coupon| off(coupon, cents(1000), cents(100)).is_some();
        let with = |change: fn(&mut Coupon)| {
            let mut made = plain.clone();
            change(&mut made);
            made
        };
        for fits in [
            plain.clone(),
            with(|c| c.package_code = Some("JP-1GB-7D".into())),
            with(|c| c.country = Some("KR".into())),
            with(|c| c.min_price = Some(cents(1000))),
            with(|c| (c.starts_at, c.ends_at) = (Some(at(100)), Some(at(101)))),
            with(|c| (c.uses, c.used, c.uses_per_user) = (Some(2), 1, Some(1))),
            with(|c| c.affiliate = true),
        ] {
            assert!(good(&fits), "{fits:?}");
        }
        for fits_not in [
            with(|c| c.applicability = Applicability::MobileApp),
            with(|c| c.package_code = Some("JP-3GB-30D".into())),
            with(|c| c.country = Some("FR".into())),
            with(|c| c.min_price = Some(cents(1001))),
            with(|c| c.starts_at = Some(at(101))),
            with(|c| c.ends_at = Some(at(100))),
            with(|c| (c.uses, c.used) = (Some(2), 2)),
            with(|c| c.uses_per_user = Some(0)),
            with(|c| c.disabled_at = Some(at(1))),
        ] {
            assert!(!good(&fits_not), "{fits_not:?}");
        }
        let counted = with(|c| c.uses_per_user = Some(3));
        assert!(counted.has_use_for(Some(2), at(100)) && !counted.has_use_for(Some(3), at(100)));
        assert!(!counted.has_use_for(None, at(100)) && plain.has_use_for(None, at(100)));
    }

    #[test]
    fn guests_leave_half_of_it_to_others() {
        let plain = coupon(Discount::Percent(10));
        for (uses, used, held, more) in [
            (1, 0, 0, true),
            (2, 0, 0, true),
            (2, 1, 1, false),
            (3, 1, 1, false),
            (4, 1, 1, true),
            (4, 2, 2, false),
            // Two are paid for: of the remaining eight, guests hold four.
            (10, 5, 3, true),
            (10, 6, 4, false),
            // The last one.
            (10, 9, 0, true),
            (10, 9, 1, false),
        ] {
            let made = Coupon { uses: Some(uses), used, held_by_guests: held, ..plain.clone() };
            assert_eq!(made.has_use_for_guests(), more, "{uses} {used} {held}");
        }
        let endless = Coupon { used: 1_000, held_by_guests: 1_000, ..plain };
        assert!(endless.has_use_for_guests());
    }

    #[test]
    fn what_cannot_be_seen_is_not_told() {
        let (long, cut) = ("x".repeat(DESCRIPTION_CHARS + 1), "x".repeat(DESCRIPTION_CHARS));
        for (written, told) in [
            ("Half\u{200b} \u{202e}price\u{e0041}", "Half price"),
            ("\u{2066}\u{feff}", "10% off"),
            (long.as_str(), cut.as_str()),
        ] {
            let made = Coupon { description: written.into(), ..coupon(Discount::Percent(10)) };
            assert_eq!(made.in_words(), told);
        }
    }

    #[test]
    fn codes_have_one_spelling() {
        assert_eq!(parse_code(" summer-26_x "), Some("SUMMER-26_X".into()));
        for wrong in ["", " ", "a b", "caf\u{e9}", "a/b", "a%20", &"x".repeat(65)] {
            assert_eq!(parse_code(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn words_go_both_ways() {
        for state in UseState::ALL {
            assert_eq!(UseState::parse(state.as_str()), Some(state));
        }
        for word in Applicability::ALL {
            assert_eq!(Applicability::parse(word.as_str()), Some(word));
        }
    }

    proptest! {
        /// Any discount is in whole cents and no more than was promised, and the rest covers what it must.
        #[test]
        fn no_coupon_gives_away_more_than_it_may(
            percent in prop::option::of(1i64..=100),
            fixed in 1i64..500_000_000,
            price in 1i64..500_000_000,
            cost in 0i64..500_000_000,
            below_cost in any::<bool>(),
        ) {
            let discount = percent.map_or(Discount::Fixed(Usd::from_micros(fixed)), Discount::Percent);
            let made = Coupon { below_cost, ..coupon(discount) };
            let (price, cost) = (Usd::from_micros(price), Usd::from_micros(cost));
            if let Some(off) = off(&made, price, cost) {
                let left = price.minus(off);
                prop_assert!(off.is_positive() && off.micros() % 10_000 == 0);
                prop_assert!(off <= discount.of(price));
                prop_assert!(left >= LEAST_PRICE && (below_cost || left >= cost.plus(SPARE)));
            }
        }

        /// The model counts: a use is held by at most one purchase, and as many are held as are live.
        #[test]
        fn any_sequence_counts_each_use_once(events in prop::collection::vec(event(), 0..30)) {
            let (mut state, mut held) = (UseState::Reserved, 1);
            for event in events {
                let Some(next) = state.after(event) else { continue };
                held += i64::from(next.is_live()) - i64::from(state.is_live());
                state = next;
                prop_assert_eq!(held, i64::from(state.is_live()));
            }
        }
    }
}
