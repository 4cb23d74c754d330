//! Work in blocks: results in order, the earliest error, nothing running afterwards, no deadlock.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use dataset_rt::cancel::{PlainWaiter, Waiter};
use dataset_rt::error::{Error, Result};
use dataset_rt::pool::{Task, WorkerPool, map_blocks, run_all};

/// Far longer than anything here takes: a test that would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn blocks_come_back_in_order_and_may_borrow() {
    for threads in [1, 3] {
        let pool = WorkerPool::new(threads).unwrap();
        for count in [0, 1, 2, 1000] {
            let numbers: Vec<usize> = (0..count).map(|number| number * 3).collect();
            let squares =
                map_blocks(&pool, &mut PlainWaiter::default(), count, &|block, _| Ok(numbers[block] * block)).unwrap();
            assert_eq!(squares, numbers.iter().enumerate().map(|(at, number)| number * at).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_earliest_error_is_returned_and_later_blocks_are_not_started() {
    let pool = WorkerPool::new(4).unwrap();
    for _ in 0..200 {
        let started = AtomicUsize::new(0);
        let error = run_all(&pool, &mut PlainWaiter::default(), 10_000, &|block, _| {
            started.fetch_add(1, Ordering::Relaxed);
            if block >= 20 { Err(Error::UnknownSample(block.to_string())) } else { Ok(()) }
        })
        .unwrap_err();
        assert_eq!(error.to_string(), "20");
        assert!((21..=24).contains(&started.load(Ordering::Relaxed)), "{started:?}");
    }
}

#[test]
fn a_panic_in_a_block_is_its_error() {
    let pool = WorkerPool::new(2).unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    let error = run_all(&pool, &mut PlainWaiter::default(), 100, &|block, _| {
        assert!(block != 5, "block five");
        Ok(())
    })
    .unwrap_err();
    let _ = std::panic::take_hook();
    assert!(matches!(&error, Error::Panicked(text) if text == "block five"), "{error}");
}

/// Gives up as soon as a block has begun.
struct Impatient(mpsc::Receiver<()>);

impl Waiter for Impatient {
    fn wait(&mut self, _done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        self.0.recv_timeout(PATIENCE).unwrap();
        Err(Error::Interrupted)
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn b03_an_interruption_reaches_running_blocks_and_leaves_none_behind() {
    let pool = WorkerPool::new(2).unwrap();
    for _ in 0..100 {
        let (begun, has_begun) = mpsc::channel();
        let running = AtomicUsize::new(0);
        let error = run_all(&pool, &mut Impatient(has_begun), 1000, &|_, cancel| {
            running.fetch_add(1, Ordering::SeqCst);
            let _ = begun.send(());
            while !cancel.is_cancelled() {
                std::hint::spin_loop();
            }
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_waiter_that_panics_leaves_no_block_behind() {
    struct Panics;
    impl Waiter for Panics {
        fn wait(&mut self, _done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
            panic!("while waiting");
        }

        fn check(&mut self) -> Result<()> {
            Ok(())
        }
    }
    let pool = WorkerPool::new(2).unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..100 {
        let running = AtomicUsize::new(0);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run_all(&pool, &mut Panics, 1000, &|_, cancel| {
                running.fetch_add(1, Ordering::SeqCst);
                while !cancel.is_cancelled() {
                    std::hint::spin_loop();
                }
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        }));
        assert!(caught.is_err());
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }
    let _ = std::panic::take_hook();
}

#[test]
fn blocks_inside_blocks_do_not_wait_for_each_other() {
    for threads in [1, 2] {
        let pool = WorkerPool::new(threads).unwrap();
        let inner_pool = std::sync::Arc::clone(&pool);
        // All threads do this at once, and each needs threads for its inner blocks.
        let task = Task::spawn(&pool, move || {
            let sums = map_blocks(&inner_pool, &mut PlainWaiter::default(), 8, &|outer, _| {
                let parts = map_blocks(&inner_pool, &mut PlainWaiter::default(), 8, &|inner, _| Ok(outer * inner))?;
                Ok(parts.into_iter().sum::<usize>())
            })?;
            Ok(sums.into_iter().sum::<usize>())
        })
        .unwrap();
        assert!(task.wait(PATIENCE), "{threads} threads");
        assert_eq!(task.take().unwrap(), 28 * 28);
    }
}
