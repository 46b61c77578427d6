-- People who stay signed in on pages. A row ends with its session. What it buys counts against a session token of its own
-- (`token`), whose text nobody has.
CREATE TABLE page_sessions (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    secret_hash BYTEA NOT NULL UNIQUE,
    realm       TEXT COLLATE "C" NOT NULL,
    account     BIGINT NOT NULL,
    token       TEXT COLLATE "C" NOT NULL,
    made_at     BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL,
    browser     TEXT COLLATE "C" NOT NULL,
    network     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX page_sessions_of_account ON page_sessions (account, made_at);
CREATE INDEX page_sessions_by_age ON page_sessions (made_at);
CREATE INDEX page_sessions_by_use ON page_sessions (seen_at);
