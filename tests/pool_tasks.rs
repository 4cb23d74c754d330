//! Tasks end exactly once, whoever runs, helps, waits or cancels.

#[path = "support/holding.rs"]
mod holding;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use dataset_rt::error::Error;
use dataset_rt::pool::{Task, WorkerPool};
use holding::{PATIENCE, hold};

#[test]
fn a_task_returns_what_its_work_returns() {
    let pool = WorkerPool::new(2).unwrap();
    let task = Task::spawn(&pool, || Ok(7)).unwrap();
    assert!(task.wait(PATIENCE));
    assert!(task.is_done());
    assert_eq!(task.take().unwrap(), 7);
    let failed = Task::<()>::spawn(&pool, || Err(Error::UnknownSample("none".to_owned()))).unwrap();
    assert!(matches!(failed.take(), Err(Error::UnknownSample(_))));
}

#[test]
fn a_queued_task_can_be_helped_cancelled_or_dropped() {
    let pool = WorkerPool::new(1).unwrap();
    let (holder, go_on) = hold(&pool);
    assert!(!holder.try_run() && !holder.cancel(), "it runs already");

    let runs = Arc::new(AtomicUsize::new(0));
    let count = || {
        let runs = Arc::clone(&runs);
        Task::spawn(&pool, move || Ok(runs.fetch_add(1, Ordering::SeqCst))).unwrap()
    };
    let (helped, cancelled, dropped, taken) = (count(), count(), count(), count());
    assert!(!helped.wait(Duration::ZERO), "nobody can have run it");
    assert!(!helped.is_done());
    assert!(helped.try_run());
    assert!(!helped.try_run(), "work runs once");
    assert!(!helped.cancel(), "too late");
    assert_eq!(helped.take().unwrap(), 0);
    assert!(cancelled.cancel());
    assert!(!cancelled.cancel(), "once");
    assert!(cancelled.is_done());
    assert!(!cancelled.try_run());
    assert!(matches!(cancelled.take(), Err(Error::Interrupted)));
    drop(dropped);
    assert_eq!(taken.take().unwrap(), 1, "taking helps");

    go_on.send(()).unwrap();
    holder.take().unwrap();
    Task::spawn(&pool, || Ok(())).unwrap().take().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[test]
fn waiting_ends_when_the_work_does_or_the_time_is_up() {
    let pool = WorkerPool::new(1).unwrap();
    let (holder, go_on) = hold(&pool);
    assert!(!holder.wait(Duration::from_millis(1)));
    go_on.send(()).unwrap();
    holder.take().unwrap();
    let start = Instant::now();
    for round in 0..100 {
        let (holder, go_on) = hold(&pool);
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| holder.wait(PATIENCE))).collect();
            // Now and then they are asleep by then.
            for _ in 0..round * 1000 {
                std::hint::spin_loop();
            }
            go_on.send(()).unwrap();
            assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        });
        holder.take().unwrap();
    }
    assert!(start.elapsed() < PATIENCE, "woken by the clock only");
}

#[test]
fn cancelling_wakes_who_waits() {
    let pool = WorkerPool::new(1).unwrap();
    let (_holder, _go_on) = hold(&pool);
    let start = Instant::now();
    for round in 0..100 {
        let task = Task::spawn(&pool, || Ok(())).unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| task.wait(PATIENCE));
            // Now and then the waiter is asleep by then.
            for _ in 0..round * 1000 {
                std::hint::spin_loop();
            }
            assert!(task.cancel());
            assert!(waiter.join().unwrap());
        });
    }
    assert!(start.elapsed() < PATIENCE, "woken by the clock only");
}

/// Says where it is dropped.
struct Tracked(mpsc::Sender<thread::ThreadId>);

impl Drop for Tracked {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

#[test]
fn work_and_results_are_dropped_by_the_owner_of_the_handle() {
    let pool = WorkerPool::new(1).unwrap();
    let (dropped, places) = mpsc::channel();
    let here = thread::current().id();
    let place = || places.recv_timeout(PATIENCE).unwrap();
    for _ in 0..200 {
        let result = Tracked(dropped.clone());
        let task = Task::spawn(&pool, move || Ok(result)).unwrap();
        assert!(task.wait(PATIENCE));
        drop(task);
        assert_eq!(place(), here, "a result nobody took");
    }
    let (holder, go_on) = hold(&pool);
    for cancel in [true, false] {
        let captured = Tracked(dropped.clone());
        let task = Task::spawn(&pool, move || {
            drop(captured);
            Ok(())
        })
        .unwrap();
        if cancel {
            assert!(task.cancel());
        }
        drop(task);
        assert_eq!(place(), here, "work that never ran");
    }
    go_on.send(()).unwrap();
    holder.take().unwrap();
}

#[test]
fn everybody_at_once_still_runs_each_task_once() {
    const TASKS: usize = 20_000;
    let pool = WorkerPool::new(2).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let (mut taken, mut cancelled) = (0, 0);
    for number in 0..TASKS {
        let own_runs = Arc::new(AtomicUsize::new(0));
        let (all, own) = (Arc::clone(&runs), Arc::clone(&own_runs));
        let task = Task::spawn(&pool, move || {
            all.fetch_add(1, Ordering::Relaxed);
            Ok(own.fetch_add(1, Ordering::Relaxed))
        })
        .unwrap();
        match number % 5 {
            0 => assert!(task.wait(PATIENCE)),
            1 => {
                task.try_run();
            }
            2 if task.cancel() => {
                cancelled += 1;
                assert!(matches!(task.take(), Err(Error::Interrupted)));
                assert_eq!(own_runs.load(Ordering::Relaxed), 0);
                continue;
            }
            3 => {
                // Two helpers and a thread of the pool race for it.
                thread::scope(|scope| {
                    if number % 100 == 3 {
                        scope.spawn(|| task.try_run());
                    }
                    task.try_run();
                });
            }
            _ => {}
        }
        assert_eq!(task.take().unwrap(), 0, "no run before this one");
        assert_eq!(own_runs.load(Ordering::Relaxed), 1);
        taken += 1;
    }
    assert_eq!(taken + cancelled, TASKS);
    assert_eq!(runs.load(Ordering::Relaxed), taken);
}
