-- Calls of the partner API: when, which and how they were answered; nothing of what was in them.
CREATE TABLE api_calls (
    account    BIGINT NOT NULL,
    -- When it was answered. No two calls of an account have the same time, so this is its place in the list.
    at         BIGINT NOT NULL,
    method     TEXT COLLATE "C" NOT NULL,
    -- The pattern of the path, without what stood in its places.
    route      TEXT COLLATE "C" NOT NULL,
    status     BIGINT NOT NULL,
    -- The problem's code, when the call was refused.
    code       TEXT COLLATE "C",
    ms         BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL,
    -- The account once more, when the call was refused: such calls are found among many others.
    refused    BIGINT,
    PRIMARY KEY (account, at)
);
CREATE INDEX api_calls_of_refused ON api_calls (refused, at) WHERE refused IS NOT NULL;
CREATE INDEX api_calls_by_age ON api_calls (at);

-- How many calls there were of each kind in an hour, counted from 1970, and how long they took together: those that are
-- not kept too.
CREATE TABLE api_call_counts (
    account BIGINT NOT NULL,
    hour    BIGINT NOT NULL,
    route   TEXT COLLATE "C" NOT NULL,
    method  TEXT COLLATE "C" NOT NULL,
    status  BIGINT NOT NULL,
    -- Empty when they were not refused.
    code    TEXT COLLATE "C" NOT NULL,
    calls   BIGINT NOT NULL,
    ms      BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (account, hour, route, method, status, code)
);
CREATE INDEX api_call_counts_by_age ON api_call_counts (hour);

-- The last batch of calls that each process has written: none is counted twice.
CREATE TABLE api_call_batches (
    writer TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    no     BIGINT NOT NULL,
    at     BIGINT NOT NULL
);
