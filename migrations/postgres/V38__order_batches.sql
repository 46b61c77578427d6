-- Orders that somebody placed at once by hand.
CREATE TABLE order_batches (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account    BIGINT NOT NULL,
    -- Who made it, in words; and the name of the form that made it: sent twice, a form makes one.
    made_by    TEXT NOT NULL,
    once       TEXT COLLATE "C" NOT NULL,
    made_at    BIGINT NOT NULL,
    -- What its orders carry: their prices' list, and who placed them.
    price_list TEXT COLLATE "C" NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL,
    -- What all of its lines cost when it was made, how many there are, and how many were bought or refused.
    total      BIGINT NOT NULL,
    lines      BIGINT NOT NULL,
    done       BIGINT NOT NULL DEFAULT 0,
    refused    BIGINT NOT NULL DEFAULT 0,
    -- Who buys its lines now, and until when nobody else does; empty once all of them have an answer.
    holder     TEXT NOT NULL,
    held_until BIGINT
);
CREATE UNIQUE INDEX order_batches_once ON order_batches (account, once);
CREATE INDEX order_batches_of_account ON order_batches (account, made_at);
CREATE INDEX order_batches_by_age ON order_batches (made_at);
CREATE INDEX order_batches_open ON order_batches (held_until) WHERE held_until IS NOT NULL;

CREATE TABLE order_batch_lines (
    batch          TEXT COLLATE "C" NOT NULL,
    n              BIGINT NOT NULL,
    package_code   TEXT COLLATE "C" NOT NULL,
    reference      TEXT COLLATE "C",
    customer_email TEXT,
    -- The price that was shown: it is bought for that or less.
    max_price      BIGINT NOT NULL,
    state          TEXT COLLATE "C" NOT NULL,
    -- The order that it became, and what was taken for it: nothing when its reference had bought it before.
    order_id       TEXT COLLATE "C",
    charged        BIGINT,
    -- Why it was refused, in words for people.
    why            TEXT,
    PRIMARY KEY (batch, n)
);
