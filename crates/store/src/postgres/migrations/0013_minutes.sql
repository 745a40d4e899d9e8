-- What happened in each minute, counted from the events. `what` says what was counted: see `minutes.rs`.
CREATE TABLE minute_count (
  minute_ms bigint NOT NULL,            -- its beginning
  what smallint NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (minute_ms, what)
);

-- Up to where events are counted; one row. Moves in the transaction that adds what they count.
CREATE TABLE minute_cursor (
  transaction bigint NOT NULL,          -- as in `event`
  number bigint NOT NULL,
  touched_ms bigint NOT NULL,           -- when somebody counted last, or looked whether there is something to count
  counted_ms bigint NOT NULL            -- up to when everything is counted
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
INSERT INTO minute_cursor VALUES (-9223372036854775808, 0, 0, 0);
