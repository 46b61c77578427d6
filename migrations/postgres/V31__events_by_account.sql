-- Every order writes an event: a smaller index costs it less.
DROP INDEX events_of_account;
CREATE INDEX events_of_account ON events (account, no);
