-- People who sign in to the partner portal: a row is an invitation until its owner has joined. What a member does is in the
-- audit log by the member's email, with the account that it belongs to; a key knows which member made it.
CREATE TABLE members (
    id         TEXT NOT NULL PRIMARY KEY,
    account    INTEGER NOT NULL,
    email      TEXT NOT NULL,
    role       TEXT NOT NULL,
    invited_at INTEGER NOT NULL,
    invited_by TEXT NOT NULL,
    joined_at  INTEGER,
    seen_at    INTEGER,
    removed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX members_of_account ON members (account, email) WHERE removed_at IS NULL;
CREATE INDEX members_by_email ON members (email) WHERE removed_at IS NULL;
ALTER TABLE audit ADD COLUMN account INTEGER;
CREATE INDEX audit_of_account ON audit (account, at, id) WHERE account IS NOT NULL;
ALTER TABLE api_keys ADD COLUMN made_by TEXT NOT NULL DEFAULT '';

-- Whose a session is: a buyer's session token, or a member. One that awaits a second factor opens nothing but the page that
-- asks for it; `wrong` counts its wrong codes.
ALTER TABLE page_sessions RENAME COLUMN token TO holder;
ALTER TABLE page_sessions ADD COLUMN awaits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE page_sessions ADD COLUMN wrong INTEGER NOT NULL DEFAULT 0;
CREATE INDEX page_sessions_of_holder ON page_sessions (holder);

-- Whom a partner wants warned of a low balance; none: whom the company is written to.
ALTER TABLE accounts ADD COLUMN warned TEXT;
