-- Executables in S3 are shown, too.

DROP VIEW job_table;
CREATE VIEW job_table AS
SELECT lower(substr(hex(job.id), 1, 8) || '-' || substr(hex(job.id), 9, 4) || '-' || substr(hex(job.id), 13, 4)
         || '-' || substr(hex(job.id), 17, 4) || '-' || substr(hex(job.id), 21)) AS id,
       owner.name AS owner_id,
       CASE WHEN json_extract(job.spec, '$.binary.artifact') IS NOT NULL
              THEN 'sha256:' || json_extract(job.spec, '$.binary.artifact')
            WHEN json_extract(job.spec, '$.binary.file') IS NOT NULL
              THEN 'file://' || json_extract(job.spec, '$.binary.file')
            ELSE json_extract(job.spec, '$.binary.s3') END AS binary_url,
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
