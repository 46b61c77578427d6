-- A request to pay for one plan with an exact amount. Its number is the order's, taken when it is made. An amount is
-- reserved while `released` is 0; afterwards that is the moment at which it had been asked for.
CREATE TABLE checkouts (
    id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account        BIGINT NOT NULL,
    token          TEXT COLLATE "C" NOT NULL,
    seq            BIGINT NOT NULL,
    package_code   TEXT COLLATE "C" NOT NULL,
    plan_name      TEXT COLLATE "C" NOT NULL,
    family         TEXT COLLATE "C" NOT NULL,
    data_mb        BIGINT NOT NULL,
    duration_days  BIGINT NOT NULL,
    supplier       TEXT COLLATE "C" NOT NULL,
    cost           BIGINT NOT NULL,
    list_price     BIGINT NOT NULL,
    amount         BIGINT NOT NULL CHECK (amount > 0),
    network        TEXT COLLATE "C" NOT NULL,
    address        TEXT COLLATE "C" NOT NULL,
    customer_email TEXT COLLATE "C",
    status         TEXT COLLATE "C" NOT NULL,
    order_id       TEXT COLLATE "C",
    released       BIGINT NOT NULL,
    origin         TEXT COLLATE "C" NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    late_until     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
-- No two checkouts that could still be paid ask for the same amount at the same address.
CREATE UNIQUE INDEX checkouts_by_amount ON checkouts (address, amount, released);
-- Each of the next three fits only the question that it is for, also while nothing is known about the table's size.
CREATE INDEX checkouts_due ON checkouts (network, expires_at) WHERE status = 'OPEN' AND network IS NOT NULL;
CREATE INDEX checkouts_unpaid ON checkouts (account, status, created_at) WHERE status IN ('OPEN', 'EXPIRED');
CREATE INDEX checkouts_by_origin ON checkouts (origin, created_at) WHERE status IN ('OPEN', 'EXPIRED') AND origin IS NOT NULL;
CREATE UNIQUE INDEX checkouts_by_order ON checkouts (order_id) WHERE order_id IS NOT NULL;

-- Where the next amount below a price is on an address: amounts are handed out in a fixed shuffled order, so the
-- next one is the one that was handed out longest ago.
CREATE TABLE amount_rings (
    address TEXT COLLATE "C" NOT NULL,
    price   BIGINT NOT NULL,
    next    BIGINT NOT NULL,
    PRIMARY KEY (address, price)
);

-- The house addresses that checkouts are paid to, in the order in which they came into use.
ALTER TABLE addresses ADD COLUMN serves BIGINT;
CREATE UNIQUE INDEX addresses_serving ON addresses (kind, fingerprint, serves) WHERE serves IS NOT NULL;

-- The tiny discount that made an amount unique: a sale is what was charged and this.
ALTER TABLE orders ADD COLUMN spot BIGINT NOT NULL DEFAULT 0;
-- Who gets a receipt when it is delivered.
ALTER TABLE orders ADD COLUMN customer_email TEXT COLLATE "C";

-- How many order numbers a wallet has given out: checkouts take one before they are paid, if ever.
ALTER TABLE wallets ADD COLUMN numbers BIGINT NOT NULL DEFAULT 0;
UPDATE wallets SET numbers = placed;
