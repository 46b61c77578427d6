-- An account is a partner (a company) or a user (an email), who buys at retail.
ALTER TABLE accounts ADD COLUMN kind TEXT NOT NULL DEFAULT 'PARTNER';
CREATE UNIQUE INDEX accounts_users ON accounts (email) WHERE kind = 'USER';
INSERT INTO prices (price_list, code, price) SELECT 'retail', code, retail FROM plans WHERE retail > 0
    ON CONFLICT (price_list, code) DO NOTHING;

-- Tokens are keys whose secret alone opens the door. They spend under the same daily limit, so the order path need
-- not tell the two apart.
ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'KEY';
ALTER TABLE api_keys ADD COLUMN prefix TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN agent_name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
CREATE UNIQUE INDEX api_keys_tokens ON api_keys (secret_hash) WHERE kind <> 'KEY';
CREATE INDEX api_keys_sessions ON api_keys (expires_at) WHERE kind = 'SESSION';

-- A login waits for its code, which is derived from its id and the server secret and is stored nowhere.
CREATE TABLE logins (
    id         TEXT    NOT NULL PRIMARY KEY,
    email      TEXT    NOT NULL,
    door       TEXT    NOT NULL,
    long_code  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    wrong      INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT;
CREATE INDEX logins_open ON logins (email, door) WHERE ended_at IS NULL;
CREATE INDEX logins_by_age ON logins (created_at);

-- Every code asked for and every wrong try: what the limits count. The client's address is kept as a keyed hash.
CREATE TABLE login_attempts (
    id    TEXT    NOT NULL PRIMARY KEY,
    kind  TEXT    NOT NULL,
    email TEXT    NOT NULL,
    ip    TEXT    NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX login_attempts_by_email ON login_attempts (email, kind, at);
CREATE INDEX login_attempts_by_ip ON login_attempts (ip, kind, at);
CREATE INDEX login_attempts_by_age ON login_attempts (at);

-- What is remembered about an address beyond a day: that it gets long codes, or wants none at all.
CREATE TABLE mailboxes (
    email        TEXT    NOT NULL PRIMARY KEY,
    long_codes   INTEGER NOT NULL,
    silent_until INTEGER NOT NULL
) STRICT;

-- How many codes the whole service mailed on a day.
CREATE TABLE login_days (
    day   INTEGER NOT NULL PRIMARY KEY,
    asked INTEGER NOT NULL
) STRICT;
-- Whoever decides about a login locks this row first: limits are sums over rows, and must be exact on many instances.
INSERT INTO versions (name, n) VALUES ('logins', 1);

-- Mails to be sent. Their text is made when they are; a row holds only what it is made from.
CREATE TABLE mails (
    id         TEXT    NOT NULL PRIMARY KEY,
    recipient  TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    next_try   INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    drop_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX mails_due ON mails (next_try);
CREATE INDEX mails_by_recipient ON mails (recipient, created_at);
CREATE INDEX mails_by_age ON mails (drop_at);
