-- A transfer that was not where we had seen it, and whose nodes do not agree on what became of it: it is looked at again.
ALTER TABLE transfers ADD COLUMN doubted BIGINT NOT NULL DEFAULT 0;
CREATE INDEX transfers_doubted ON transfers (network) WHERE doubted = 1;
