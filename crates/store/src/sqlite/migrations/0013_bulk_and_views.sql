-- Actions on every job that a filter passes, and where each of them is.
CREATE TABLE bulk (
  id BLOB NOT NULL PRIMARY KEY,
  filter TEXT NOT NULL,                 -- a query string
  action TEXT NOT NULL CONSTRAINT bulk_action CHECK (action IN ('cancel', 'retry')),
  owners TEXT,                          -- a JSON array; null: everybody's jobs
  created_by TEXT NOT NULL,
  idempotency_key TEXT,
  created_ms INTEGER NOT NULL,
  status INTEGER NOT NULL CONSTRAINT bulk_status CHECK (status IN (0, 1, 2)),
  cursor BLOB,                          -- jobs below are still to be acted on; null before the first batch
  changed INTEGER NOT NULL,
  unchanged INTEGER NOT NULL,
  finished_ms INTEGER,
  CONSTRAINT bulk_finished CHECK ((status = 0) = (finished_ms IS NULL)),
  CONSTRAINT bulk_key UNIQUE (created_by, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX bulk_created ON bulk (created_ms);
CREATE INDEX bulk_running ON bulk (created_ms) WHERE status = 0;

-- Filters that somebody gave a name.
CREATE TABLE saved_view (
  id BLOB NOT NULL PRIMARY KEY,
  created_by TEXT NOT NULL,
  name TEXT NOT NULL,
  filter TEXT NOT NULL,                 -- a query string
  shared INTEGER NOT NULL CONSTRAINT saved_view_shared_flag CHECK (shared IN (0, 1)),
  created_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  version INTEGER NOT NULL,             -- one more with each change
  CONSTRAINT saved_view_name UNIQUE (created_by, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX saved_view_shared ON saved_view (name) WHERE shared;
