-- How many eSIMs a partner's team mailed to a mailbox on a day: orders sent by hand, and lines of lists.
CREATE TABLE mailings (
    account BIGINT NOT NULL,
    mailbox TEXT COLLATE "C" NOT NULL,
    day     BIGINT NOT NULL,
    mails   BIGINT NOT NULL,
    PRIMARY KEY (account, mailbox, day)
);
CREATE INDEX mailings_by_age ON mailings (day);

-- Whether the customer of a line has had enough mails of the team's that day, and gets none.
ALTER TABLE order_batch_lines ADD COLUMN unmailed BIGINT NOT NULL DEFAULT 0;
