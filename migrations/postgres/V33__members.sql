-- People who sign in to the partner portal: a row is an invitation until its owner has joined. What a member does is in the
-- audit log by the member's email, with the account that it belongs to; a key knows which member made it.
CREATE TABLE members (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account    BIGINT NOT NULL,
    email      TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    invited_at BIGINT NOT NULL,
    invited_by TEXT COLLATE "C" NOT NULL,
    joined_at  BIGINT,
    seen_at    BIGINT,
    removed_at BIGINT
);
CREATE UNIQUE INDEX members_of_account ON members (account, email) WHERE removed_at IS NULL;
CREATE INDEX members_by_email ON members (email) WHERE removed_at IS NULL;
ALTER TABLE audit ADD COLUMN account BIGINT;
CREATE INDEX audit_of_account ON audit (account, at, id) WHERE account IS NOT NULL;
ALTER TABLE api_keys ADD COLUMN made_by TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Whose a session is: a buyer's session token, or a member. One that awaits a second factor opens nothing but the page that
-- asks for it; `wrong` counts its wrong codes.
ALTER TABLE page_sessions RENAME COLUMN token TO holder;
ALTER TABLE page_sessions ADD COLUMN awaits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE page_sessions ADD COLUMN wrong BIGINT NOT NULL DEFAULT 0;
CREATE INDEX page_sessions_of_holder ON page_sessions (holder);

-- Whom a partner wants warned of a low balance; none: whom the company is written to.
ALTER TABLE accounts ADD COLUMN warned TEXT COLLATE "C";
