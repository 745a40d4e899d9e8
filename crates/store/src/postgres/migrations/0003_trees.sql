-- Trees: which artifacts are manifests, and which files each one names.

CREATE TABLE tree (
  hash bytea PRIMARY KEY,
  files int NOT NULL CONSTRAINT tree_files CHECK (files >= 0),
  size_bytes bigint NOT NULL            -- of its files together
);

CREATE TABLE tree_file (
  tree bytea NOT NULL,
  file bytea NOT NULL,
  PRIMARY KEY (tree, file)
);
CREATE INDEX tree_file_file ON tree_file (file);
