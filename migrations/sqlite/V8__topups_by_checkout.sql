-- Of a checkout for a top-up: the order whose eSIM it fills.
ALTER TABLE checkouts ADD COLUMN esim_order TEXT;

-- The caller's reference that came with a signature. The order that it pays for takes it over.
ALTER TABLE authorizations ADD COLUMN reference TEXT;
