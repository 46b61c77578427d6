-- What may be forgotten when it is old, by its age. The conditions fit only the questions that they are for.
CREATE INDEX checkouts_old ON checkouts (late_until, id) WHERE status = 'EXPIRED' AND late_until IS NOT NULL;
CREATE INDEX invoices_old ON invoices (expired_at, id) WHERE status = 'EXPIRED';
CREATE INDEX authorizations_old ON authorizations (valid_before) WHERE state = 'DEAD';
-- What a checkout is kept for: a signature that was claimed for it, and a reference of its caller's, which is kept for ever.
CREATE INDEX authorizations_dead ON authorizations (invoice) WHERE state = 'DEAD';
CREATE INDEX claims_of_checkouts ON claims (order_id) WHERE substr(order_id, 1, 4) = 'inv_';

-- When its carrier first said that a profile was installed: its activation code is of no use from then on.
ALTER TABLE esims ADD COLUMN installed_at INTEGER;
UPDATE esims SET installed_at = as_of WHERE usage_status IN ('INSTALLED', 'ACTIVE', 'DEPLETED');

-- The change counter when an address was made or its watch renewed: whoever knows the others reads only what is newer.
ALTER TABLE addresses ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX addresses_changed ON addresses (kind, changed);
