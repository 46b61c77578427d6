-- An account's own address that needs no invoice. It never serves one, and there is one for each key.
ALTER TABLE addresses ADD COLUMN standing BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX addresses_standing ON addresses (account, kind, fingerprint) WHERE standing = 1;

-- The deposits of an account by age: its invoices, and the payments that count for none.
CREATE INDEX invoices_by_account ON invoices (account, created_at);
CREATE INDEX transfers_without_invoice ON transfers (account, seen_at) WHERE account IS NOT NULL AND invoice IS NULL;
