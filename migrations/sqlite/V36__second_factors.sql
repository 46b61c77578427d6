-- Second factors of people who sign in: an email in a realm. The secret is sealed, bound to both. It counts once it is
-- confirmed. `last_step` is the step of the last code that was used: no older code counts. Wrong codes are counted here,
-- whichever sign-in they came by. `judged` is the try that was last found right or wrong.
CREATE TABLE second_factors (
    realm        TEXT NOT NULL,
    email        TEXT NOT NULL,
    secret       BLOB NOT NULL,
    begun_at     INTEGER NOT NULL,
    confirmed_at INTEGER,
    last_step    INTEGER NOT NULL,
    wrong        INTEGER NOT NULL,
    wrong_since  INTEGER NOT NULL,
    rests        INTEGER NOT NULL,
    rests_until  INTEGER NOT NULL,
    judged       TEXT NOT NULL,
    judged_right INTEGER NOT NULL,
    PRIMARY KEY (realm, email)
) STRICT;

-- What stands in for a lost phone, each once: keyed hashes, which go when they are used.
CREATE TABLE recovery_codes (
    realm TEXT NOT NULL,
    email TEXT NOT NULL,
    hash  BLOB NOT NULL,
    PRIMARY KEY (realm, email, hash)
) STRICT;
