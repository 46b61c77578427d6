-- A coupon takes a share or an amount off a plan's retail price. `used` counts its uses that are reserved or spent: it
-- moves only under this row's lock, so a coupon with ten uses is used ten times, whoever comes at the same moment.
CREATE TABLE coupons (
    code          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    percent       BIGINT CHECK (percent >= 1 AND percent <= 100),
    fixed         BIGINT CHECK (fixed > 0),
    affiliate     BIGINT NOT NULL,
    applicability TEXT COLLATE "C" NOT NULL,
    package_code  TEXT COLLATE "C",
    country       TEXT COLLATE "C",
    min_price     BIGINT,
    starts_at     BIGINT,
    ends_at       BIGINT,
    uses          BIGINT,
    uses_per_user BIGINT,
    below_cost    BIGINT NOT NULL,
    description   TEXT COLLATE "C" NOT NULL,
    used          BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    disabled_at   BIGINT,
    CHECK ((percent IS NULL) <> (fixed IS NULL)),
    CHECK (used >= 0 AND used <= COALESCE(uses, used))
);

-- Who took a use: a checkout, or an order that was paid from a wallet. The order of a checkout is known once it is paid.
CREATE TABLE coupon_uses (
    holder     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    code       TEXT COLLATE "C" NOT NULL,
    account    BIGINT NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    order_id   TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX coupon_uses_live ON coupon_uses (code, account) WHERE state IN ('RESERVED', 'SPENT');
CREATE UNIQUE INDEX coupon_uses_by_order ON coupon_uses (order_id) WHERE order_id IS NOT NULL;

-- The coupon of a purchase, and what it took off the list price.
ALTER TABLE checkouts ADD COLUMN coupon TEXT COLLATE "C";
ALTER TABLE checkouts ADD COLUMN discount BIGINT NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN coupon TEXT COLLATE "C";
ALTER TABLE orders ADD COLUMN discount BIGINT NOT NULL DEFAULT 0;
