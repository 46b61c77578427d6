-- A plan has one supplier, and that supplier's own code. Rows from before have the simulator's, which are ours.
ALTER TABLE plans ADD COLUMN supplier_code TEXT COLLATE "C";
CREATE INDEX plans_by_supplier ON plans (supplier, supplier_code);
ALTER TABLE checkouts ADD COLUMN supplier_code TEXT COLLATE "C";
ALTER TABLE orders ADD COLUMN supplier_code TEXT COLLATE "C";
-- The supplier's own number for the sale, when it has told one.
ALTER TABLE orders ADD COLUMN supplier_number TEXT COLLATE "C";

-- What the operator decided about each supplier of the settings, and its turn: nobody may send before it.
CREATE TABLE suppliers (
    name    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    enabled BIGINT NOT NULL,
    turn    BIGINT NOT NULL
);
