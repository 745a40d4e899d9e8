-- Who outside is told of events, at least once: up to where, and in whose hand it is.
CREATE TABLE follower (
  name text PRIMARY KEY,
  transaction bigint NOT NULL,
  number bigint NOT NULL,
  holder uuid NOT NULL,
  held_until_ms bigint NOT NULL
);
