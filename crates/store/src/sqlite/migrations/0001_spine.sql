-- The spine: what a job needs from its submission to its end.
--
-- Times are unix milliseconds by the datastore's clock unless a comment says otherwise. Ids are the 16 bytes of a
-- UUID. Status, phase, intent, kind, gate and outcome are the model's numbers; statements write them as literals, so
-- that the planner sees the partial indexes. Same tables and columns as in PostgreSQL; differences have a comment.

-- Words that become numbers -----------------------------------------------------------------------------------------

-- `unended` is kept here only: one writer makes a counter cheap and exact, on PostgreSQL it would be one hot row.
CREATE TABLE owner (
  owner_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL CONSTRAINT owner_name UNIQUE,
  unended INTEGER NOT NULL DEFAULT 0 CONSTRAINT owner_unended CHECK (unended >= 0)
) STRICT;

CREATE TABLE pool (
  pool_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL CONSTRAINT pool_name UNIQUE,
  created_ms INTEGER NOT NULL
) STRICT;

-- `spec` is the JSON of model::Shape, `digest` the SHA-256 of that text.
CREATE TABLE shape (
  shape_id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL CONSTRAINT shape_digest UNIQUE,
  spec TEXT NOT NULL
) STRICT;

-- Jobs --------------------------------------------------------------------------------------------------------------

-- What was submitted: written once, never updated. `spec` is the JSON of model::JobSpec.
CREATE TABLE job (
  id BLOB NOT NULL PRIMARY KEY,
  owner_id INTEGER NOT NULL REFERENCES owner (owner_id),
  pool_id INTEGER NOT NULL REFERENCES pool (pool_id),
  shape_id INTEGER NOT NULL REFERENCES shape (shape_id),
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  submitted_by TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  idempotency_key TEXT,
  spec TEXT NOT NULL,
  CONSTRAINT job_id_bytes CHECK (length(id) = 16)
) STRICT;
CREATE INDEX job_owner ON job (owner_id, id);
CREATE INDEX job_key ON job (idempotency_key, id) WHERE idempotency_key IS NOT NULL;

-- Hot: one narrow row for each job that is not over. All that its transitions need, no payload.
CREATE TABLE job_live (
  id BLOB NOT NULL PRIMARY KEY,
  status INTEGER NOT NULL CONSTRAINT job_live_status CHECK (status IN (1, 2, 3, 4)),
  kind INTEGER NOT NULL CONSTRAINT job_live_kind CHECK (kind IN (0, 1)),
  pool_id INTEGER NOT NULL,
  shape_id INTEGER NOT NULL,
  owner_id INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  priority INTEGER NOT NULL CONSTRAINT job_live_priority CHECK (priority BETWEEN 0 AND 100),
  wait_since_ms INTEGER,                -- its place in the queue; in the future while it backs off
  due_ms INTEGER,                       -- `run_at`, or the end of the delay after a failure
  artifact_missing INTEGER NOT NULL CONSTRAINT job_live_missing_flag CHECK (artifact_missing IN (0, 1)),
  start_deadline_ms INTEGER,
  attempt INTEGER NOT NULL,             -- the newest attempt's number, 0 before the first
  lease_id BLOB,                        -- the live attempt's
  intent INTEGER NOT NULL CONSTRAINT job_live_intent CHECK (intent IN (0, 1, 2, 3)),
  round INTEGER NOT NULL,
  retry_count INTEGER NOT NULL,
  platform_failures INTEGER NOT NULL,
  platform_since_ms INTEGER,
  unpaid_in_row INTEGER NOT NULL,
  evictions INTEGER NOT NULL,
  avoid_node BLOB,
  max_retries INTEGER NOT NULL,
  backoff_ms INTEGER NOT NULL,
  no_retry_exit_codes TEXT,             -- JSON array, mostly absent
  start_within_ms INTEGER,
  exclusive INTEGER NOT NULL CONSTRAINT job_live_exclusive_flag CHECK (exclusive IN (0, 1)),
  started_ms INTEGER,                   -- when the first attempt of the round was running
  CONSTRAINT job_live_lane CHECK (lane = min(priority / 20, 4)),
  CONSTRAINT job_live_waiting CHECK ((status = 2) = (wait_since_ms IS NOT NULL)),
  CONSTRAINT job_live_running CHECK ((status = 3) = (lease_id IS NOT NULL)),
  CONSTRAINT job_live_retry CHECK (status <> 4 OR due_ms IS NOT NULL),
  CONSTRAINT job_live_ready CHECK (status <> 1 OR due_ms IS NOT NULL OR artifact_missing),
  CONSTRAINT job_live_due CHECK (due_ms IS NULL OR status IN (1, 4)),
  CONSTRAINT job_live_missing CHECK (status = 1 OR NOT artifact_missing),
  CONSTRAINT job_live_wanted CHECK (intent = 0 OR status = 3)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_live_claim ON job_live (pool_id, lane, owner_id, shape_id, priority DESC, wait_since_ms, id)
  WHERE status = 2;
-- By status first: what a step back of the clock left far in the future is looked for among retries only.
-- `OR`, since SQLite does not see that `status = 1` implies `status IN (1, 4)`.
CREATE INDEX job_live_due ON job_live (status, due_ms) WHERE status = 1 OR status = 4;
CREATE INDEX job_live_outstanding ON job_live (status, id) WHERE status = 1 OR status = 4;
CREATE INDEX job_live_start_deadline ON job_live (start_deadline_ms)
  WHERE status IN (1, 2) AND start_deadline_ms IS NOT NULL;
CREATE INDEX job_live_stop ON job_live (id) WHERE status = 3 AND intent > 0;

-- Hot: one row for each attempt that has not ended. A heartbeat touches only this table, and no index of it.
CREATE TABLE attempt_live (
  job_id BLOB NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL CONSTRAINT attempt_live_number CHECK (number > 0),
  lease_id BLOB NOT NULL CONSTRAINT attempt_live_lease UNIQUE,
  node_id BLOB NOT NULL,
  session BLOB NOT NULL,
  phase INTEGER NOT NULL CONSTRAINT attempt_live_phase CHECK (phase IN (0, 1, 2, 3)),
  placed_ms INTEGER NOT NULL,
  accepted_ms INTEGER,
  started_ms INTEGER,
  lease_until_ms INTEGER NOT NULL,
  heard_ms INTEGER NOT NULL,            -- when its claim or its last report was accepted
  cpu_milli INTEGER NOT NULL,           -- reserved on the node
  memory_bytes INTEGER NOT NULL,
  CONSTRAINT attempt_live_accepted CHECK (phase = 0 OR accepted_ms IS NOT NULL),
  CONSTRAINT attempt_live_started CHECK (phase <> 2 OR started_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_live_node ON attempt_live (node_id);

-- History: attempts that ended. Append-only. `end` is the JSON of model::AttemptEnd.
CREATE TABLE attempt (
  job_id BLOB NOT NULL,
  number INTEGER NOT NULL,
  round INTEGER NOT NULL,
  phase INTEGER NOT NULL,               -- where it was when it ended
  outcome INTEGER NOT NULL CONSTRAINT attempt_outcome CHECK (outcome BETWEEN 0 AND 9),
  retryable INTEGER NOT NULL,
  lease_id BLOB NOT NULL,
  node_id BLOB NOT NULL,
  session BLOB NOT NULL,
  node_name TEXT NOT NULL,
  placed_ms INTEGER NOT NULL,
  accepted_ms INTEGER,
  started_ms INTEGER,
  lease_until_ms INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL,
  fingerprint INTEGER NOT NULL,
  "end" TEXT NOT NULL,
  PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

-- One end for a round; `current` is the newest round's, until the job is retried by hand.
CREATE TABLE job_end (
  job_id BLOB NOT NULL,
  round INTEGER NOT NULL,
  status INTEGER NOT NULL CONSTRAINT job_end_status CHECK (status IN (5, 6, 7)),
  intent INTEGER NOT NULL,
  current INTEGER NOT NULL CONSTRAINT job_end_current_flag CHECK (current IN (0, 1)),
  attempt INTEGER NOT NULL,             -- the newest attempt's number
  retry_count INTEGER NOT NULL,
  platform_failures INTEGER NOT NULL,
  unpaid_in_row INTEGER NOT NULL,
  evictions INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  started_ms INTEGER,
  platform_since_ms INTEGER,
  reason TEXT,
  PRIMARY KEY (job_id, round),
  CONSTRAINT job_end_reason CHECK ((status = 6) = (reason IS NOT NULL)),
  CONSTRAINT job_end_reasons CHECK
    (reason IN ('retries_exhausted', 'not_retryable', 'platform_failures', 'expired'))
) STRICT, WITHOUT ROWID;
CREATE INDEX job_end_listed ON job_end (status, job_id DESC) WHERE current;
CREATE INDEX job_end_finished ON job_end (status, finished_ms) WHERE current;
CREATE UNIQUE INDEX job_end_current ON job_end (job_id) WHERE current;

-- Every change of status, phase or intent. No column `transaction` here: with one writer numbers appear in order.
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  job_id BLOB NOT NULL,
  attempt INTEGER,
  who TEXT NOT NULL,
  from_ TEXT NOT NULL,
  to_ TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX event_job ON event (job_id, number);

-- Up to here events may have been removed; one row.
CREATE TABLE event_floor (number INTEGER NOT NULL) STRICT;
INSERT INTO event_floor VALUES (0);

CREATE TABLE idempotency (
  owner_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  hash BLOB NOT NULL,
  job_id BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (owner_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_ms);

-- Artifacts ---------------------------------------------------------------------------------------------------------

CREATE TABLE artifact (
  hash BLOB NOT NULL PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which jobs wait for an upload.
CREATE TABLE awaited_artifact (
  hash BLOB NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (hash, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX awaited_artifact_job ON awaited_artifact (job_id);

-- Nodes -------------------------------------------------------------------------------------------------------------

-- `labels` is a JSON object, `runtimes` a JSON array.
CREATE TABLE node (
  node_id BLOB NOT NULL PRIMARY KEY,
  session BLOB NOT NULL,
  previous_session BLOB,
  boot_id TEXT NOT NULL,
  previous_boot_id TEXT,
  name TEXT NOT NULL,
  pool_id INTEGER NOT NULL REFERENCES pool (pool_id),
  cpu_milli INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  labels TEXT NOT NULL,
  runtimes TEXT NOT NULL,
  containment TEXT NOT NULL,
  door TEXT NOT NULL,
  version TEXT NOT NULL,
  gate INTEGER NOT NULL CONSTRAINT node_gate CHECK (gate IN (0, 1, 2)),
  suspended TEXT,
  quarantined TEXT,
  bad_in_row INTEGER NOT NULL,
  heard_ms INTEGER NOT NULL,
  registered_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When a server with an open report door last lived, and until when nothing is judged by silence; one row.
CREATE TABLE report_clock (
  stamped_ms INTEGER NOT NULL,
  reap_not_before_ms INTEGER NOT NULL
) STRICT;
INSERT INTO report_clock VALUES (0, 0);

-- Logs --------------------------------------------------------------------------------------------------------------

-- Which bytes of which stream lie where: here, or in a segment of the artifact store.
CREATE TABLE log_chunk (
  job_id BLOB NOT NULL,
  attempt INTEGER NOT NULL,
  seq INTEGER NOT NULL,                 -- order of arrival within the attempt
  stream INTEGER NOT NULL CONSTRAINT log_chunk_stream CHECK (stream IN (1, 2)),
  from_offset INTEGER NOT NULL,
  to_offset INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,               -- by the node's clock
  inline BLOB,
  segment TEXT,
  segment_offset INTEGER,
  PRIMARY KEY (job_id, attempt, seq),
  CONSTRAINT log_chunk_range CHECK (0 <= from_offset AND from_offset < to_offset),
  CONSTRAINT log_chunk_body CHECK
    ((inline IS NULL) <> (segment IS NULL) AND (segment IS NULL) = (segment_offset IS NULL))
) STRICT;
CREATE UNIQUE INDEX log_chunk_stream_end ON log_chunk (job_id, attempt, stream, to_offset);

-- Who may, and who did ----------------------------------------------------------------------------------------------

-- `owners` is a JSON array.
CREATE TABLE token (
  id BLOB NOT NULL PRIMARY KEY,
  hash BLOB NOT NULL CONSTRAINT token_hash UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL CONSTRAINT token_role CHECK (role IN ('node', 'viewer', 'submitter', 'operator', 'admin')),
  owners TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  revoked_ms INTEGER
) STRICT;

CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  who TEXT NOT NULL,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at_ms);

-- For people at a prompt --------------------------------------------------------------------------------------------

-- The classic columns, with ids and UTC times as text that compares with datetime(). Which jobs wait:
--   SELECT id FROM job_table WHERE status = 'waiting';
-- Which running ones were silent for 180 seconds:
--   SELECT id FROM job_table WHERE status = 'running' AND last_heartbeat < datetime('now', '-180 seconds');
CREATE VIEW job_table AS
SELECT lower(substr(hex(job.id), 1, 8) || '-' || substr(hex(job.id), 9, 4) || '-' || substr(hex(job.id), 13, 4)
         || '-' || substr(hex(job.id), 17, 4) || '-' || substr(hex(job.id), 21)) AS id,
       owner.name AS owner_id,
       CASE WHEN json_extract(job.spec, '$.binary.artifact') IS NOT NULL
              THEN 'sha256:' || json_extract(job.spec, '$.binary.artifact')
            WHEN json_extract(job.spec, '$.binary.file') IS NOT NULL
              THEN 'file://' || json_extract(job.spec, '$.binary.file') END AS binary_url,
       json_extract(job.spec, '$.input_path') AS input_path,
       json_extract(job.spec, '$.output_path') AS output_path,
       strftime('%Y-%m-%d %H:%M:%f', job.created_ms / 1000.0, 'unixepoch') AS created_time,
       CASE coalesce(job_live.status, job_end.status)
         WHEN 1 THEN 'ready' WHEN 2 THEN 'waiting' WHEN 3 THEN 'running' WHEN 4 THEN 'retry'
         WHEN 5 THEN 'success' WHEN 6 THEN 'final_failed' WHEN 7 THEN 'cancelled' END AS status,
       coalesce(job_live.retry_count, job_end.retry_count) AS retry_count,
       strftime('%Y-%m-%d %H:%M:%f', attempt_live.heard_ms / 1000.0, 'unixepoch') AS last_heartbeat
FROM job
JOIN owner ON owner.owner_id = job.owner_id
LEFT JOIN job_live ON job_live.id = job.id
LEFT JOIN job_end ON job_end.job_id = job.id AND job_end.current
LEFT JOIN attempt_live ON attempt_live.job_id = job.id;
