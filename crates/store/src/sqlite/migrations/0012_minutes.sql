-- What happened in each minute, counted from the events. `what` says what was counted: see `minutes.rs`.
CREATE TABLE minute_count (
  minute_ms INTEGER NOT NULL,           -- its beginning
  what INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (minute_ms, what)
) STRICT, WITHOUT ROWID;

-- Up to where events are counted; one row. Moves in the transaction that adds what they count.
CREATE TABLE minute_cursor (
  number INTEGER NOT NULL,              -- as in `event`
  touched_ms INTEGER NOT NULL,          -- when somebody counted last, or looked whether there is something to count
  counted_ms INTEGER NOT NULL           -- up to when everything is counted
) STRICT;
INSERT INTO minute_cursor VALUES (0, 0, 0);
