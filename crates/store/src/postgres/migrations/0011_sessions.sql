-- Sessions of people in browsers, and the one-time codes that begin one. Neither outlives its token's right: whoever looks
-- one up looks at the token too.
CREATE TABLE session (
  hash bytea PRIMARY KEY CONSTRAINT session_hash CHECK (octet_length(hash) = 32),
  token_id uuid NOT NULL,
  created_ms bigint NOT NULL,
  expires_ms bigint NOT NULL
);
CREATE INDEX session_expires ON session (expires_ms);

CREATE TABLE login (
  hash bytea PRIMARY KEY CONSTRAINT login_hash CHECK (octet_length(hash) = 32),
  token_id uuid NOT NULL,
  expires_ms bigint NOT NULL
);
CREATE INDEX login_expires ON login (expires_ms);
