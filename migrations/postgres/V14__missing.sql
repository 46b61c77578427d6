-- A payment that counted after one block, and whose block was replaced: it may come back, and until then it counts for less.
ALTER TABLE transfers ADD COLUMN missing BIGINT NOT NULL DEFAULT 0;
