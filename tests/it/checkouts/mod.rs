//! What becomes of checkouts, their amounts, payments and coupons, whichever door they came through.

mod amounts;
mod coupon_guests;
mod coupon_uses;
mod gone_payments;
mod laws;
mod paid;
mod slots;
mod slots_caps;
mod topups;
