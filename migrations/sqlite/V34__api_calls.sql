-- Calls of the partner API: when, which and how they were answered; nothing of what was in them.
CREATE TABLE api_calls (
    account    INTEGER NOT NULL,
    -- When it was answered. No two calls of an account have the same time, so this is its place in the list.
    at         INTEGER NOT NULL,
    method     TEXT NOT NULL,
    -- The pattern of the path, without what stood in its places.
    route      TEXT NOT NULL,
    status     INTEGER NOT NULL,
    -- The problem's code, when the call was refused.
    code       TEXT,
    ms         INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    -- The account once more, when the call was refused: such calls are found among many others.
    refused    INTEGER,
    PRIMARY KEY (account, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_calls_of_refused ON api_calls (refused, at) WHERE refused IS NOT NULL;
CREATE INDEX api_calls_by_age ON api_calls (at);

-- How many calls there were of each kind in an hour, counted from 1970, and how long they took together: those that are
-- not kept too.
CREATE TABLE api_call_counts (
    account INTEGER NOT NULL,
    hour    INTEGER NOT NULL,
    route   TEXT NOT NULL,
    method  TEXT NOT NULL,
    status  INTEGER NOT NULL,
    -- Empty when they were not refused.
    code    TEXT NOT NULL,
    calls   INTEGER NOT NULL,
    ms      INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (account, hour, route, method, status, code)
) STRICT, WITHOUT ROWID;
CREATE INDEX api_call_counts_by_age ON api_call_counts (hour);

-- The last batch of calls that each process has written: none is counted twice.
CREATE TABLE api_call_batches (
    writer TEXT NOT NULL PRIMARY KEY,
    no     INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
