-- What the lines of a partner's statement came to, by type, from its first one up to each of some lines. So what any part of it
-- comes to is the difference of two sums, and a few lines at both ends.
CREATE TABLE statement_sums (
    account INTEGER NOT NULL,
    -- The last line in this sum.
    line    INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    -- How many lines of the type there were, and what they came to: positive when money came in.
    lines   INTEGER NOT NULL,
    amount  INTEGER NOT NULL,
    PRIMARY KEY (account, line, kind)
) STRICT, WITHOUT ROWID;
