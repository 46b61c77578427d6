-- People who stay signed in on pages. A row ends with its session. What it buys counts against a session token of its own
-- (`token`), whose text nobody has.
CREATE TABLE page_sessions (
    id          TEXT NOT NULL PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE,
    realm       TEXT NOT NULL,
    account     INTEGER NOT NULL,
    token       TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    browser     TEXT NOT NULL,
    network     TEXT NOT NULL
) STRICT;
CREATE INDEX page_sessions_of_account ON page_sessions (account, made_at);
CREATE INDEX page_sessions_by_age ON page_sessions (made_at);
CREATE INDEX page_sessions_by_use ON page_sessions (seen_at);
