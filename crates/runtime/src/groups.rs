//! Control groups, version 1 and unified.
