-- Guests have no account. This one stands for all of them: its wallet gives out order numbers, and never holds money.
INSERT INTO accounts (no, id, name, email, price_list, low_balance, created_at, kind)
    VALUES (0, 'guests', 'Guests', NULL, 'retail', 0, 0, 'GUEST');
INSERT INTO wallets (account, balance, lines, placed, failed, suspended, numbers) VALUES (0, 0, 0, 0, 0, 0, 0);

-- Whose wallet what was owed to a guest's checkout went to.
ALTER TABLE checkouts ADD COLUMN claimed_by BIGINT;

-- The guest's invoice that a posting on what we owe is about.
ALTER TABLE postings ADD COLUMN invoice TEXT COLLATE "C";
CREATE INDEX postings_by_invoice ON postings (invoice) WHERE invoice IS NOT NULL;

-- Links by which a user's wallet is topped up. The token in the address is known by its hash only.
CREATE TABLE magic_links (
    hash       BYTEA NOT NULL PRIMARY KEY,
    account    BIGINT NOT NULL,
    minimum    BIGINT NOT NULL CHECK (minimum > 0),
    invoice    TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX magic_links_by_age ON magic_links (expires_at);
