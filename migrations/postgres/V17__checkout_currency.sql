-- A checkout is paid with the token that it names; those from before name USDT.
ALTER TABLE checkouts ADD COLUMN currency TEXT COLLATE "C" NOT NULL DEFAULT 'USDT';
