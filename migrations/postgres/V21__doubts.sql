-- Purchases that may have reached a supplier that sells again when it is asked again. Each is written down before it is
-- sent. An order has a second one only after the first was looked for in vain.
CREATE TABLE attempts (
    order_id  TEXT COLLATE "C" NOT NULL,
    n         BIGINT NOT NULL CHECK (n IN (1, 2)),
    supplier  TEXT COLLATE "C" NOT NULL,
    asked_at  BIGINT NOT NULL,
    -- When a look-up that counts was first empty; only of the first purchase.
    empty_at  BIGINT,
    -- When to look for sales that turn up late; only of the first purchase.
    next_look BIGINT,
    PRIMARY KEY (order_id, n)
);
CREATE INDEX attempts_by_time ON attempts (supplier, asked_at);
CREATE INDEX attempts_watched ON attempts (next_look) WHERE next_look IS NOT NULL;

-- Second purchases of the last hour: each takes one of a supplier's places.
CREATE TABLE second_purchases (
    supplier TEXT COLLATE "C" NOT NULL,
    place    BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (supplier, place)
);

-- Where a supplier's sales are known by their time alone: the order of a plan that may be open, and those that wait.
CREATE TABLE turns (
    supplier TEXT COLLATE "C" NOT NULL,
    code     TEXT COLLATE "C" NOT NULL,
    order_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (supplier, code)
);
CREATE TABLE waiting (
    supplier TEXT COLLATE "C" NOT NULL,
    code     TEXT COLLATE "C" NOT NULL,
    order_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (supplier, code, order_id)
);

-- Sales that turned up beside the one that was delivered, or for an order that had failed.
CREATE TABLE spares (
    order_id  TEXT COLLATE "C" NOT NULL,
    n         BIGINT NOT NULL,
    supplier  TEXT COLLATE "C" NOT NULL,
    number    TEXT COLLATE "C" NOT NULL,
    profile   TEXT COLLATE "C",
    cost      BIGINT NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    ask_until BIGINT NOT NULL,
    PRIMARY KEY (order_id, n)
);
CREATE UNIQUE INDEX spares_by_number ON spares (supplier, number);
CREATE INDEX spares_open ON spares (ask_until) WHERE state = 'OPEN';
CREATE INDEX orders_by_orphan ON orders (orphan_profile) WHERE orphan IS NOT NULL;

-- The simulated supplier can play every rule. It keeps its sales where a repeated purchase would sell again.
ALTER TABLE sim_supplier ADD COLUMN doubt_rule TEXT COLLATE "C" NOT NULL DEFAULT 'repeat';
ALTER TABLE sim_supplier ADD COLUMN quiet_s BIGINT NOT NULL DEFAULT 900;
CREATE TABLE sim_sales (
    order_id   TEXT COLLATE "C" NOT NULL,
    n          BIGINT NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    -- The profile that a top-up fills.
    filled     TEXT COLLATE "C",
    data_mb    BIGINT NOT NULL,
    days       BIGINT NOT NULL,
    ordered_at BIGINT NOT NULL,
    cost       BIGINT,
    at         BIGINT NOT NULL,
    -- Look-ups show it from then on, and its profile is there from then on.
    seen_from  BIGINT NOT NULL,
    ready_from BIGINT NOT NULL,
    PRIMARY KEY (order_id, n)
);
CREATE INDEX sim_sales_by_time ON sim_sales (at);
