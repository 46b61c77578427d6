-- The currency that a supplier bills in, and the operator's rate for it: dollars for one unit in billionths, and the day that
-- it is of. Dollars have none.
ALTER TABLE suppliers ADD COLUMN currency TEXT NOT NULL DEFAULT 'USD';
ALTER TABLE suppliers ADD COLUMN rate INTEGER;
ALTER TABLE suppliers ADD COLUMN rate_day INTEGER;
-- What is billed, in millionths of that currency, and the rate that made dollars of it. NULL where dollars are billed. A sale
-- that was one too many has the rate of its order.
ALTER TABLE plans ADD COLUMN native_cost INTEGER;
ALTER TABLE plans ADD COLUMN rate INTEGER;
ALTER TABLE checkouts ADD COLUMN native_cost INTEGER;
ALTER TABLE checkouts ADD COLUMN rate INTEGER;
ALTER TABLE orders ADD COLUMN native_cost INTEGER;
ALTER TABLE orders ADD COLUMN rate INTEGER;
ALTER TABLE spares ADD COLUMN native_cost INTEGER;

-- What an entry moved at a supplier that bills in another currency, in millionths of that: what was paid in there, what came
-- back, what was lost or tried. Sales have it in their orders.
CREATE TABLE native_moves (
    entry    TEXT    NOT NULL PRIMARY KEY,
    supplier TEXT    NOT NULL,
    amount   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX native_moves_by_supplier ON native_moves (supplier);
CREATE TRIGGER native_moves_stay BEFORE UPDATE ON native_moves BEGIN SELECT RAISE(ABORT, 'native_moves are append-only'); END;
CREATE TRIGGER native_moves_last BEFORE DELETE ON native_moves BEGIN SELECT RAISE(ABORT, 'native_moves are append-only'); END;
