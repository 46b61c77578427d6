-- An account is a partner (a company) or a user (an email), who buys at retail.
ALTER TABLE accounts ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'PARTNER';
CREATE UNIQUE INDEX accounts_users ON accounts (email) WHERE kind = 'USER';
INSERT INTO prices (price_list, code, price) SELECT 'retail', code, retail FROM plans WHERE retail > 0
    ON CONFLICT (price_list, code) DO NOTHING;

-- Tokens are keys whose secret alone opens the door. They spend under the same daily limit, so the order path need
-- not tell the two apart.
ALTER TABLE api_keys ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'KEY';
ALTER TABLE api_keys ADD COLUMN prefix TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN agent_name TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT;
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;
CREATE UNIQUE INDEX api_keys_tokens ON api_keys (secret_hash) WHERE kind <> 'KEY';
CREATE INDEX api_keys_sessions ON api_keys (expires_at) WHERE kind = 'SESSION';

-- A login waits for its code, which is derived from its id and the server secret and is stored nowhere.
CREATE TABLE logins (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    email      TEXT COLLATE "C" NOT NULL,
    door       TEXT COLLATE "C" NOT NULL,
    long_code  BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    wrong      BIGINT NOT NULL,
    ended_at   BIGINT
);
CREATE INDEX logins_open ON logins (email, door) WHERE ended_at IS NULL;
CREATE INDEX logins_by_age ON logins (created_at);

-- Every code asked for and every wrong try: what the limits count. The client's address is kept as a keyed hash.
CREATE TABLE login_attempts (
    id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind  TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    ip    TEXT COLLATE "C" NOT NULL,
    at    BIGINT NOT NULL
);
CREATE INDEX login_attempts_by_email ON login_attempts (email, kind, at);
CREATE INDEX login_attempts_by_ip ON login_attempts (ip, kind, at);
CREATE INDEX login_attempts_by_age ON login_attempts (at);

-- What is remembered about an address beyond a day: that it gets long codes, or wants none at all.
CREATE TABLE mailboxes (
    email        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    long_codes   BIGINT NOT NULL,
    silent_until BIGINT NOT NULL
);

-- How many codes the whole service mailed on a day.
CREATE TABLE login_days (
    day   BIGINT NOT NULL PRIMARY KEY,
    asked BIGINT NOT NULL
);
-- Whoever decides about a login locks this row first: limits are sums over rows, and must be exact on many instances.
INSERT INTO versions (name, n) VALUES ('logins', 1);

-- Mails to be sent. Their text is made when they are; a row holds only what it is made from.
CREATE TABLE mails (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    recipient  TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    data       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    next_try   BIGINT NOT NULL,
    tries      BIGINT NOT NULL,
    drop_at    BIGINT NOT NULL
);
CREATE INDEX mails_due ON mails (next_try);
CREATE INDEX mails_by_recipient ON mails (recipient, created_at);
CREATE INDEX mails_by_age ON mails (drop_at);
