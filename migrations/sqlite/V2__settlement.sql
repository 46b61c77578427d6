-- The extended public keys that addresses were derived from. An index is never given out twice.
CREATE TABLE address_keys (
    kind        TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    next_idx    INTEGER NOT NULL,
    PRIMARY KEY (kind, fingerprint)
) STRICT, WITHOUT ROWID;

-- An address belongs to one account for ever; those without an account belong to the house.
CREATE TABLE addresses (
    address     TEXT    NOT NULL PRIMARY KEY,
    kind        TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    idx         INTEGER NOT NULL,
    account     INTEGER,
    watch_until INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX addresses_by_index ON addresses (kind, fingerprint, idx);
CREATE INDEX addresses_by_account ON addresses (account, kind) WHERE account IS NOT NULL;

CREATE TABLE invoices (
    id           TEXT    NOT NULL PRIMARY KEY,
    account      INTEGER NOT NULL,
    network      TEXT    NOT NULL,
    currency     TEXT    NOT NULL,
    amount       INTEGER NOT NULL CHECK (amount > 0),
    address      TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    expired_at   INTEGER,
    confirmed_at INTEGER
) STRICT;
-- An address serves one open invoice at a time.
CREATE UNIQUE INDEX invoices_pending ON invoices (address) WHERE status = 'PENDING';
CREATE INDEX invoices_by_address ON invoices (address, created_at);
CREATE INDEX invoices_due ON invoices (network, expires_at) WHERE status = 'PENDING';
CREATE INDEX invoices_open ON invoices (account, network) WHERE status IN ('PENDING', 'CONFIRMING');

-- One token movement, by its position in the receipt. Without a block it is on no chain at present.
CREATE TABLE transfers (
    network    TEXT    NOT NULL,
    tx_hash    TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    currency   TEXT    NOT NULL,
    sender     TEXT    NOT NULL,
    address    TEXT    NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount > 0),
    block      INTEGER,
    block_hash TEXT,
    block_time INTEGER,
    state      TEXT    NOT NULL,
    account    INTEGER,
    invoice    TEXT,
    round      INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (network, tx_hash, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX transfers_by_block ON transfers (network, block) WHERE block IS NOT NULL;
CREATE INDEX transfers_open ON transfers (network, state) WHERE state IN ('SEEN', 'REVERSED', 'UNMATCHED');
CREATE INDEX transfers_lost ON transfers (network, updated_at) WHERE block IS NULL;
CREATE INDEX transfers_by_invoice ON transfers (invoice) WHERE invoice IS NOT NULL;
CREATE INDEX transfers_by_address ON transfers (address);

-- How far each network was scanned, by whom, and how far its chain had come.
CREATE TABLE cursors (
    network      TEXT    NOT NULL PRIMARY KEY,
    scanned      INTEGER NOT NULL,
    scanned_time INTEGER NOT NULL,
    head         INTEGER NOT NULL,
    holder       TEXT    NOT NULL,
    fence        INTEGER NOT NULL,
    held_until   INTEGER NOT NULL,
    balances_at  INTEGER NOT NULL
) STRICT;

-- Recent blocks as they were when they were scanned: a different hash at the same height is a reorganisation.
CREATE TABLE blocks (
    network TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    hash    TEXT    NOT NULL,
    time    INTEGER NOT NULL,
    PRIMARY KEY (network, number)
) STRICT, WITHOUT ROWID;

-- What an address held when its balance was last looked at.
CREATE TABLE balance_checks (
    network  TEXT    NOT NULL,
    address  TEXT    NOT NULL,
    currency TEXT    NOT NULL,
    amount   INTEGER NOT NULL,
    block    INTEGER NOT NULL,
    PRIMARY KEY (network, address, currency)
) STRICT, WITHOUT ROWID;

ALTER TABLE postings ADD COLUMN transfer TEXT;
CREATE INDEX postings_by_transfer ON postings (transfer) WHERE transfer IS NOT NULL;

INSERT INTO versions (name, n) VALUES ('addresses', 1);

-- The simulated chains: a height follows from the clock, a hash from height and fork; only what moved is a row.
CREATE TABLE sim_chains (
    network   TEXT    NOT NULL PRIMARY KEY,
    genesis   INTEGER NOT NULL,
    mood      TEXT    NOT NULL,
    behind    INTEGER NOT NULL,
    lie_block INTEGER NOT NULL
) STRICT;

CREATE TABLE sim_forks (
    network    TEXT    NOT NULL,
    fork       INTEGER NOT NULL,
    from_block INTEGER NOT NULL,
    PRIMARY KEY (network, fork)
) STRICT, WITHOUT ROWID;

CREATE TABLE sim_transfers (
    network   TEXT    NOT NULL,
    tx_hash   TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    currency  TEXT    NOT NULL,
    sender    TEXT    NOT NULL,
    recipient TEXT    NOT NULL,
    amount    INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    block     INTEGER,
    PRIMARY KEY (network, tx_hash, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX sim_transfers_by_block ON sim_transfers (network, block) WHERE block IS NOT NULL;
CREATE INDEX sim_transfers_by_recipient ON sim_transfers (network, recipient);
