//! Which file a command means.
