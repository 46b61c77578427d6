-- Of a checkout for a top-up: the order whose eSIM it fills.
ALTER TABLE checkouts ADD COLUMN esim_order TEXT;
