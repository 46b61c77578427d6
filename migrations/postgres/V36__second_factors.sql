-- Second factors of people who sign in: an email in a realm. The secret is sealed, bound to both. It counts once it is
-- confirmed. `last_step` is the step of the last code that was used: no older code counts. Wrong codes are counted here,
-- whichever sign-in they came by. `judged` is the try that was last found right or wrong.
CREATE TABLE second_factors (
    realm        TEXT COLLATE "C" NOT NULL,
    email        TEXT COLLATE "C" NOT NULL,
    secret       BYTEA NOT NULL,
    begun_at     BIGINT NOT NULL,
    confirmed_at BIGINT,
    last_step    BIGINT NOT NULL,
    wrong        BIGINT NOT NULL,
    wrong_since  BIGINT NOT NULL,
    rests        BIGINT NOT NULL,
    rests_until  BIGINT NOT NULL,
    judged       TEXT COLLATE "C" NOT NULL,
    judged_right BIGINT NOT NULL,
    PRIMARY KEY (realm, email)
);

-- What stands in for a lost phone, each once: keyed hashes, which go when they are used.
CREATE TABLE recovery_codes (
    realm TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    hash  BYTEA NOT NULL,
    PRIMARY KEY (realm, email, hash)
);
