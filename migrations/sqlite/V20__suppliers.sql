-- A plan has one supplier, and that supplier's own code. Rows from before have the simulator's, which are ours.
ALTER TABLE plans ADD COLUMN supplier_code TEXT;
UPDATE plans SET supplier_code = code;
CREATE INDEX plans_by_supplier ON plans (supplier, supplier_code);
-- Whether the supplier had it at the last sync. It is on sale when the supplier is enabled too.
ALTER TABLE plans ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;
UPDATE plans SET listed = on_sale;
ALTER TABLE checkouts ADD COLUMN supplier_code TEXT;
ALTER TABLE orders ADD COLUMN supplier_code TEXT;
-- The supplier's own number for the sale, when it has told one.
ALTER TABLE orders ADD COLUMN supplier_number TEXT;

-- What is known of each supplier of the settings. Nobody may send to it before its turn. A sync that looked wrong is held
-- back, with the reason. A test purchase is made once a day. The instance that moves look_at reads the balance; the one that
-- moves sync_at takes in the plans.
CREATE TABLE suppliers (
    name       TEXT NOT NULL PRIMARY KEY,
    enabled    INTEGER NOT NULL,
    turn       INTEGER NOT NULL,
    message_turn INTEGER NOT NULL DEFAULT 0,
    synced_at  INTEGER,
    held_back  TEXT,
    balance    INTEGER,
    balance_at INTEGER,
    tested_at  INTEGER,
    look_at    INTEGER NOT NULL DEFAULT 0,
    sync_at    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
