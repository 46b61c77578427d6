CREATE TABLE meta (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

-- Counters that every instance polls, to see within a second what another process changed.
CREATE TABLE versions (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    n    BIGINT NOT NULL
);
INSERT INTO versions (name, n) VALUES ('accounts', 1), ('catalog', 1), ('simulator', 1);

CREATE TABLE accounts (
    no          BIGINT NOT NULL PRIMARY KEY,
    id          TEXT COLLATE "C" NOT NULL UNIQUE,
    name        TEXT COLLATE "C" NOT NULL,
    email       TEXT COLLATE "C",
    price_list  TEXT COLLATE "C" NOT NULL,
    low_balance BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);

-- The hot half of an account: one row, updated by every purchase.
CREATE TABLE wallets (
    account   BIGINT NOT NULL PRIMARY KEY,
    balance   BIGINT NOT NULL CHECK (balance >= 0),
    lines     BIGINT NOT NULL,
    placed    BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    suspended BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE api_keys (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account     BIGINT NOT NULL,
    secret_hash BYTEA NOT NULL,
    daily_limit BIGINT,
    spent_day   BIGINT NOT NULL,
    spent       BIGINT NOT NULL,
    ips         TEXT COLLATE "C" NOT NULL,
    read_only   BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);
CREATE INDEX api_keys_by_account ON api_keys (account);

CREATE TABLE plans (
    code          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL,
    plan_type     TEXT COLLATE "C" NOT NULL,
    family        TEXT COLLATE "C" NOT NULL,
    countries     TEXT COLLATE "C" NOT NULL,
    data_mb       BIGINT NOT NULL,
    duration_days BIGINT NOT NULL,
    operator      TEXT COLLATE "C" NOT NULL,
    supplier      TEXT COLLATE "C" NOT NULL,
    cost          BIGINT NOT NULL,
    retail        BIGINT NOT NULL,
    on_sale       BIGINT NOT NULL
);

CREATE TABLE prices (
    price_list TEXT COLLATE "C" NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    price      BIGINT NOT NULL CHECK (price > 0),
    PRIMARY KEY (price_list, code)
);

-- Orders and top-ups. A top-up names the order whose eSIM it fills and has no number of its own.
CREATE TABLE orders (
    id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account        BIGINT NOT NULL,
    seq            BIGINT,
    esim_order     TEXT COLLATE "C",
    reference      TEXT COLLATE "C",
    package_code   TEXT COLLATE "C" NOT NULL,
    plan_name      TEXT COLLATE "C" NOT NULL,
    family         TEXT COLLATE "C" NOT NULL,
    data_mb        BIGINT NOT NULL,
    duration_days  BIGINT NOT NULL,
    price          BIGINT NOT NULL,
    cost           BIGINT NOT NULL,
    supplier       TEXT COLLATE "C" NOT NULL,
    key_id         TEXT COLLATE "C" NOT NULL,
    status         TEXT COLLATE "C" NOT NULL,
    ask_until      BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    failure_code   TEXT COLLATE "C",
    failure_detail TEXT COLLATE "C",
    orphan         TEXT COLLATE "C",
    orphan_profile TEXT COLLATE "C"
);
CREATE UNIQUE INDEX orders_by_account ON orders (account, seq) WHERE seq IS NOT NULL;
CREATE INDEX orders_topups ON orders (esim_order) WHERE esim_order IS NOT NULL;
CREATE INDEX orders_open ON orders (account) WHERE status IN ('PROVISIONING', 'CANCELLING');
CREATE INDEX orders_orphaned ON orders (orphan) WHERE orphan IS NOT NULL;

-- Who holds a caller's reference. A failed order's claim moves to past_claims and the reference is free again.
CREATE TABLE claims (
    account   BIGINT NOT NULL,
    reference TEXT COLLATE "C" NOT NULL,
    order_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account, reference)
);

CREATE TABLE past_claims (
    account   BIGINT NOT NULL,
    reference TEXT COLLATE "C" NOT NULL,
    order_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account, reference, order_id)
);

CREATE TABLE esims (
    order_id     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account      BIGINT NOT NULL,
    profile      TEXT COLLATE "C" NOT NULL,
    iccid        TEXT COLLATE "C" NOT NULL,
    activation   BYTEA NOT NULL,
    install_by   BIGINT,
    usage_status TEXT COLLATE "C",
    total_mb     BIGINT,
    used_mb      BIGINT,
    as_of        BIGINT,
    expires_at   BIGINT
);
-- A profile has one ICCID for life, so this makes profiles unique as well as findable by ICCID.
CREATE UNIQUE INDEX esims_by_iccid ON esims (iccid, profile);

CREATE TABLE entries (
    id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind  TEXT COLLATE "C" NOT NULL,
    at    BIGINT NOT NULL,
    actor TEXT COLLATE "C",
    note  TEXT COLLATE "C"
);

-- A leg of an entry. Legs on a wallet carry its line number and the balance after it: its statement.
CREATE TABLE postings (
    entry    TEXT COLLATE "C" NOT NULL,
    leg      BIGINT NOT NULL,
    account  TEXT COLLATE "C" NOT NULL,
    amount   BIGINT NOT NULL CHECK (amount <> 0),
    wallet   BIGINT,
    line     BIGINT,
    balance  BIGINT,
    order_id TEXT COLLATE "C",
    PRIMARY KEY (entry, leg)
);
CREATE UNIQUE INDEX postings_by_wallet ON postings (wallet, line) WHERE wallet IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% are append-only', TG_TABLE_NAME; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_last BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER postings_stay BEFORE UPDATE OR DELETE ON postings FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER postings_last BEFORE TRUNCATE ON postings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE audit (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT COLLATE "C" NOT NULL,
    command TEXT COLLATE "C" NOT NULL,
    detail  TEXT COLLATE "C" NOT NULL
);

-- The simulated supplier's world: only what was moved is a row.
CREATE TABLE sim_supplier (
    id        BIGINT NOT NULL PRIMARY KEY,
    mode      TEXT COLLATE "C" NOT NULL,
    delay_ms  BIGINT NOT NULL,
    remaining BIGINT,
    since     BIGINT NOT NULL
);
INSERT INTO sim_supplier (id, mode, delay_ms, remaining, since) VALUES (1, 'ok', 0, NULL, 0);

CREATE TABLE sim_profiles (
    profile TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    used_mb BIGINT NOT NULL,
    status  TEXT COLLATE "C" NOT NULL
);

CREATE TABLE sim_topups (
    order_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    profile  TEXT COLLATE "C" NOT NULL,
    data_mb  BIGINT NOT NULL,
    days     BIGINT NOT NULL
);
CREATE INDEX sim_topups_by_profile ON sim_topups (profile);
