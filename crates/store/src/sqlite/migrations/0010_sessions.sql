-- Sessions of people in browsers, and the one-time codes that begin one. Neither outlives its token's right: whoever looks
-- one up looks at the token too.
CREATE TABLE session (
  hash BLOB NOT NULL PRIMARY KEY CONSTRAINT session_hash CHECK (length(hash) = 32),
  token_id BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX session_expires ON session (expires_ms);

CREATE TABLE login (
  hash BLOB NOT NULL PRIMARY KEY CONSTRAINT login_hash CHECK (length(hash) = 32),
  token_id BLOB NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX login_expires ON login (expires_ms);
