-- Checks that cost nothing to check.
--
-- SQLite builds a table in memory for `x IN (…)` with more than two values, each time a row is written: half of what a
-- job's rows cost. The same conditions without lists; no row changes, so only the text of the schema does.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(replace(sql,
    'status IN (1, 2, 3, 4)', 'status BETWEEN 1 AND 4'),
    'intent IN (0, 1, 2, 3)', 'intent BETWEEN 0 AND 3')
  WHERE type = 'table' AND name = 'job_live';

UPDATE sqlite_schema SET sql = replace(sql, 'phase IN (0, 1, 2, 3)', 'phase BETWEEN 0 AND 3')
  WHERE type = 'table' AND name = 'attempt_live';

UPDATE sqlite_schema SET sql = replace(replace(sql,
    'status IN (5, 6, 7)', 'status BETWEEN 5 AND 7'),
    'reason IN (''retries_exhausted'', ''not_retryable'', ''platform_failures'', ''expired'')',
    'reason = ''retries_exhausted'' OR reason = ''not_retryable'' OR reason = ''platform_failures'' OR reason = ''expired''')
  WHERE type = 'table' AND name = 'job_end';

-- Reads the schema again: what is written from here on is checked by the new text.
PRAGMA writable_schema = RESET;
