-- When a buyer took a cancel back that people at the supplier had a request about; empty again once the supplier's word
-- about that request is entered.
ALTER TABLE orders ADD COLUMN cancel_withdrawn_at BIGINT;
CREATE INDEX orders_withdrawn ON orders (cancel_withdrawn_at) WHERE cancel_withdrawn_at IS NOT NULL;
