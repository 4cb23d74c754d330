//! A pool whose only thread is busy.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::sync::mpsc;
use std::time::Duration;

use dataset_rt::pool::{Task, WorkerPool};

/// Far longer than anything here takes: a test that would hang fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A task that holds a thread until it is told to go on, and has begun to.
pub(crate) fn hold(pool: &WorkerPool) -> (Task<()>, mpsc::Sender<()>) {
    let (started, has_started) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let task = Task::spawn(pool, move || {
        started.send(()).unwrap();
        let _ = gate.recv();
        Ok(())
    });
    has_started.recv_timeout(PATIENCE).unwrap();
    (task.unwrap(), go_on)
}
