-- A plan has one supplier, and that supplier's own code. Rows from before have the simulator's, which are ours.
ALTER TABLE plans ADD COLUMN supplier_code TEXT;
CREATE INDEX plans_by_supplier ON plans (supplier, supplier_code);
ALTER TABLE checkouts ADD COLUMN supplier_code TEXT;
ALTER TABLE orders ADD COLUMN supplier_code TEXT;
-- The supplier's own number for the sale, when it has told one.
ALTER TABLE orders ADD COLUMN supplier_number TEXT;

-- What the operator decided about each supplier of the settings, and its turn: nobody may send before it.
CREATE TABLE suppliers (
    name    TEXT NOT NULL PRIMARY KEY,
    enabled INTEGER NOT NULL,
    turn    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
