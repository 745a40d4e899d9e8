-- What lists show and filter by, without a look into the spec.

-- The labels as a JSON object, `{}` when there are none. Rows from before have them, and the two numbers, in
-- their spec only.
ALTER TABLE job ADD COLUMN labels json;
ALTER TABLE job ADD COLUMN priority smallint;
ALTER TABLE job ADD COLUMN max_retries int;
-- By bytes, whatever the database's own order is: from one name to the next, and the newest of a name.
CREATE INDEX job_name ON job (name COLLATE "C", id);

CREATE TABLE job_label (
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  job_id uuid NOT NULL,
  PRIMARY KEY (key, value, job_id)
);
INSERT INTO job_label
  SELECT label.key, label.value, job.id FROM job CROSS JOIN LATERAL json_each_text(job.spec -> 'labels') label;

-- Who looks for failures does not look at what went well.
CREATE INDEX attempt_troubled ON attempt (job_id) WHERE outcome <> 0;
