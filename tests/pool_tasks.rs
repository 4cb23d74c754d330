//! Tasks end exactly once, whoever runs, helps, waits or cancels; nothing kills the pool.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Error;
use dataset_rt::pool::{Task, WorkerPool, map_blocks};

/// Far longer than anything here takes: a test that would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_task_returns_what_its_work_returns() {
    let pool = WorkerPool::new(2).unwrap();
    let task = Task::spawn(&pool, || Ok(7)).unwrap();
    assert!(task.wait(PATIENCE));
    assert_eq!(task.take().unwrap(), 7);
}

#[test]
fn blocks_come_back_in_order_and_may_borrow() {
    let pool = WorkerPool::new(3).unwrap();
    let numbers: Vec<usize> = (0..1000).collect();
    let squares =
        map_blocks(&pool, &mut PlainWaiter::default(), numbers.len(), &|block, _| Ok(numbers[block] * block)).unwrap();
    assert_eq!(squares, numbers.iter().map(|number| number * number).collect::<Vec<_>>());
}

/// A task that holds a thread until it is told to go on.
fn hold(pool: &WorkerPool) -> (Task<()>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (started, has_started) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let task = Task::spawn(pool, move || {
        started.send(()).unwrap();
        let _ = gate.recv();
        Ok(())
    });
    (task.unwrap(), has_started, go_on)
}

#[test]
fn a_queued_task_can_be_helped_cancelled_or_dropped() {
    let pool = WorkerPool::new(1).unwrap();
    let (holder, started, go_on) = hold(&pool);
    started.recv_timeout(PATIENCE).unwrap();

    let runs = Arc::new(AtomicUsize::new(0));
    let count = |runs: &Arc<AtomicUsize>| {
        let runs = Arc::clone(runs);
        Task::spawn(&pool, move || Ok(runs.fetch_add(1, Ordering::SeqCst))).unwrap()
    };
    let (helped, cancelled, dropped) = (count(&runs), count(&runs), count(&runs));
    assert!(!helped.wait(Duration::ZERO), "nobody can have run it");
    assert!(helped.try_run());
    assert!(!helped.try_run(), "work runs once");
    assert!(!helped.cancel(), "too late");
    assert_eq!(helped.take().unwrap(), 0);
    assert!(cancelled.cancel());
    assert!(cancelled.is_done());
    assert!(!cancelled.try_run());
    assert!(matches!(cancelled.take(), Err(Error::Interrupted)));
    drop(dropped);

    go_on.send(()).unwrap();
    holder.take().unwrap();
    Task::spawn(&pool, || Ok(())).unwrap().take().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1, "only the helped task ran");
}
