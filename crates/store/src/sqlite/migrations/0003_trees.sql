-- Trees: which artifacts are manifests, and which files each one names.

CREATE TABLE tree (
  hash BLOB PRIMARY KEY,
  files INTEGER NOT NULL CONSTRAINT tree_files CHECK (files >= 0),
  size_bytes INTEGER NOT NULL           -- of its files together
) STRICT, WITHOUT ROWID;

CREATE TABLE tree_file (
  tree BLOB NOT NULL,
  file BLOB NOT NULL,
  PRIMARY KEY (tree, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX tree_file_file ON tree_file (file);
