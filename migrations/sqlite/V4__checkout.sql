-- A request to pay for one plan with an exact amount. Its number is the order's, taken when it is made. An amount is
-- reserved while `released` is 0; afterwards that is the moment at which it had been asked for.
CREATE TABLE checkouts (
    id             TEXT    NOT NULL PRIMARY KEY,
    account        INTEGER NOT NULL,
    token          TEXT    NOT NULL,
    seq            INTEGER NOT NULL,
    package_code   TEXT    NOT NULL,
    plan_name      TEXT    NOT NULL,
    family         TEXT    NOT NULL,
    data_mb        INTEGER NOT NULL,
    duration_days  INTEGER NOT NULL,
    supplier       TEXT    NOT NULL,
    cost           INTEGER NOT NULL,
    list_price     INTEGER NOT NULL,
    amount         INTEGER NOT NULL CHECK (amount > 0),
    network        TEXT    NOT NULL,
    address        TEXT    NOT NULL,
    customer_email TEXT,
    status         TEXT    NOT NULL,
    order_id       TEXT,
    released       INTEGER NOT NULL,
    origin         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    late_until     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;
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
    address TEXT    NOT NULL,
    price   INTEGER NOT NULL,
    next    INTEGER NOT NULL,
    PRIMARY KEY (address, price)
) STRICT, WITHOUT ROWID;

-- The house addresses that checkouts are paid to, in the order in which they came into use.
ALTER TABLE addresses ADD COLUMN serves INTEGER;
CREATE UNIQUE INDEX addresses_serving ON addresses (kind, fingerprint, serves) WHERE serves IS NOT NULL;

-- The tiny discount that made an amount unique: a sale is what was charged and this.
ALTER TABLE orders ADD COLUMN spot INTEGER NOT NULL DEFAULT 0;
-- Who gets a receipt when it is delivered.
ALTER TABLE orders ADD COLUMN customer_email TEXT;

-- How many order numbers a wallet has given out: checkouts take one before they are paid, if ever.
ALTER TABLE wallets ADD COLUMN numbers INTEGER NOT NULL DEFAULT 0;
UPDATE wallets SET numbers = placed;
