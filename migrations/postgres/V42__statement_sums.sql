-- What the lines of a partner's statement came to, by type, from its first one up to each of some lines. So what any part of it
-- comes to is the difference of two sums, and a few lines at both ends.
CREATE TABLE statement_sums (
    account BIGINT NOT NULL,
    -- The last line in this sum.
    line    BIGINT NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    -- How many lines of the type there were, and what they came to: positive when money came in.
    lines   BIGINT NOT NULL,
    amount  BIGINT NOT NULL,
    PRIMARY KEY (account, line, kind)
);
