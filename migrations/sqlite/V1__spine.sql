CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Counters that every instance polls, to see within a second what another process changed.
CREATE TABLE versions (
    name TEXT    NOT NULL PRIMARY KEY,
    n    INTEGER NOT NULL
) STRICT;
INSERT INTO versions (name, n) VALUES ('accounts', 1), ('catalog', 1), ('simulator', 1);

CREATE TABLE accounts (
    no          INTEGER NOT NULL PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    email       TEXT,
    price_list  TEXT    NOT NULL,
    low_balance INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- The hot half of an account: one row, updated by every purchase.
CREATE TABLE wallets (
    account   INTEGER NOT NULL PRIMARY KEY,
    balance   INTEGER NOT NULL CHECK (balance >= 0),
    lines     INTEGER NOT NULL,
    placed    INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    suspended INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    account     INTEGER NOT NULL,
    secret_hash BLOB    NOT NULL,
    daily_limit INTEGER,
    spent_day   INTEGER NOT NULL,
    spent       INTEGER NOT NULL,
    ips         TEXT    NOT NULL,
    read_only   INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account);

CREATE TABLE plans (
    code          TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    plan_type     TEXT    NOT NULL,
    family        TEXT    NOT NULL,
    countries     TEXT    NOT NULL,
    data_mb       INTEGER NOT NULL,
    duration_days INTEGER NOT NULL,
    operator      TEXT    NOT NULL,
    supplier      TEXT    NOT NULL,
    cost          INTEGER NOT NULL,
    retail        INTEGER NOT NULL,
    on_sale       INTEGER NOT NULL
) STRICT;

CREATE TABLE prices (
    price_list TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    price      INTEGER NOT NULL CHECK (price > 0),
    PRIMARY KEY (price_list, code)
) STRICT, WITHOUT ROWID;

-- Orders and top-ups. A top-up names the order whose eSIM it fills and has no number of its own.
CREATE TABLE orders (
    id             TEXT    NOT NULL PRIMARY KEY,
    account        INTEGER NOT NULL,
    seq            INTEGER,
    esim_order     TEXT,
    reference      TEXT,
    package_code   TEXT    NOT NULL,
    plan_name      TEXT    NOT NULL,
    family         TEXT    NOT NULL,
    data_mb        INTEGER NOT NULL,
    duration_days  INTEGER NOT NULL,
    price          INTEGER NOT NULL,
    cost           INTEGER NOT NULL,
    supplier       TEXT    NOT NULL,
    key_id         TEXT    NOT NULL,
    status         TEXT    NOT NULL,
    ask_until      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    failure_code   TEXT,
    failure_detail TEXT,
    orphan         TEXT,
    orphan_profile TEXT
) STRICT;
CREATE UNIQUE INDEX orders_by_account ON orders (account, seq) WHERE seq IS NOT NULL;
CREATE INDEX orders_topups ON orders (esim_order) WHERE esim_order IS NOT NULL;
CREATE INDEX orders_open ON orders (account) WHERE status IN ('PROVISIONING', 'CANCELLING');
CREATE INDEX orders_orphaned ON orders (orphan) WHERE orphan IS NOT NULL;

-- Who holds a caller's reference. A failed order's claim moves to past_claims and the reference is free again.
CREATE TABLE claims (
    account   INTEGER NOT NULL,
    reference TEXT    NOT NULL,
    order_id  TEXT    NOT NULL,
    PRIMARY KEY (account, reference)
) STRICT, WITHOUT ROWID;

CREATE TABLE past_claims (
    account   INTEGER NOT NULL,
    reference TEXT    NOT NULL,
    order_id  TEXT    NOT NULL,
    PRIMARY KEY (account, reference, order_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE esims (
    order_id     TEXT    NOT NULL PRIMARY KEY,
    account      INTEGER NOT NULL,
    profile      TEXT    NOT NULL,
    iccid        TEXT    NOT NULL,
    activation   BLOB    NOT NULL,
    install_by   INTEGER,
    usage_status TEXT,
    total_mb     INTEGER,
    used_mb      INTEGER,
    as_of        INTEGER,
    expires_at   INTEGER
) STRICT, WITHOUT ROWID;
-- A profile has one ICCID for life, so this makes profiles unique as well as findable by ICCID.
CREATE UNIQUE INDEX esims_by_iccid ON esims (iccid, profile);

CREATE TABLE entries (
    id    TEXT    NOT NULL PRIMARY KEY,
    kind  TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    actor TEXT,
    note  TEXT
) STRICT, WITHOUT ROWID;

-- A leg of an entry. Legs on a wallet carry its line number and the balance after it: its statement.
CREATE TABLE postings (
    entry    TEXT    NOT NULL,
    leg      INTEGER NOT NULL,
    account  TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (amount <> 0),
    wallet   INTEGER,
    line     INTEGER,
    balance  INTEGER,
    order_id TEXT,
    PRIMARY KEY (entry, leg)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX postings_by_wallet ON postings (wallet, line) WHERE wallet IS NOT NULL;

CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_last BEFORE DELETE ON postings BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;

CREATE TABLE audit (
    id      TEXT    NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    command TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;

-- The simulated supplier's world: only what was moved is a row.
CREATE TABLE sim_supplier (
    id        INTEGER NOT NULL PRIMARY KEY,
    mode      TEXT    NOT NULL,
    delay_ms  INTEGER NOT NULL,
    remaining INTEGER,
    since     INTEGER NOT NULL
) STRICT;
INSERT INTO sim_supplier (id, mode, delay_ms, remaining, since) VALUES (1, 'ok', 0, NULL, 0);

CREATE TABLE sim_profiles (
    profile TEXT    NOT NULL PRIMARY KEY,
    used_mb INTEGER NOT NULL,
    status  TEXT    NOT NULL
) STRICT;

CREATE TABLE sim_topups (
    order_id TEXT    NOT NULL PRIMARY KEY,
    profile  TEXT    NOT NULL,
    data_mb  INTEGER NOT NULL,
    days     INTEGER NOT NULL
) STRICT;
CREATE INDEX sim_topups_by_profile ON sim_topups (profile);
