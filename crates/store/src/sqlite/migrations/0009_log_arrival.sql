-- Logs of jobs that have not ended are dropped by whole days: when each piece arrived.
--
-- By the datastore's clock; null for what an older binary wrote, whose day is that of `at_ms`.
ALTER TABLE log_chunk ADD COLUMN arrived_ms INTEGER;
