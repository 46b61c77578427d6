-- The rules of price lists. A rule counts in the editions from `since` up to, and without, `until`. The edition after the
-- published one is the draft. Shares are hundredths of a percent.
CREATE TABLE price_rules (
    price_list   TEXT COLLATE "C" NOT NULL,
    scope        TEXT COLLATE "C" NOT NULL,
    target       TEXT COLLATE "C" NOT NULL,
    since        BIGINT NOT NULL,
    until        BIGINT NOT NULL,
    price        BIGINT,
    base         TEXT COLLATE "C",
    percent      BIGINT,
    plus_percent BIGINT,
    plus_at_most BIGINT,
    fixed        BIGINT,
    least_margin BIGINT,
    rounding     TEXT COLLATE "C",
    below_cost   BIGINT NOT NULL,
    PRIMARY KEY (price_list, scope, target, since)
);
CREATE INDEX price_rules_by_end ON price_rules (until);

-- What prices were made by until now: 15 % on small costs, falling towards 8 %; 75 % on small prices, falling towards 35 %.
INSERT INTO price_rules (price_list, scope, target, since, until, base, percent, plus_percent, plus_at_most, rounding, below_cost)
VALUES ('default', 'all', '', 1, 9223372036854775807, 'cost', 800, 700, 140000, 'cent', 0),
       ('retail', 'all', '', 1, 9223372036854775807, 'default', 3500, 4000, 800000, 'shop', 0);

-- `price` counts from the edition `since` on, `earlier_price` before it. A price that is NULL: not for sale.
ALTER TABLE prices ALTER COLUMN price DROP NOT NULL;
ALTER TABLE prices ADD COLUMN below_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN earlier_price BIGINT CHECK (earlier_price > 0);
ALTER TABLE prices ADD COLUMN earlier_below_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE plans DROP COLUMN retail;

-- The published edition of prices and of rules, and a count of changes to the draft.
INSERT INTO versions (name, n) VALUES ('prices', 1), ('price_rules', 1), ('price_draft', 1);

-- Who writes the next edition of prices now.
CREATE TABLE price_turn (
    id       BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    holder   TEXT COLLATE "C" NOT NULL,
    until    BIGINT NOT NULL,
    ended_by TEXT COLLATE "C" NOT NULL
);
INSERT INTO price_turn (id, holder, until, ended_by) VALUES (1, '', 0, '');
