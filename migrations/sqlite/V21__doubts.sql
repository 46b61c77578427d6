-- Purchases that may have reached a supplier that sells again when it is asked again. Each is written down before it is
-- sent. An order has a second one only after the first was looked for in vain.
CREATE TABLE attempts (
    order_id  TEXT NOT NULL,
    n         INTEGER NOT NULL CHECK (n IN (1, 2)),
    supplier  TEXT NOT NULL,
    asked_at  INTEGER NOT NULL,
    -- When a look-up that counts was first empty; only of the first purchase.
    empty_at  INTEGER,
    -- When to look for sales that turn up late; only of the first purchase.
    next_look INTEGER,
    PRIMARY KEY (order_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_by_time ON attempts (supplier, asked_at);
CREATE INDEX attempts_watched ON attempts (next_look) WHERE next_look IS NOT NULL;

-- Second purchases of the last hour: each takes one of a supplier's places.
CREATE TABLE second_purchases (
    supplier TEXT NOT NULL,
    place    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (supplier, place)
) STRICT, WITHOUT ROWID;

-- Where a supplier's sales are known by their time alone: the order of a plan that may be open, and those that wait.
CREATE TABLE turns (
    supplier TEXT NOT NULL,
    code     TEXT NOT NULL,
    order_id TEXT NOT NULL,
    PRIMARY KEY (supplier, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiting (
    supplier TEXT NOT NULL,
    code     TEXT NOT NULL,
    order_id TEXT NOT NULL,
    PRIMARY KEY (supplier, code, order_id)
) STRICT, WITHOUT ROWID;

-- Sales that turned up beside the one that was delivered, or for an order that had failed.
CREATE TABLE spares (
    order_id  TEXT NOT NULL,
    n         INTEGER NOT NULL,
    supplier  TEXT NOT NULL,
    number    TEXT NOT NULL,
    profile   TEXT,
    cost      INTEGER NOT NULL,
    state     TEXT NOT NULL,
    ask_until INTEGER NOT NULL,
    PRIMARY KEY (order_id, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX spares_by_number ON spares (supplier, number);
CREATE INDEX spares_open ON spares (ask_until) WHERE state = 'OPEN';
CREATE INDEX orders_by_orphan ON orders (orphan_profile) WHERE orphan IS NOT NULL;

-- The simulated supplier can play every rule. It keeps its sales where a repeated purchase would sell again.
ALTER TABLE sim_supplier ADD COLUMN doubt_rule TEXT NOT NULL DEFAULT 'repeat';
ALTER TABLE sim_supplier ADD COLUMN quiet_s INTEGER NOT NULL DEFAULT 900;
CREATE TABLE sim_sales (
    order_id   TEXT NOT NULL,
    n          INTEGER NOT NULL,
    code       TEXT NOT NULL,
    -- The profile that a top-up fills.
    filled     TEXT,
    data_mb    INTEGER NOT NULL,
    days       INTEGER NOT NULL,
    ordered_at INTEGER NOT NULL,
    cost       INTEGER,
    at         INTEGER NOT NULL,
    -- Look-ups show it from then on, and its profile is there from then on.
    seen_from  INTEGER NOT NULL,
    ready_from INTEGER NOT NULL,
    PRIMARY KEY (order_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX sim_sales_by_time ON sim_sales (at);
