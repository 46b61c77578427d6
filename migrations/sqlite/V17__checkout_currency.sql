-- A checkout is paid with the token that it names; those from before name USDT.
ALTER TABLE checkouts ADD COLUMN currency TEXT NOT NULL DEFAULT 'USDT';
