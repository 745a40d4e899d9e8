//! What one side writes, the other reads, also a release later; anything else is an error and never a panic.

mod directory;
mod frames;
mod goldens;
mod hostile;
mod log;
mod samples;
