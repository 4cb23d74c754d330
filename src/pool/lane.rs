//! Tasks that run one after the other, on whatever threads of a pool.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;

use super::task::Runnable;
use super::{Job, Task, WorkerPool};
use crate::error::Result;

/// Runs its tasks in the order they were queued, never two at once. After each one other tasks of the pool have their turn.
#[derive(Default)]
pub struct Lane(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Arc<dyn Runnable>>,
    /// Whether a thread of the pool runs one of them, or will.
    is_moving: bool,
}

/// What a thread of the pool does for a lane.
pub(super) struct Step {
    queue: Arc<Mutex<Queue>>,
    /// For the step behind this one. It goes with the last step, so that it does not keep the pool's threads.
    jobs: Sender<Job>,
}

impl Lane {
    /// Queues `work` behind everything that was queued before.
    ///
    /// # Errors
    /// [`Error::Unusable`](crate::error::Error) in a forked child.
    pub fn spawn<T: Send + 'static>(
        &self,
        pool: &WorkerPool,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Task<T>> {
        let jobs = pool.jobs()?;
        let (task, runnable) = Task::new(pool, Box::new(work));
        let mut queue = lock(&self.0);
        if !queue.is_moving {
            pool.enqueue(Job::Step(Step { queue: Arc::clone(&self.0), jobs: jobs.clone() }))?;
            queue.is_moving = true;
        }
        queue.tasks.push_back(runnable);
        Ok(task)
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lane")
    }
}

impl Step {
    /// Runs the next task, and has the one behind it run later.
    pub(super) fn run(self) {
        let next = lock(&self.queue).tasks.pop_front();
        if let Some(task) = next {
            task.run_if_queued();
        }
        let mut queue = lock(&self.queue);
        queue.is_moving = !queue.tasks.is_empty();
        if queue.is_moving {
            drop(queue);
            let jobs = self.jobs.clone();
            // As long as a thread runs this there is somebody to receive it.
            let _ = jobs.send(Job::Step(self));
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
