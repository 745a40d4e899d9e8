-- Actions on every job that a filter passes, and where each of them is.
CREATE TABLE bulk (
  id uuid PRIMARY KEY,
  filter text NOT NULL,                 -- a query string
  action text NOT NULL CONSTRAINT bulk_action CHECK (action IN ('cancel', 'retry')),
  owners text,                          -- a JSON array; null: everybody's jobs
  created_by text NOT NULL,
  idempotency_key text,
  created_ms bigint NOT NULL,
  status smallint NOT NULL CONSTRAINT bulk_status CHECK (status IN (0, 1, 2)),
  cursor uuid,                          -- jobs below are still to be acted on; null before the first batch
  changed bigint NOT NULL,
  unchanged bigint NOT NULL,
  finished_ms bigint,
  CONSTRAINT bulk_finished CHECK ((status = 0) = (finished_ms IS NULL)),
  CONSTRAINT bulk_key UNIQUE (created_by, idempotency_key)
);
CREATE INDEX bulk_created ON bulk (created_ms);
CREATE INDEX bulk_running ON bulk (created_ms) WHERE status = 0;

-- Filters that somebody gave a name.
CREATE TABLE saved_view (
  id uuid PRIMARY KEY,
  created_by text NOT NULL,
  name text NOT NULL,
  filter text NOT NULL,                 -- a query string
  shared boolean NOT NULL,
  created_ms bigint NOT NULL,
  changed_ms bigint NOT NULL,
  version int NOT NULL,                 -- one more with each change
  CONSTRAINT saved_view_name UNIQUE (created_by, name)
);
CREATE INDEX saved_view_shared ON saved_view (name) WHERE shared;
