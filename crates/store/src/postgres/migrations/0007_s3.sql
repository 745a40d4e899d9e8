-- Executables in S3 are shown, too.

CREATE OR REPLACE VIEW job_table AS
SELECT job.id,
       owner.name AS owner_id,
       coalesce('sha256:' || (job.spec -> 'binary' ->> 'artifact'), 'file://' || (job.spec -> 'binary' ->> 'file'),
         job.spec -> 'binary' ->> 's3') AS binary_url,
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
