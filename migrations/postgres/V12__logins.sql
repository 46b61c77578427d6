-- A code of a buyer opens every door of buyers: a row says who logs in, no longer where it was asked for.
ALTER TABLE logins RENAME COLUMN door TO realm;
UPDATE logins SET realm = 'BUYERS';

-- Which login was asked for; when the address's bucket is full again, of what was asked for within the day's budget (0:
-- it was not) and of all mails; and the wider networks of the client, whose counts must not read all of their day.
ALTER TABLE login_attempts ADD COLUMN login TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE login_attempts ADD COLUMN full_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE login_attempts ADD COLUMN mails_full_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE login_attempts ADD COLUMN site TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE login_attempts ADD COLUMN area TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX login_attempts_by_site ON login_attempts (site, kind, at) WHERE site <> '';
CREATE INDEX login_attempts_by_area ON login_attempts (area, kind, at) WHERE area <> '';
