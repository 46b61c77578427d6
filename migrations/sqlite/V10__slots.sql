-- Whether a checkout has a wide slot: then amounts near its price pay it too. Those from before are known by theirs alone.
ALTER TABLE checkouts ADD COLUMN wide INTEGER NOT NULL DEFAULT 0;
-- Where a signature for it pays to, if that is not its address. No two that could still be paid name the same amount there.
ALTER TABLE checkouts ADD COLUMN sign_to TEXT;
CREATE UNIQUE INDEX checkouts_by_signature ON checkouts (sign_to, amount, released) WHERE sign_to IS NOT NULL;
-- Who holds unpaid slots, and which slots wait for the end of their rest. Rows leave both.
CREATE INDEX checkouts_wide ON checkouts (account, origin) WHERE wide = 1 AND released = 0 AND status <> 'PAID' AND status <> 'REFUNDED';
CREATE INDEX checkouts_resting ON checkouts (network, late_until) WHERE wide = 1 AND released = 0;

-- A wide slot is two rows, one for each bucket of amounts that it holds on its address, on all networks and in all tokens.
CREATE TABLE slots (
    address TEXT    NOT NULL,
    bucket  INTEGER NOT NULL,
    invoice TEXT    NOT NULL,
    PRIMARY KEY (address, bucket)
) STRICT, WITHOUT ROWID;

-- Wide and exact amounts never share an address. Those for wide slots are numbered from 1 on; the others, and so all that
-- served before, from -1 down.
UPDATE addresses SET serves = -serves WHERE serves IS NOT NULL;
-- Of an address that payers cannot sign for: the one that they sign for instead. It is nobody else's.
ALTER TABLE addresses ADD COLUMN twin TEXT;

-- What came to an address and counts for no invoice, for the page of whoever may have sent it.
CREATE INDEX transfers_stray ON transfers (address, amount) WHERE invoice IS NULL;
