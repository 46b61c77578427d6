-- The state of a profile and the state of its plan. Rows from before have only the word that both made, in usage_status.
ALTER TABLE esims ADD COLUMN service_state TEXT;
ALTER TABLE esims ADD COLUMN profile_state TEXT;
-- How many readings were stored: a reading is stored only over the one that it was merged with.
ALTER TABLE esims ADD COLUMN readings INTEGER NOT NULL DEFAULT 0;
-- When the carrier was last asked for a reading, and when it last answered.
ALTER TABLE esims ADD COLUMN asked_at INTEGER;
ALTER TABLE esims ADD COLUMN answered_at INTEGER;
-- When a profile is to be read without anybody asking, and which supplier is asked then.
ALTER TABLE esims ADD COLUMN due_from TEXT;
ALTER TABLE esims ADD COLUMN due_at INTEGER;
CREATE INDEX esims_due ON esims (due_from, due_at) WHERE due_at IS NOT NULL;

-- What a profile had used at the end of a UTC day, counted from 1970; only days on which that changed.
CREATE TABLE usage_days (
    order_id TEXT NOT NULL,
    day      INTEGER NOT NULL,
    used_mb  INTEGER NOT NULL,
    total_mb INTEGER NOT NULL,
    PRIMARY KEY (order_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_age ON usage_days (day);

-- The turn of each supplier's readings: no instance may take it before then.
CREATE TABLE usage_turns (
    supplier TEXT NOT NULL PRIMARY KEY,
    next_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
