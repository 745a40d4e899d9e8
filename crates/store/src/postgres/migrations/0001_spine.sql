-- The spine: what a job needs from its submission to its end.
--
-- Times are unix milliseconds by the datastore's clock unless a comment says otherwise. Status, phase, intent, kind,
-- gate and outcome are the model's numbers. Statements write them as literals: with `status = $1` a generic plan
-- could not use the partial indexes.
-- There are no foreign keys into the hot tables: each would take a lock on its parent that claims then trip over.

-- Guards of the statements ------------------------------------------------------------------------------------------

-- The clock that leases are judged by; unlike now() it moves on inside a transaction.
CREATE FUNCTION jobyard_now() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Every guarded write is counted. A wrong count ends the transaction, so that a COMMIT sent along with the writes
-- turns into a rollback.
CREATE FUNCTION jobyard_expect(changed bigint, expected bigint, what text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN
  IF changed <> expected THEN
    RAISE EXCEPTION '%: % rows instead of %', what, changed, expected USING ERRCODE = 'JY001';
  END IF;
END $$;

-- Words that become numbers -----------------------------------------------------------------------------------------

CREATE TABLE owner (
  owner_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL CONSTRAINT owner_name UNIQUE
);

CREATE TABLE pool (
  pool_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL CONSTRAINT pool_name UNIQUE,
  created_ms bigint NOT NULL
);
INSERT INTO pool (name, created_ms) VALUES ('default', jobyard_now());

-- `spec` is the JSON of model::Shape, `digest` the SHA-256 of that text.
CREATE TABLE shape (
  shape_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest bytea NOT NULL CONSTRAINT shape_digest UNIQUE,
  spec text NOT NULL
);

-- Jobs --------------------------------------------------------------------------------------------------------------

-- What was submitted: written once, never updated. `spec` is the JSON of model::JobSpec; not jsonb, since it is
-- written and read whole far more often than looked into.
CREATE TABLE job (
  id uuid PRIMARY KEY,
  owner_id int NOT NULL,
  pool_id int NOT NULL,
  shape_id int NOT NULL,
  name text NOT NULL,
  kind smallint NOT NULL,
  submitted_by text NOT NULL,
  created_ms bigint NOT NULL,
  idempotency_key text,
  spec json NOT NULL
);
CREATE INDEX job_owner ON job (owner_id, id);
CREATE INDEX job_key ON job (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Hot: one narrow row for each job that is not over. All that its transitions need, no payload.
CREATE TABLE job_live (
  id uuid PRIMARY KEY,
  status smallint NOT NULL CONSTRAINT job_live_status CHECK (status IN (1, 2, 3, 4)),
  kind smallint NOT NULL CONSTRAINT job_live_kind CHECK (kind IN (0, 1)),
  lane smallint NOT NULL,
  priority smallint NOT NULL CONSTRAINT job_live_priority CHECK (priority BETWEEN 0 AND 100),
  intent smallint NOT NULL CONSTRAINT job_live_intent CHECK (intent IN (0, 1, 2, 3)),
  artifact_missing boolean NOT NULL,
  exclusive boolean NOT NULL,
  owner_id int NOT NULL,
  pool_id int NOT NULL,
  shape_id int NOT NULL,
  round int NOT NULL,
  attempt int NOT NULL,                 -- the newest attempt's number, 0 before the first
  retry_count int NOT NULL,
  platform_failures int NOT NULL,
  unpaid_in_row int NOT NULL,
  evictions int NOT NULL,
  max_retries int NOT NULL,
  backoff_ms bigint NOT NULL,
  wait_since_ms bigint,                 -- its place in the queue; in the future while it backs off
  due_ms bigint,                        -- `run_at`, or the end of the delay after a failure
  start_deadline_ms bigint,
  start_within_ms bigint,
  started_ms bigint,                    -- when the first attempt of the round was running
  platform_since_ms bigint,
  lease_id uuid,                        -- the live attempt's
  avoid_node uuid,
  no_retry_exit_codes text,             -- JSON array, mostly absent
  CONSTRAINT job_live_lane CHECK (lane = least(priority / 20, 4)),
  CONSTRAINT job_live_waiting CHECK ((status = 2) = (wait_since_ms IS NOT NULL)),
  CONSTRAINT job_live_running CHECK ((status = 3) = (lease_id IS NOT NULL)),
  CONSTRAINT job_live_retry CHECK (status <> 4 OR due_ms IS NOT NULL),
  CONSTRAINT job_live_ready CHECK (status <> 1 OR due_ms IS NOT NULL OR artifact_missing),
  CONSTRAINT job_live_due CHECK (due_ms IS NULL OR status IN (1, 4)),
  CONSTRAINT job_live_missing CHECK (status = 1 OR NOT artifact_missing),
  CONSTRAINT job_live_wanted CHECK (intent = 0 OR status = 3)
) WITH (fillfactor = 70, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = 50000, autovacuum_vacuum_cost_delay = 0);
-- Ends in `id` and carries nothing else: the heads of a group are read in the order of the plan.
CREATE INDEX job_live_claim ON job_live (pool_id, lane, owner_id, shape_id, priority DESC, wait_since_ms, id)
  WHERE status = 2;
CREATE INDEX job_live_due ON job_live (status, due_ms) WHERE status IN (1, 4);
CREATE INDEX job_live_outstanding ON job_live (status, id) WHERE status IN (1, 4);
CREATE INDEX job_live_start_deadline ON job_live (start_deadline_ms)
  WHERE status IN (1, 2) AND start_deadline_ms IS NOT NULL;
CREATE INDEX job_live_stop ON job_live (id) WHERE status = 3 AND intent > 0;

-- Hot: one row for each attempt that has not ended. A heartbeat touches only this table.
-- `lease_until_ms` and `heard_ms` are in no index, so that a renewal stays on its page (HOT).
CREATE TABLE attempt_live (
  job_id uuid PRIMARY KEY,
  number int NOT NULL CONSTRAINT attempt_live_number CHECK (number > 0),
  phase smallint NOT NULL CONSTRAINT attempt_live_phase CHECK (phase IN (0, 1, 2, 3)),
  lease_id uuid NOT NULL CONSTRAINT attempt_live_lease UNIQUE,
  node_id uuid NOT NULL,
  session uuid NOT NULL,
  placed_ms bigint NOT NULL,
  accepted_ms bigint,
  started_ms bigint,
  lease_until_ms bigint NOT NULL,
  heard_ms bigint NOT NULL,             -- when its claim or its last report was accepted
  cpu_milli bigint NOT NULL,            -- reserved on the node
  memory_bytes bigint NOT NULL,
  CONSTRAINT attempt_live_accepted CHECK (phase = 0 OR accepted_ms IS NOT NULL),
  CONSTRAINT attempt_live_started CHECK (phase <> 2 OR started_ms IS NOT NULL)
) WITH (fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX attempt_live_node ON attempt_live (node_id);

-- History: attempts that ended. Append-only. `end` is the JSON of model::AttemptEnd.
CREATE TABLE attempt (
  job_id uuid NOT NULL,
  number int NOT NULL,
  round int NOT NULL,
  phase smallint NOT NULL,              -- where it was when it ended
  outcome smallint NOT NULL CONSTRAINT attempt_outcome CHECK (outcome BETWEEN 0 AND 9),
  retryable boolean NOT NULL,
  lease_id uuid NOT NULL,
  node_id uuid NOT NULL,
  session uuid NOT NULL,
  node_name text NOT NULL,
  placed_ms bigint NOT NULL,
  accepted_ms bigint,
  started_ms bigint,
  lease_until_ms bigint NOT NULL,
  ended_ms bigint NOT NULL,
  fingerprint bigint NOT NULL,
  "end" text NOT NULL,
  PRIMARY KEY (job_id, number)
);

-- One end for a round; `current` is the newest round's, gone when the job is retried by hand.
CREATE TABLE job_end (
  job_id uuid NOT NULL,
  round int NOT NULL,
  status smallint NOT NULL CONSTRAINT job_end_status CHECK (status IN (5, 6, 7)),
  intent smallint NOT NULL,
  current boolean NOT NULL,
  attempt int NOT NULL,                 -- the newest attempt's number
  retry_count int NOT NULL,
  platform_failures int NOT NULL,
  unpaid_in_row int NOT NULL,
  evictions int NOT NULL,
  finished_ms bigint NOT NULL,
  started_ms bigint,
  platform_since_ms bigint,
  reason text,
  PRIMARY KEY (job_id, round),
  CONSTRAINT job_end_reason CHECK ((status = 6) = (reason IS NOT NULL)),
  CONSTRAINT job_end_reasons CHECK
    (reason IN ('retries_exhausted', 'not_retryable', 'platform_failures', 'expired'))
);
CREATE INDEX job_end_listed ON job_end (status, job_id DESC) WHERE current;
CREATE INDEX job_end_finished ON job_end (status, finished_ms) WHERE current;
CREATE UNIQUE INDEX job_end_current ON job_end (job_id) WHERE current;

-- Every change of status, phase or intent. A reader follows (transaction, number) below the oldest transaction that
-- still runs, so that a late commit is never jumped over.
CREATE TABLE event (
  transaction bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  number bigint GENERATED ALWAYS AS IDENTITY,
  at_ms bigint NOT NULL,
  job_id uuid NOT NULL,
  attempt int,
  who text NOT NULL,
  from_ text NOT NULL,
  to_ text NOT NULL,
  why text NOT NULL,
  PRIMARY KEY (transaction, number)
);
CREATE INDEX event_job ON event (job_id, transaction, number);

-- Up to here events may have been removed; one row.
CREATE TABLE event_floor (
  transaction bigint NOT NULL,
  number bigint NOT NULL
);
INSERT INTO event_floor VALUES (0, 0);

CREATE TABLE idempotency (
  owner_id int NOT NULL,
  key text NOT NULL,
  hash bytea NOT NULL,
  job_id uuid NOT NULL,
  created_ms bigint NOT NULL,
  PRIMARY KEY (owner_id, key)
);
CREATE INDEX idempotency_created ON idempotency (created_ms);

-- Artifacts ---------------------------------------------------------------------------------------------------------

CREATE TABLE artifact (
  hash bytea PRIMARY KEY,
  size_bytes bigint NOT NULL,
  created_ms bigint NOT NULL
);

-- Which jobs wait for an upload.
CREATE TABLE awaited_artifact (
  hash bytea NOT NULL,
  job_id uuid NOT NULL,
  PRIMARY KEY (hash, job_id)
);
CREATE INDEX awaited_artifact_job ON awaited_artifact (job_id);

-- Nodes -------------------------------------------------------------------------------------------------------------

-- `labels` is a JSON object, `runtimes` a JSON array.
CREATE TABLE node (
  node_id uuid PRIMARY KEY,
  session uuid NOT NULL,
  previous_session uuid,
  boot_id text NOT NULL,
  previous_boot_id text,
  name text NOT NULL,
  pool_id int NOT NULL,
  cpu_milli bigint NOT NULL,
  memory_bytes bigint NOT NULL,
  max_attempts int NOT NULL,
  labels text NOT NULL,
  runtimes text NOT NULL,
  containment text NOT NULL,
  door text NOT NULL,
  version text NOT NULL,
  gate smallint NOT NULL CONSTRAINT node_gate CHECK (gate IN (0, 1, 2)),
  suspended text,
  quarantined text,
  bad_in_row int NOT NULL,
  heard_ms bigint NOT NULL,
  registered_ms bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- When a server with an open report door last lived, and until when nothing is judged by silence; one row.
CREATE TABLE report_clock (
  stamped_ms bigint NOT NULL,
  reap_not_before_ms bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
INSERT INTO report_clock VALUES (0, 0);

-- Logs --------------------------------------------------------------------------------------------------------------

-- Which bytes of which stream lie where: here, or in a segment of the artifact store.
CREATE TABLE log_chunk (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  seq bigint NOT NULL,                  -- order of arrival within the attempt
  stream smallint NOT NULL CONSTRAINT log_chunk_stream CHECK (stream IN (1, 2)),
  from_offset bigint NOT NULL,
  to_offset bigint NOT NULL,
  at_ms bigint NOT NULL,                -- by the node's clock
  inline bytea,
  segment text,
  segment_offset bigint,
  PRIMARY KEY (job_id, attempt, seq),
  CONSTRAINT log_chunk_range CHECK (0 <= from_offset AND from_offset < to_offset),
  CONSTRAINT log_chunk_body CHECK
    ((inline IS NULL) <> (segment IS NULL) AND (segment IS NULL) = (segment_offset IS NULL))
);
-- Also what refuses a second copy of the same bytes from another server.
CREATE UNIQUE INDEX log_chunk_stream_end ON log_chunk (job_id, attempt, stream, to_offset);

-- Who may, and who did ----------------------------------------------------------------------------------------------

-- `owners` is a JSON array.
CREATE TABLE token (
  id uuid PRIMARY KEY,
  hash bytea NOT NULL CONSTRAINT token_hash UNIQUE,
  name text NOT NULL,
  role text NOT NULL CONSTRAINT token_role CHECK (role IN ('node', 'viewer', 'submitter', 'operator', 'admin')),
  owners text NOT NULL,
  created_ms bigint NOT NULL,
  expires_ms bigint,
  revoked_ms bigint
);

CREATE TABLE audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at_ms bigint NOT NULL,
  who text NOT NULL,
  address text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  detail text NOT NULL
);
CREATE INDEX audit_at ON audit (at_ms);

-- Counts an owner's un-ended jobs up to a bound. Sessions are set to avoid reading tables whole; this is meant to.
CREATE FUNCTION jobyard_unended(owner int, bound bigint) RETURNS bigint LANGUAGE sql STABLE SET enable_seqscan = on AS
$$ SELECT count(*) FROM (SELECT 1 FROM job_live WHERE owner_id = owner LIMIT bound) AS bounded $$;

-- For people at a prompt --------------------------------------------------------------------------------------------

-- The classic columns. Which jobs wait:
--   SELECT id FROM job_table WHERE status = 'waiting';
-- Which running ones were silent for 180 seconds:
--   SELECT id FROM job_table WHERE status = 'running' AND last_heartbeat < now() - interval '180 seconds';
CREATE VIEW job_table AS
SELECT job.id,
       owner.name AS owner_id,
       coalesce('sha256:' || (job.spec -> 'binary' ->> 'artifact'), 'file://' || (job.spec -> 'binary' ->> 'file'))
         AS binary_url,
       job.spec ->> 'input_path' AS input_path,
       job.spec ->> 'output_path' AS output_path,
       to_timestamp(job.created_ms / 1000.0) AS created_time,
       CASE coalesce(job_live.status, job_end.status)
         WHEN 1 THEN 'ready' WHEN 2 THEN 'waiting' WHEN 3 THEN 'running' WHEN 4 THEN 'retry'
         WHEN 5 THEN 'success' WHEN 6 THEN 'final_failed' WHEN 7 THEN 'cancelled' END AS status,
       coalesce(job_live.retry_count, job_end.retry_count) AS retry_count,
       to_timestamp(attempt_live.heard_ms / 1000.0) AS last_heartbeat
FROM job
JOIN owner ON owner.owner_id = job.owner_id
LEFT JOIN job_live ON job_live.id = job.id
LEFT JOIN job_end ON job_end.job_id = job.id AND job_end.current
LEFT JOIN attempt_live ON attempt_live.job_id = job.id;
