-- How many eSIMs a partner's team mailed to a mailbox on a day: orders sent by hand, and lines of lists.
CREATE TABLE mailings (
    account INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    day     INTEGER NOT NULL,
    mails   INTEGER NOT NULL,
    PRIMARY KEY (account, mailbox, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX mailings_by_age ON mailings (day);

-- Whether the customer of a line has had enough mails of the team's that day, and gets none.
ALTER TABLE order_batch_lines ADD COLUMN unmailed INTEGER NOT NULL DEFAULT 0;
