//! Public bug reports, retold as tests: each story that other schedulers' users had to tell is lived through with our
//! real processes and found to end well. A file an area; the reports' numbers stand beside the tests.

mod bad_input;
mod command_line;
mod database;
mod lossy_proxy;
mod output;
mod priority;
mod processes;
mod resources;
mod services;
mod submission;
mod support;
mod workers;
