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

-- How a partner's balance stood when it was last compared with its threshold, and up to which line of its statement.
ALTER TABLE accounts ADD COLUMN was_low BIGINT NOT NULL DEFAULT 1;
ALTER TABLE accounts ADD COLUMN looked_line BIGINT NOT NULL DEFAULT 0;
UPDATE accounts SET looked_line = (SELECT w.lines FROM wallets w WHERE w.account = accounts.no) WHERE kind = 'PARTNER';
CREATE INDEX accounts_partners ON accounts (no) WHERE kind = 'PARTNER';
