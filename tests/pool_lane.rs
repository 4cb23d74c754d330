//! Tasks of a lane: one after the other, in their order, whatever becomes of each.

#[path = "support/holding.rs"]
mod holding;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dataset_rt::error::{Error, Result};
use dataset_rt::pool::{Lane, Task, WorkerPool};
use holding::{PATIENCE, hold};

#[test]
fn tasks_run_in_their_order_and_never_two_at_once() {
    let pool = WorkerPool::new(4).unwrap();
    let (lanes, running) = ([Lane::default(), Lane::default()], Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
    let order = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
    let spawn = |number: usize| {
        let (lane, running, order) = (number % 2, Arc::clone(&running), Arc::clone(&order));
        let work = move || {
            let others = running[lane].fetch_add(1, Ordering::SeqCst);
            order.lock().unwrap()[lane].push(number);
            std::thread::yield_now();
            running[lane].fetch_sub(1, Ordering::SeqCst);
            Ok(others)
        };
        lanes[lane].spawn(&pool, work).unwrap()
    };
    let tasks: Vec<_> = (0..2_000).map(spawn).collect();
    for task in tasks {
        assert!(task.wait(PATIENCE));
        assert_eq!(task.take().unwrap(), 0, "two at once");
    }
    for (lane, order) in order.lock().unwrap().iter().enumerate() {
        assert!(order.iter().copied().eq((lane..2_000).step_by(2)), "out of order");
    }
}

#[test]
fn other_tasks_have_their_turn_between_two() {
    let pool = WorkerPool::new(1).unwrap();
    let (lane, order) = (Lane::default(), Arc::new(Mutex::new(Vec::new())));
    let (held, go_on) = hold(&pool);
    let log = |name: &'static str| {
        let order = Arc::clone(&order);
        move || -> Result<()> {
            order.lock().unwrap().push(name);
            Ok(())
        }
    };
    let in_lane: Vec<_> = ["1", "2", "3"].map(|name| lane.spawn(&pool, log(name)).unwrap()).into();
    let other = Task::spawn(&pool, log("other")).unwrap();
    go_on.send(()).unwrap();
    held.take().unwrap();
    assert!(in_lane.iter().all(|task| task.wait(PATIENCE)) && other.wait(PATIENCE));
    assert_eq!(*order.lock().unwrap(), ["1", "other", "2", "3"]);
}

#[test]
fn a_lane_goes_on_behind_what_failed_panicked_or_was_cancelled() {
    let pool = WorkerPool::new(1).unwrap();
    let lane = Lane::default();
    let (held, go_on) = hold(&pool);
    let failed = lane.spawn(&pool, || Err::<(), _>(Error::UnknownSample("none".to_owned()))).unwrap();
    let panicked = lane.spawn(&pool, || -> Result<()> { panic!("in a lane") }).unwrap();
    let cancelled = lane.spawn(&pool, || Ok(())).unwrap();
    drop(lane.spawn(&pool, || Ok(())).unwrap());
    let last = lane.spawn(&pool, || Ok(7)).unwrap();
    assert!(cancelled.cancel());
    go_on.send(()).unwrap();
    held.take().unwrap();
    assert!(last.wait(PATIENCE));
    assert_eq!(last.take().unwrap(), 7);
    assert!(matches!(failed.take(), Err(Error::UnknownSample(_))));
    assert!(matches!(panicked.take(), Err(Error::Panicked(_))));
    // Once it has come to rest it starts again.
    let again = lane.spawn(&pool, || Ok(8)).unwrap();
    assert!(again.wait(PATIENCE));
    assert_eq!(again.take().unwrap(), 8);
}

#[test]
fn a_pool_that_ends_runs_what_is_in_its_lanes() {
    let pool = WorkerPool::new(2).unwrap();
    let (lane, runs) = (Lane::default(), Arc::new(AtomicUsize::new(0)));
    let (held, go_on) = hold(&pool);
    let (also_held, also_go_on) = hold(&pool);
    let count = || {
        let runs = Arc::clone(&runs);
        lane.spawn(&pool, move || Ok(runs.fetch_add(1, Ordering::SeqCst))).unwrap()
    };
    let tasks: Vec<_> = (0..50).map(|_| count()).collect();
    go_on.send(()).unwrap();
    also_go_on.send(()).unwrap();
    drop(pool);
    assert_eq!(runs.load(Ordering::SeqCst), 50);
    assert!(tasks.into_iter().all(|task| task.is_done()));
    held.take().unwrap();
    also_held.take().unwrap();
}
