-- When the partner was last mailed: a balance that swings around its threshold is told of by events, and by a mail only now and then.
ALTER TABLE low_balances ADD COLUMN mailed_at BIGINT;
