-- What happened to the orders, deposits, balances and eSIMs of an account, in the order in which it can be read back.
CREATE TABLE events (
    no       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    account  INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    -- The order, top-up, invoice or account that it is about, and the event's place among all of the same.
    subject  TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    -- The object as it was then, as JSON.
    data     TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_account ON events (account, no, kind);

-- How many events each has had. They are counted here because old events are deleted.
ALTER TABLE orders ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE invoices ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE low_balances ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
-- The highest threshold of usage, in percent, that was told since the eSIM was last filled.
ALTER TABLE esims ADD COLUMN told_percent INTEGER NOT NULL DEFAULT 0;
