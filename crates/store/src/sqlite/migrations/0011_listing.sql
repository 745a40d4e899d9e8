-- What lists show and filter by, without a look into the spec.

-- The labels as a JSON object, `{}` when there are none. Rows from before have them, and the two numbers, in
-- their spec only.
ALTER TABLE job ADD COLUMN labels TEXT;
ALTER TABLE job ADD COLUMN priority INTEGER;
ALTER TABLE job ADD COLUMN max_retries INTEGER;
-- From one name to the next, and the newest of a name.
CREATE INDEX job_name ON job (name, id);

CREATE TABLE job_label (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (key, value, job_id)
) STRICT, WITHOUT ROWID;
INSERT INTO job_label
  SELECT label.key, label.value, job.id FROM job, json_each(job.spec, '$.labels') label;

-- Who looks for failures does not look at what went well.
CREATE INDEX attempt_troubled ON attempt (job_id) WHERE outcome <> 0;
