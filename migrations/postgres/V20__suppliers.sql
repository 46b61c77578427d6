-- A plan has one supplier, and that supplier's own code. Rows from before have the simulator's, which are ours.
ALTER TABLE plans ADD COLUMN supplier_code TEXT COLLATE "C";
UPDATE plans SET supplier_code = code;
CREATE INDEX plans_by_supplier ON plans (supplier, supplier_code);
-- Whether the supplier had it at the last sync. It is on sale when the supplier is enabled too.
ALTER TABLE plans ADD COLUMN listed BIGINT NOT NULL DEFAULT 1;
UPDATE plans SET listed = on_sale;
ALTER TABLE checkouts ADD COLUMN supplier_code TEXT COLLATE "C";
ALTER TABLE orders ADD COLUMN supplier_code TEXT COLLATE "C";
-- The supplier's own number for the sale, when it has told one.
ALTER TABLE orders ADD COLUMN supplier_number TEXT COLLATE "C";

-- What is known of each supplier of the settings. Nobody may send to it before its turn. A sync that looked wrong is held
-- back, with the reason. A test purchase is made once a day. The instance that moves look_at reads the balance; the one that
-- moves sync_at takes in the plans.
CREATE TABLE suppliers (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    enabled    BIGINT NOT NULL,
    turn       BIGINT NOT NULL,
    message_turn BIGINT NOT NULL DEFAULT 0,
    synced_at  BIGINT,
    held_back  TEXT COLLATE "C",
    balance    BIGINT,
    balance_at BIGINT,
    tested_at  BIGINT,
    look_at    BIGINT NOT NULL DEFAULT 0,
    sync_at    BIGINT NOT NULL DEFAULT 0
);
