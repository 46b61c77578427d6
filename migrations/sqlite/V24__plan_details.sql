-- What the supplier says of a plan beyond its size, time and price, as JSON. Rows from before have it after the next sync.
ALTER TABLE plans ADD COLUMN details TEXT;
