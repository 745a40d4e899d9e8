-- Which artifacts somebody needs, so that the others can go.

-- `used_ms`: when it was last uploaded, asked for or found to be needed. `doomed_ms`: since when nobody needs it; it goes
-- a while later, so that a submit that saw it before has been committed, and is seen, by then.
ALTER TABLE artifact ADD COLUMN used_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE artifact ADD COLUMN doomed_ms bigint;
UPDATE artifact SET used_ms = created_ms;
CREATE INDEX artifact_used ON artifact (used_ms) WHERE doomed_ms IS NULL;
CREATE INDEX artifact_doomed ON artifact (doomed_ms) WHERE doomed_ms IS NOT NULL;

-- What each job executes, reads and left behind.
CREATE TABLE job_artifact (
  hash bytea NOT NULL,
  job_id uuid NOT NULL,
  PRIMARY KEY (hash, job_id)
);
CREATE INDEX job_artifact_job ON job_artifact (job_id);
INSERT INTO job_artifact
  SELECT decode(spec -> 'binary' ->> 'artifact', 'hex'), id FROM job WHERE spec -> 'binary' ->> 'artifact' IS NOT NULL
  UNION SELECT decode(substr(spec ->> 'input_path', 8), 'hex'), id FROM job WHERE spec ->> 'input_path' LIKE 'sha256:%'
  UNION SELECT decode("end"::json -> 'Exited' -> 'outputs' ->> 'kept', 'hex'), job_id FROM attempt
    WHERE "end"::json -> 'Exited' -> 'outputs' ->> 'kept' IS NOT NULL;

-- Artifacts that are not known any more and whose bytes are still to be removed by a server.
CREATE TABLE artifact_leftover (
  hash bytea PRIMARY KEY,
  since_ms bigint NOT NULL
);
