-- Order numbers from before are scrambled by fixed rounds, later ones (keyed) with a key of this database's own.
ALTER TABLE orders ADD COLUMN keyed BIGINT NOT NULL DEFAULT 0;
-- Of an order that a checkout became: the checkout's number, which it keeps. `seq` is its place among the account's orders.
ALTER TABLE orders ADD COLUMN checkout_no BIGINT;
CREATE UNIQUE INDEX orders_by_checkout ON orders (account, checkout_no) WHERE checkout_no IS NOT NULL;

-- Checkouts are counted by themselves from now on: those that nobody pays for use up no orders' numbers.
ALTER TABLE wallets ADD COLUMN opened BIGINT NOT NULL DEFAULT 0;
ALTER TABLE checkouts ADD COLUMN keyed BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX checkouts_by_number ON checkouts (account, seq, keyed) WHERE seq IS NOT NULL;
