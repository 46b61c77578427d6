-- The rules of price lists. A rule counts in the editions from `since` up to, and without, `until`. The edition after the
-- published one is the draft. Shares are hundredths of a percent.
CREATE TABLE price_rules (
    price_list   TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    since        INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    price        INTEGER,
    base         TEXT,
    percent      INTEGER,
    plus_percent INTEGER,
    plus_at_most INTEGER,
    fixed        INTEGER,
    least_margin INTEGER,
    rounding     TEXT,
    below_cost   INTEGER NOT NULL,
    PRIMARY KEY (price_list, scope, target, since)
) STRICT, WITHOUT ROWID;
CREATE INDEX price_rules_by_end ON price_rules (until);

-- What prices were made by until now: 15 % on small costs, falling towards 8 %; 75 % on small prices, falling towards 35 %.
INSERT INTO price_rules (price_list, scope, target, since, until, base, percent, plus_percent, plus_at_most, rounding, below_cost)
VALUES ('default', 'all', '', 1, 9223372036854775807, 'cost', 800, 700, 140000, 'cent', 0),
       ('retail', 'all', '', 1, 9223372036854775807, 'default', 3500, 4000, 800000, 'shop', 0);

-- `price` counts from the edition `since` on, `earlier_price` before it. A price that is NULL: not for sale.
CREATE TABLE prices_by_edition (
    price_list         TEXT    NOT NULL,
    code               TEXT    NOT NULL,
    price              INTEGER CHECK (price > 0),
    below_cost         INTEGER NOT NULL DEFAULT 0,
    since              INTEGER NOT NULL DEFAULT 0,
    earlier_price      INTEGER CHECK (earlier_price > 0),
    earlier_below_cost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (price_list, code)
) STRICT, WITHOUT ROWID;
INSERT INTO prices_by_edition (price_list, code, price) SELECT price_list, code, price FROM prices;
DROP TABLE prices;
ALTER TABLE prices_by_edition RENAME TO prices;
ALTER TABLE plans DROP COLUMN retail;

-- The published edition of prices and of rules, and a count of changes to the draft.
INSERT INTO versions (name, n) VALUES ('prices', 1), ('price_rules', 1), ('price_draft', 1);

-- Who writes the next edition of prices now.
CREATE TABLE price_turn (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    holder   TEXT    NOT NULL,
    until    INTEGER NOT NULL,
    ended_by TEXT    NOT NULL
) STRICT;
INSERT INTO price_turn (id, holder, until, ended_by) VALUES (1, '', 0, '');
