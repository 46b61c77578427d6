-- What was before and after an operator's deed. No line of the log is changed or deleted.
ALTER TABLE audit ADD COLUMN before TEXT COLLATE "C";
ALTER TABLE audit ADD COLUMN after TEXT COLLATE "C";
CREATE INDEX audit_by_time ON audit (at, id);
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_lasts BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Guests are known by the address that they typed in.
CREATE INDEX checkouts_by_email ON checkouts (customer_email, created_at) WHERE customer_email IS NOT NULL;

-- What a key is for, and the key that took its place. A key ends at expires_at, as a session does.
ALTER TABLE api_keys ADD COLUMN name TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN replaced_by TEXT COLLATE "C";

-- For every partner: how its balance stood when it was last compared with its threshold, and up to which line of its statement.
CREATE TABLE low_balances (
    account     BIGINT NOT NULL PRIMARY KEY,
    was_low     BIGINT NOT NULL,
    looked_line BIGINT NOT NULL
);
INSERT INTO low_balances (account, was_low, looked_line)
    SELECT w.account, 1, w.lines FROM wallets w JOIN accounts a ON a.no = w.account WHERE a.kind = 'PARTNER';
