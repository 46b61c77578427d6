-- A payer's signed permission to move an amount to us (EIP-3009). The key is what the token itself refuses to use
-- twice, so a signature is claimed once, by whichever instance is first.
CREATE TABLE authorizations (
    network      TEXT    NOT NULL,
    asset        TEXT    NOT NULL,
    payer        TEXT    NOT NULL,
    nonce        TEXT    NOT NULL,
    invoice      TEXT    NOT NULL,
    account      INTEGER NOT NULL,
    pay_to       TEXT    NOT NULL,
    amount       INTEGER NOT NULL CHECK (amount > 0),
    valid_after  INTEGER NOT NULL,
    valid_before INTEGER NOT NULL,
    signature    TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    reason       TEXT,
    next_try     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (network, payer, nonce, asset)
) STRICT, WITHOUT ROWID;
-- An invoice is paid by one signature; another may come when that one is dead.
CREATE UNIQUE INDEX authorizations_of_invoice ON authorizations (invoice) WHERE state IN ('CLAIMED', 'SENT', 'SETTLED');
CREATE INDEX authorizations_open ON authorizations (network, next_try) WHERE state IN ('CLAIMED', 'SENT');

-- Who settles with a gas key now, and the number of its next transaction. The fence rises with every change of
-- hands, and a write under an old one does nothing.
CREATE TABLE settlers (
    network    TEXT    NOT NULL,
    sender     TEXT    NOT NULL,
    next_nonce INTEGER NOT NULL,
    holder     TEXT    NOT NULL,
    fence      INTEGER NOT NULL,
    held_until INTEGER NOT NULL,
    PRIMARY KEY (network, sender)
) STRICT, WITHOUT ROWID;

-- Every transaction that a gas key signed. Several may share a number, each to take the place of the one before;
-- one of them ends up in a block. What they cost, at most and then in truth, is in gwei.
CREATE TABLE settlements (
    network       TEXT    NOT NULL,
    tx_hash       TEXT    NOT NULL,
    sender        TEXT    NOT NULL,
    tx_nonce      INTEGER NOT NULL,
    asset         TEXT    NOT NULL,
    payer         TEXT    NOT NULL,
    payment_nonce TEXT    NOT NULL,
    account       INTEGER NOT NULL,
    tip           INTEGER NOT NULL,
    max_fee       INTEGER NOT NULL,
    gas           INTEGER NOT NULL,
    raw           TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    cost          INTEGER NOT NULL,
    sent_at       INTEGER NOT NULL,
    PRIMARY KEY (network, tx_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX settlements_open ON settlements (network, sender, tx_nonce) WHERE state = 'PENDING';
CREATE INDEX settlements_by_age ON settlements (network, sent_at);
CREATE INDEX settlements_of_account ON settlements (account, network, sent_at);

-- The nonce of the authorization that moved a transfer, if one did.
ALTER TABLE transfers ADD COLUMN payment_nonce TEXT;
