-- Where events of an account are sent to.
CREATE TABLE webhooks (
    id            TEXT NOT NULL PRIMARY KEY,
    account       INTEGER NOT NULL,
    url           TEXT NOT NULL,
    -- The kinds of events that are wanted, separated by commas; empty: all.
    kinds         TEXT NOT NULL,
    description   TEXT NOT NULL,
    status        TEXT NOT NULL,
    -- The key of its signatures, encrypted, and the one before it, which signs too until then.
    secret        BLOB NOT NULL,
    old_secret    BLOB,
    old_until     INTEGER,
    -- Every event up to this place was delivered, is waiting or was not wanted.
    cursor        INTEGER NOT NULL,
    -- Counted up by every change but those that deliveries make: what was begun before does not count after it.
    edition       INTEGER NOT NULL DEFAULT 0,
    -- The id of the test event that it must accept before it gets others.
    test          TEXT NOT NULL,
    -- Since when it has accepted nothing, how often it was tried since then, and until when it is left alone.
    failing_since INTEGER,
    failures      INTEGER NOT NULL DEFAULT 0,
    resting_until INTEGER,
    accepted_at   INTEGER,
    created_at    INTEGER NOT NULL,
    disabled_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_of_account ON webhooks (account, created_at);

-- Events that an endpoint refused, and later ones of the same subject, which must not come before them.
CREATE TABLE webhook_waiting (
    webhook    TEXT NOT NULL,
    event      INTEGER NOT NULL,
    subject    TEXT NOT NULL,
    -- When it was first refused, how often it was tried, and when it is tried again.
    refused_at INTEGER,
    tries      INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    -- When it was set aside, after a day of refusals.
    aside_at   INTEGER,
    PRIMARY KEY (webhook, event)
) STRICT, WITHOUT ROWID;

-- Every try to deliver an event.
CREATE TABLE webhook_deliveries (
    no      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    webhook TEXT NOT NULL,
    -- The event's place in the log; empty for a test.
    event   INTEGER,
    -- The id that was sent, and the kind of event.
    message TEXT NOT NULL,
    kind    TEXT NOT NULL,
    -- Which try it was; empty for one by hand.
    try     INTEGER,
    at      INTEGER NOT NULL,
    ms      INTEGER NOT NULL,
    -- The HTTP status and the beginning of the answer, or why there is none.
    status  INTEGER,
    answer  TEXT,
    trouble TEXT
) STRICT;
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook, no);

INSERT INTO versions (name, n) VALUES ('webhooks', 1);

-- Which instance delivers to webhooks.
CREATE TABLE webhook_turn (
    name       TEXT NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
