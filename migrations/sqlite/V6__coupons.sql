-- A coupon takes a share or an amount off a plan's retail price. `used` counts its uses that are reserved or spent: it
-- moves only under this row's lock, so a coupon with ten uses is used ten times, whoever comes at the same moment.
CREATE TABLE coupons (
    code          TEXT    NOT NULL PRIMARY KEY,
    percent       INTEGER CHECK (percent >= 1 AND percent <= 100),
    fixed         INTEGER CHECK (fixed > 0),
    affiliate     INTEGER NOT NULL,
    applicability TEXT    NOT NULL,
    package_code  TEXT,
    country       TEXT,
    min_price     INTEGER,
    starts_at     INTEGER,
    ends_at       INTEGER,
    uses          INTEGER,
    uses_per_user INTEGER,
    below_cost    INTEGER NOT NULL,
    description   TEXT    NOT NULL,
    used          INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    disabled_at   INTEGER,
    CHECK ((percent IS NULL) <> (fixed IS NULL)),
    CHECK (used >= 0 AND used <= COALESCE(uses, used))
) STRICT;

-- Who took a use: a checkout, or an order that was paid from a wallet. The order of a checkout is known once it is paid.
CREATE TABLE coupon_uses (
    holder     TEXT    NOT NULL PRIMARY KEY,
    code       TEXT    NOT NULL,
    account    INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    order_id   TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX coupon_uses_live ON coupon_uses (code, account) WHERE state IN ('RESERVED', 'SPENT');
CREATE UNIQUE INDEX coupon_uses_by_order ON coupon_uses (order_id) WHERE order_id IS NOT NULL;

-- The coupon of a purchase, and what it took off the list price.
ALTER TABLE checkouts ADD COLUMN coupon TEXT;
ALTER TABLE checkouts ADD COLUMN discount INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN coupon TEXT;
ALTER TABLE orders ADD COLUMN discount INTEGER NOT NULL DEFAULT 0;
