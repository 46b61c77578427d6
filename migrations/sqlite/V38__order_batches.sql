-- Orders that somebody placed at once by hand.
CREATE TABLE order_batches (
    id         TEXT NOT NULL PRIMARY KEY,
    account    INTEGER NOT NULL,
    -- Who made it, in words; and the name of the form that made it: sent twice, a form makes one.
    made_by    TEXT NOT NULL,
    once       TEXT NOT NULL,
    made_at    INTEGER NOT NULL,
    -- What its orders carry: their prices' list, and who placed them.
    price_list TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    -- What all of its lines cost when it was made, how many there are, and how many were bought or refused.
    total      INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    done       INTEGER NOT NULL DEFAULT 0,
    refused    INTEGER NOT NULL DEFAULT 0,
    -- Who buys its lines now, and until when nobody else does; empty once all of them have an answer.
    holder     TEXT NOT NULL,
    held_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX order_batches_once ON order_batches (account, once);
CREATE INDEX order_batches_of_account ON order_batches (account, made_at);
CREATE INDEX order_batches_by_age ON order_batches (made_at);
CREATE INDEX order_batches_open ON order_batches (held_until) WHERE held_until IS NOT NULL;

CREATE TABLE order_batch_lines (
    batch          TEXT NOT NULL,
    n              INTEGER NOT NULL,
    package_code   TEXT NOT NULL,
    reference      TEXT,
    customer_email TEXT,
    -- The price that was shown: it is bought for that or less.
    max_price      INTEGER NOT NULL,
    state          TEXT NOT NULL,
    -- The order that it became, and what was taken for it: nothing when its reference had bought it before.
    order_id       TEXT,
    charged        INTEGER,
    -- Why it was refused, in words for people.
    why            TEXT,
    PRIMARY KEY (batch, n)
) STRICT, WITHOUT ROWID;
