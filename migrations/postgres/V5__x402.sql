-- A payer's signed permission to move an amount to us (EIP-3009). The key is what the token itself refuses to use
-- twice, so a signature is claimed once, by whichever instance is first.
CREATE TABLE authorizations (
    network      TEXT COLLATE "C" NOT NULL,
    asset        TEXT COLLATE "C" NOT NULL,
    payer        TEXT COLLATE "C" NOT NULL,
    nonce        TEXT COLLATE "C" NOT NULL,
    invoice      TEXT COLLATE "C" NOT NULL,
    account      BIGINT NOT NULL,
    pay_to       TEXT COLLATE "C" NOT NULL,
    amount       BIGINT NOT NULL CHECK (amount > 0),
    valid_after  BIGINT NOT NULL,
    valid_before BIGINT NOT NULL,
    signature    TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    reason       TEXT COLLATE "C",
    next_try     BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (network, payer, nonce, asset)
);
-- An invoice is paid by one signature; another may come when that one is dead.
CREATE UNIQUE INDEX authorizations_of_invoice ON authorizations (invoice) WHERE state IN ('CLAIMED', 'SENT', 'SETTLED');
CREATE INDEX authorizations_open ON authorizations (network, next_try) WHERE state IN ('CLAIMED', 'SENT');

-- Who settles with a gas key now, and the number of its next transaction. The fence rises with every change of
-- hands, and a write under an old one does nothing.
CREATE TABLE settlers (
    network    TEXT COLLATE "C" NOT NULL,
    sender     TEXT COLLATE "C" NOT NULL,
    next_nonce BIGINT NOT NULL,
    holder     TEXT COLLATE "C" NOT NULL,
    fence      BIGINT NOT NULL,
    held_until BIGINT NOT NULL,
    PRIMARY KEY (network, sender)
);

-- Every transaction that a gas key signed. Several may share a number, each to take the place of the one before;
-- one of them ends up in a block. What they cost, at most and then in truth, is in gwei.
CREATE TABLE settlements (
    network       TEXT COLLATE "C" NOT NULL,
    tx_hash       TEXT COLLATE "C" NOT NULL,
    sender        TEXT COLLATE "C" NOT NULL,
    tx_nonce      BIGINT NOT NULL,
    asset         TEXT COLLATE "C" NOT NULL,
    payer         TEXT COLLATE "C" NOT NULL,
    payment_nonce TEXT COLLATE "C" NOT NULL,
    account       BIGINT NOT NULL,
    tip           BIGINT NOT NULL,
    max_fee       BIGINT NOT NULL,
    gas           BIGINT NOT NULL,
    raw           TEXT COLLATE "C" NOT NULL,
    state         TEXT COLLATE "C" NOT NULL,
    cost          BIGINT NOT NULL,
    sent_at       BIGINT NOT NULL,
    PRIMARY KEY (network, tx_hash)
);
CREATE INDEX settlements_open ON settlements (network, sender, tx_nonce) WHERE state = 'PENDING';
CREATE INDEX settlements_by_age ON settlements (network, sent_at);
CREATE INDEX settlements_of_account ON settlements (account, network, sent_at);

-- The nonce of the authorization that moved a transfer, if one did.
ALTER TABLE transfers ADD COLUMN payment_nonce TEXT COLLATE "C";
