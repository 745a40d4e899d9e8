//! Work that takes a while without waiting for anything, away from the threads that serve calls.

/// Does it on a thread that may block.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic in there, or the end of everything, comes this way.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
