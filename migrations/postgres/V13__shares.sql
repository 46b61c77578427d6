-- Where a caller is, is a path of hashed networks, the widest first. Its first 17 characters name the widest: what came
-- from there since some time stands together, however wide the network is that is counted, and what is older costs nothing.
DROP INDEX checkouts_by_origin;
CREATE INDEX checkouts_by_area ON checkouts (substr(origin, 1, 17), created_at, origin)
    WHERE status IN ('OPEN', 'EXPIRED') AND origin IS NOT NULL;

-- How many of a coupon's uses are reserved by guests, who may not hold all of them. Moves under the coupon's lock.
ALTER TABLE coupons ADD COLUMN held_by_guests BIGINT NOT NULL DEFAULT 0;
UPDATE coupons SET held_by_guests = (
    SELECT COUNT(*) FROM coupon_uses u WHERE u.code = coupons.code AND u.account = 0 AND u.state = 'RESERVED');

-- Codes of coupons that were not good: what an account has tried, and what came from a place.
CREATE TABLE coupon_guesses (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account BIGINT,
    origin  TEXT COLLATE "C",
    at      BIGINT NOT NULL
);
CREATE INDEX coupon_guesses_by_account ON coupon_guesses (account, at) WHERE account IS NOT NULL;
CREATE INDEX coupon_guesses_by_area ON coupon_guesses (substr(origin, 1, 17), at, origin) WHERE origin IS NOT NULL;
CREATE INDEX coupon_guesses_by_age ON coupon_guesses (at);
DELETE FROM login_attempts WHERE kind = 'COUPON';
