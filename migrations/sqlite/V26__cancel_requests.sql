-- The supplier's name for our request to take an order back, where people there decide. Empty from the moment before it
-- is sent until its answer is known, so that it is never sent twice.
ALTER TABLE orders ADD COLUMN cancel_request TEXT;
