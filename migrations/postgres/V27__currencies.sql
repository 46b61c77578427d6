-- The currency that a supplier bills in, and the operator's rate for it: dollars for one unit in billionths, and the day that
-- it is of. Dollars have none.
ALTER TABLE suppliers ADD COLUMN currency TEXT COLLATE "C" NOT NULL DEFAULT 'USD';
ALTER TABLE suppliers ADD COLUMN rate BIGINT;
ALTER TABLE suppliers ADD COLUMN rate_day BIGINT;
-- What is billed, in millionths of that currency, and the rate that made dollars of it. NULL where dollars are billed. A sale
-- that was one too many has the rate of its order.
ALTER TABLE plans ADD COLUMN native_cost BIGINT;
ALTER TABLE plans ADD COLUMN rate BIGINT;
ALTER TABLE checkouts ADD COLUMN native_cost BIGINT;
ALTER TABLE checkouts ADD COLUMN rate BIGINT;
ALTER TABLE orders ADD COLUMN native_cost BIGINT;
ALTER TABLE orders ADD COLUMN rate BIGINT;
ALTER TABLE spares ADD COLUMN native_cost BIGINT;

-- What an entry moved at a supplier that bills in another currency, in millionths of that: what was paid in there, what came
-- back, what was lost or tried. Sales have it in their orders.
CREATE TABLE native_moves (
    entry    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    supplier TEXT COLLATE "C" NOT NULL,
    amount   BIGINT NOT NULL
);
CREATE INDEX native_moves_by_supplier ON native_moves (supplier);
CREATE TRIGGER native_moves_stay BEFORE UPDATE OR DELETE ON native_moves FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER native_moves_last BEFORE TRUNCATE ON native_moves FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
