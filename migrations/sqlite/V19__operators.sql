-- What was before and after an operator's deed. No line of the log is changed or deleted.
ALTER TABLE audit ADD COLUMN before TEXT;
ALTER TABLE audit ADD COLUMN after TEXT;
CREATE INDEX audit_by_time ON audit (at, id);
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_lasts BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;

-- Guests are known by the address that they typed in.
CREATE INDEX checkouts_by_email ON checkouts (customer_email, created_at) WHERE customer_email IS NOT NULL;

-- What a key is for, and the key that took its place. A key ends at expires_at, as a session does.
ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN replaced_by TEXT;

-- For every partner: how its balance stood when it was last compared with its threshold, and up to which line of its statement.
CREATE TABLE low_balances (
    account     INTEGER NOT NULL PRIMARY KEY,
    was_low     INTEGER NOT NULL,
    looked_line INTEGER NOT NULL
) STRICT;
INSERT INTO low_balances (account, was_low, looked_line)
    SELECT w.account, 1, w.lines FROM wallets w JOIN accounts a ON a.no = w.account WHERE a.kind = 'PARTNER';
