//! Calls that come while others commit share the next commit.
//!
//! Owns the queue of waiting calls, knows nothing of what they do. A call that comes while a lane is idle goes at
//! once and alone: nobody ever waits for company.
//!
//! Invariant: a call that was taken from the queue is carried out even if nobody waits for its answer any more.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::sync::{Notify, oneshot};

/// Calls on their way, in a bounded number of lanes.
#[derive(Debug)]
pub(super) struct Gather<C, A> {
    state: Mutex<State<C, A>>,
    lanes: usize,
    /// Told each time a lane is given back.
    left: Notify,
    /// How much may go in one go, by weight; a call that weighs more goes alone.
    most: usize,
}

#[derive(Debug)]
struct State<C, A> {
    waiting: VecDeque<Waiting<C, A>>,
    busy: usize,
}

#[derive(Debug)]
struct Waiting<C, A> {
    call: C,
    weight: usize,
    answer: oneshot::Sender<A>,
}

impl<C: Send + 'static, A: Send + 'static> Gather<C, A> {
    /// Nothing on its way.
    pub(super) fn new(lanes: usize, most: usize) -> Arc<Self> {
        let state = Mutex::new(State { waiting: VecDeque::new(), busy: 0 });
        Arc::new(Self { state, lanes, left: Notify::new(), most })
    }

    /// Gets the call carried out by `carry_out`, with others or alone, and returns its answer; `None` when carrying
    /// it out came to no end. `carry_out` answers in order.
    pub(super) async fn call<F>(
        self: &Arc<Self>,
        call: C,
        weight: usize,
        carry_out: impl Fn(Vec<C>) -> F + Send + 'static,
    ) -> Option<A>
    where
        F: Future<Output = Vec<A>> + Send,
    {
        let (answer, receiver) = oneshot::channel();
        if self.enqueue(Waiting { call, weight, answer }) {
            let lane = Arc::clone(self);
            tokio::spawn(async move {
                while let Some((calls, answers)) = lane.next() {
                    // A panic answers nobody, and must not hold up those behind.
                    let done = AssertUnwindSafe(carry_out(calls)).catch_unwind().await;
                    for (sender, answer) in answers.into_iter().zip(done.unwrap_or_default()) {
                        // Whoever asked may have gone.
                        let _ = sender.send(answer);
                    }
                }
            });
        }
        receiver.await.ok()
    }

    /// Whether a lane has to be started for it.
    fn enqueue(&self, waiting: Waiting<C, A>) -> bool {
        let mut state = self.lock();
        state.waiting.push_back(waiting);
        let start = state.busy < self.lanes;
        state.busy += usize::from(start);
        start
    }

    /// What goes next; with nothing left the lane is over.
    fn next(&self) -> Option<(Vec<C>, Vec<oneshot::Sender<A>>)> {
        let mut state = self.lock();
        let mut weight = 0;
        let mut taken = (Vec::new(), Vec::new());
        while let Some(first) = state.waiting.front() {
            weight += first.weight;
            if weight > self.most && !taken.0.is_empty() {
                break;
            }
            if let Some(Waiting { call, answer, .. }) = state.waiting.pop_front() {
                taken.0.push(call);
                taken.1.push(answer);
            }
        }
        if taken.0.is_empty() {
            state.busy -= 1;
            self.left.notify_waiters();
            return None;
        }
        Some(taken)
    }

    /// Returns when nothing is on its way any more.
    pub(super) async fn drained(&self) {
        loop {
            let left = self.left.notified();
            if self.lock().busy == 0 {
                return;
            }
            left.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<C, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn the_first_goes_alone_and_those_behind_it_together() {
        let gather: Arc<Gather<u32, usize>> = Gather::new(1, 100);
        let gate = Arc::new(Semaphore::new(0));
        let carry_out = |gate: &Arc<Semaphore>| {
            let gate = Arc::clone(gate);
            move |calls: Vec<u32>| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    vec![calls.len(); calls.len()]
                }
            }
        };
        let ask = |call| {
            let (gather, carry_out) = (Arc::clone(&gather), carry_out(&gate));
            tokio::spawn(async move { gather.call(call, 1, carry_out).await })
        };
        let first = ask(0);
        while gather.lock().busy == 0 || !gather.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        let rest: Vec<_> = (1..=5).map(ask).collect();
        while gather.lock().waiting.len() < 5 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        assert_eq!(first.await.unwrap(), Some(1));
        for answer in rest {
            assert_eq!(answer.await.unwrap(), Some(5));
        }
        assert_eq!(gather.lock().busy, 0);
    }

    #[tokio::test]
    async fn a_panic_answers_nobody_and_gives_the_lane_back() {
        let gather: Arc<Gather<u32, usize>> = Gather::new(1, 100);
        let answer = gather.call(1, 1, |_| async { panic!("as the test wants") }).await;
        assert_eq!(answer, None);
        let answer = gather.call(2, 1, |calls| async move { calls.iter().map(|_| 7).collect() }).await;
        assert_eq!(answer, Some(7));
    }
}
