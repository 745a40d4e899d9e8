-- Who outside is told of events, at least once: up to where, and in whose hand it is.
CREATE TABLE follower (
  name TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL,
  holder BLOB NOT NULL,
  held_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
