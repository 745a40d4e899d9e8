//! New job ids: UUIDv7, ascending within this process.

use std::sync::{Arc, Mutex, PoisonError};

use jobyard_model::{Clock, JobId};
use uuid::Builder;

/// The counter's bits in an id, below its milliseconds.
const COUNTER_BITS: u32 = 26;

/// Makes job ids. Lists go newest first by id, so jobs of one batch and one millisecond keep their order.
pub(crate) struct JobIds {
    clock: Arc<dyn Clock>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    ms: u64,
    counter: u32,
}

impl JobIds {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: Mutex::new(Last::default()) }
    }

    /// The next id: 48 bits of milliseconds, 26 of a counter that starts anywhere in the lower half, 48 of chance.
    pub(crate) fn next(&self) -> JobId {
        let now_ms = u64::try_from(self.clock.now().0).unwrap_or(0);
        let (ms, counter) = self.last.lock().unwrap_or_else(PoisonError::into_inner).step(now_ms);
        let mut bytes: [u8; 10] = rand::random();
        // 12 bits of the counter beside the version, 14 beside the variant.
        bytes[..2].copy_from_slice(&((counter >> 14) as u16).to_be_bytes());
        bytes[2..4].copy_from_slice(&((counter & 0x3fff) as u16).to_be_bytes());
        JobId(Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid())
    }
}

impl Last {
    /// Goes on counting while the clock stands or steps back; never returns the same pair twice.
    fn step(&mut self, now_ms: u64) -> (u64, u32) {
        if now_ms > self.ms {
            *self = Self { ms: now_ms, counter: rand::random::<u32>() >> (32 - COUNTER_BITS + 1) };
        } else if self.counter + 1 < 1 << COUNTER_BITS {
            self.counter += 1;
        } else {
            *self = Self { ms: self.ms + 1, counter: 0 };
        }
        (self.ms, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use jobyard_model::Timestamp;

    use super::*;

    struct Settable(AtomicI64);

    impl Clock for Settable {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn ids_ascend_while_the_clock_stands_and_when_it_steps_back() {
        let clock = Arc::new(Settable(AtomicI64::new(1_777_622_400_000)));
        let ids = JobIds::new(clock.clone());
        let mut made: Vec<JobId> = (0..20_000).map(|_| ids.next()).collect();
        clock.0.store(1_777_622_300_000, Ordering::Relaxed);
        made.extend((0..100).map(|_| ids.next()));
        clock.0.store(1_777_622_500_000, Ordering::Relaxed);
        made.push(ids.next());
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.0.get_version_num() == 7));
    }

    #[test]
    fn a_full_counter_borrows_from_the_next_millisecond() {
        let mut last = Last { ms: 7, counter: (1 << COUNTER_BITS) - 1 };
        assert_eq!(last.step(7), (8, 0));
        assert_eq!(last.step(7), (8, 1));
    }
}
