-- The extended public keys that addresses were derived from. An index is never given out twice.
CREATE TABLE address_keys (
    kind        TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    next_idx    BIGINT NOT NULL,
    PRIMARY KEY (kind, fingerprint)
);

-- An address belongs to one account for ever; those without an account belong to the house.
CREATE TABLE addresses (
    address     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind        TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    idx         BIGINT NOT NULL,
    account     BIGINT,
    watch_until BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX addresses_by_index ON addresses (kind, fingerprint, idx);
CREATE INDEX addresses_by_account ON addresses (account, kind) WHERE account IS NOT NULL;

CREATE TABLE invoices (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account      BIGINT NOT NULL,
    network      TEXT COLLATE "C" NOT NULL,
    currency     TEXT COLLATE "C" NOT NULL,
    amount       BIGINT NOT NULL CHECK (amount > 0),
    address      TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    expired_at   BIGINT,
    confirmed_at BIGINT
);
-- An address serves one open invoice at a time.
CREATE UNIQUE INDEX invoices_pending ON invoices (address) WHERE status = 'PENDING';
CREATE INDEX invoices_by_address ON invoices (address, created_at);
CREATE INDEX invoices_due ON invoices (network, expires_at) WHERE status = 'PENDING';
CREATE INDEX invoices_open ON invoices (account, network) WHERE status IN ('PENDING', 'CONFIRMING');

-- One token movement, by its position in the receipt. Without a block it is on no chain at present.
CREATE TABLE transfers (
    network    TEXT COLLATE "C" NOT NULL,
    tx_hash    TEXT COLLATE "C" NOT NULL,
    position   BIGINT NOT NULL,
    currency   TEXT COLLATE "C" NOT NULL,
    sender     TEXT COLLATE "C" NOT NULL,
    address    TEXT COLLATE "C" NOT NULL,
    amount     BIGINT NOT NULL CHECK (amount > 0),
    block      BIGINT,
    block_hash TEXT COLLATE "C",
    block_time BIGINT,
    state      TEXT COLLATE "C" NOT NULL,
    account    BIGINT,
    invoice    TEXT COLLATE "C",
    round      BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (network, tx_hash, position)
);
CREATE INDEX transfers_by_block ON transfers (network, block) WHERE block IS NOT NULL;
CREATE INDEX transfers_open ON transfers (network, state) WHERE state IN ('SEEN', 'REVERSED', 'UNMATCHED');
CREATE INDEX transfers_lost ON transfers (network, updated_at) WHERE block IS NULL;
CREATE INDEX transfers_by_invoice ON transfers (invoice) WHERE invoice IS NOT NULL;
CREATE INDEX transfers_by_address ON transfers (address);

-- How far each network was scanned, by whom, and how far its chain had come.
CREATE TABLE cursors (
    network      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    scanned      BIGINT NOT NULL,
    scanned_time BIGINT NOT NULL,
    head         BIGINT NOT NULL,
    holder       TEXT COLLATE "C" NOT NULL,
    fence        BIGINT NOT NULL,
    held_until   BIGINT NOT NULL,
    balances_at  BIGINT NOT NULL
);

-- Recent blocks as they were when they were scanned: a different hash at the same height is a reorganisation.
CREATE TABLE blocks (
    network TEXT COLLATE "C" NOT NULL,
    number  BIGINT NOT NULL,
    hash    TEXT COLLATE "C" NOT NULL,
    time    BIGINT NOT NULL,
    PRIMARY KEY (network, number)
);

-- What an address held when its balance was last looked at.
CREATE TABLE balance_checks (
    network  TEXT COLLATE "C" NOT NULL,
    address  TEXT COLLATE "C" NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    amount   BIGINT NOT NULL,
    block    BIGINT NOT NULL,
    PRIMARY KEY (network, address, currency)
);

ALTER TABLE postings ADD COLUMN transfer TEXT COLLATE "C";
CREATE INDEX postings_by_transfer ON postings (transfer) WHERE transfer IS NOT NULL;

INSERT INTO versions (name, n) VALUES ('addresses', 1);

-- The simulated chains: a height follows from the clock, a hash from height and fork; only what moved is a row.
CREATE TABLE sim_chains (
    network   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    genesis   BIGINT NOT NULL,
    mood      TEXT COLLATE "C" NOT NULL,
    behind    BIGINT NOT NULL,
    lie_block BIGINT NOT NULL
);

CREATE TABLE sim_forks (
    network    TEXT COLLATE "C" NOT NULL,
    fork       BIGINT NOT NULL,
    from_block BIGINT NOT NULL,
    PRIMARY KEY (network, fork)
);

CREATE TABLE sim_transfers (
    network   TEXT COLLATE "C" NOT NULL,
    tx_hash   TEXT COLLATE "C" NOT NULL,
    position  BIGINT NOT NULL,
    currency  TEXT COLLATE "C" NOT NULL,
    sender    TEXT COLLATE "C" NOT NULL,
    recipient TEXT COLLATE "C" NOT NULL,
    amount    BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    block     BIGINT,
    PRIMARY KEY (network, tx_hash, position)
);
CREATE INDEX sim_transfers_by_block ON sim_transfers (network, block) WHERE block IS NOT NULL;
CREATE INDEX sim_transfers_by_recipient ON sim_transfers (network, recipient);
