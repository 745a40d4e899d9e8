-- What jobs have to hide: their `secret_env`, encrypted by the servers. The key is in no datastore.
--
-- `key_id` says which key it was sealed with; `sealed` is the nonce and the ciphertext, bound to the job's id.
CREATE TABLE job_secret (
  job_id BLOB NOT NULL PRIMARY KEY,
  key_id TEXT NOT NULL,
  sealed BLOB NOT NULL
) STRICT;
