-- What is paid back for an order settles first what its own payment still owes us: the transfer whose debt it is.
ALTER TABLE postings ADD COLUMN settles TEXT;
CREATE INDEX postings_by_settles ON postings (settles) WHERE settles IS NOT NULL;

-- What the buyer of a failed or cancelled order got back for it, where that is not its whole price.
ALTER TABLE orders ADD COLUMN refunded INTEGER;

-- Why an account may not buy: OPERATOR, or RECEIVABLE while it owes for payments that are missing on their chain.
ALTER TABLE wallets ADD COLUMN suspended_for TEXT;

-- Transfers that a signature moved, those that were taken back once, and the invoices that somebody has claimed.
CREATE INDEX transfers_by_nonce ON transfers (payment_nonce) WHERE payment_nonce IS NOT NULL;
CREATE INDEX transfers_taken_back ON transfers (account) WHERE round > 0 AND account IS NOT NULL;
CREATE INDEX checkouts_claimed ON checkouts (claimed_by) WHERE claimed_by IS NOT NULL;
