-- What moved a partner's wallet on a day, UTC, summed from the lines of its statement.
CREATE TABLE partner_days (
    account    INTEGER NOT NULL,
    -- Counted from 1970.
    day        INTEGER NOT NULL,
    -- How many lines there were of each kind; failed are orders and top-ups.
    orders     INTEGER NOT NULL,
    topups     INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    cancelled  INTEGER NOT NULL,
    -- What orders and top-ups took, what came back for them, and by how much everything else moved the balance.
    spent      INTEGER NOT NULL,
    given_back INTEGER NOT NULL,
    other      INTEGER NOT NULL,
    PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;

-- For every partner: the last line of its statement that is in its days.
CREATE TABLE summed_lines (
    account INTEGER NOT NULL PRIMARY KEY,
    line    INTEGER NOT NULL
) STRICT;
INSERT INTO summed_lines (account, line) SELECT no, 0 FROM accounts WHERE kind = 'PARTNER';

-- Orders that came to nothing, for a list of them. No order is in it when it is placed or delivered.
CREATE INDEX orders_undone ON orders (account, status, seq) WHERE status IN ('FAILED', 'CANCELLED');
