-- Which artifacts somebody needs, so that the others can go.

-- `used_ms`: when it was last uploaded, asked for or found to be needed. `doomed_ms`: since when nobody needs it; it goes
-- a while later.
ALTER TABLE artifact ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE artifact ADD COLUMN doomed_ms INTEGER;
UPDATE artifact SET used_ms = created_ms;
CREATE INDEX artifact_used ON artifact (used_ms) WHERE doomed_ms IS NULL;
CREATE INDEX artifact_doomed ON artifact (doomed_ms) WHERE doomed_ms IS NOT NULL;

-- What each job executes, reads and left behind.
CREATE TABLE job_artifact (
  hash BLOB NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (hash, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_artifact_job ON job_artifact (job_id);
INSERT OR IGNORE INTO job_artifact
  SELECT unhex(json_extract(spec, '$.binary.artifact')), id FROM job
    WHERE json_extract(spec, '$.binary.artifact') IS NOT NULL;
INSERT OR IGNORE INTO job_artifact
  SELECT unhex(substr(json_extract(spec, '$.input_path'), 8)), id FROM job
    WHERE json_extract(spec, '$.input_path') LIKE 'sha256:%';
INSERT OR IGNORE INTO job_artifact
  SELECT unhex(json_extract("end", '$.Exited.outputs.kept')), job_id FROM attempt
    WHERE json_extract("end", '$.Exited.outputs.kept') IS NOT NULL;

-- Artifacts that are not known any more and whose bytes are still to be removed by a server.
CREATE TABLE artifact_leftover (
  hash BLOB PRIMARY KEY,
  since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
