//! B4: a pool and its tasks in a forked child are refused at once, whatever its parent's threads were doing.
#![cfg(unix)]
#![expect(unsafe_code, reason = "forks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::{Error, Result};
use dataset_rt::pool::{Task, WorkerPool, map_blocks};

/// Runs `child` in a forked process and returns its verdict. A child that hangs is ended by its alarm.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls only what this test is about, allocates (which the C library allows after `fork`), and
    // leaves by `_exit`, without running anything of its parent's.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::alarm(30);
            let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
            libc::_exit(i32::from(!verdict));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

fn is_unusable<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Unusable(text)) if text.contains("create a new DatasetRuntime in this process"))
}

#[test]
fn b04_an_inherited_pool_is_refused_and_never_hangs() {
    // The threads and other callers keep every lock of queue and tasks busy, so that some forks happen while one is held.
    let pool = WorkerPool::new(2).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let (pool, stop) = (Arc::clone(&pool), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let tasks: Vec<_> = (0..10).map(|_| Task::spawn(&pool, || Ok(())).unwrap()).collect();
                    for task in tasks {
                        task.take().unwrap();
                    }
                }
            })
        })
        .collect();
    for round in 0..30 {
        let tasks: Vec<_> = (0..20).map(|number| Task::spawn(&pool, move || Ok(vec![number; 100])).unwrap()).collect();
        let handle = Arc::clone(&pool);
        let fine = in_child(|| {
            let mut fine = is_unusable(handle.check())
                && is_unusable(handle.submit(|| ()))
                && is_unusable(Task::spawn(&handle, || Ok(())))
                && is_unusable(map_blocks(&handle, &mut PlainWaiter::default(), 3, &|_, _| Ok(())));
            for (number, task) in tasks.into_iter().enumerate() {
                fine &= !task.try_run() && !task.cancel() && task.is_done() && task.wait(Duration::MAX);
                if number % 2 == 0 {
                    fine &= is_unusable(task.take());
                } else {
                    drop(task);
                }
            }
            // The child's are the last handles it has; a new pool works.
            drop(handle);
            // SAFETY: takes the place of the parent's handle, which the child never uses again.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&pool)) });
            let own = WorkerPool::new(2).unwrap();
            let numbers = map_blocks(&own, &mut PlainWaiter::default(), 50, &|block, _| Ok(block)).unwrap();
            fine && numbers == (0..50).collect::<Vec<_>>()
        });
        assert!(fine, "round {round}");
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().unwrap();
    }
    assert!(pool.check().is_ok(), "the parent's pool is as it was");
    assert_eq!(Task::spawn(&pool, || Ok(5)).unwrap().take().unwrap(), 5);
}

#[test]
fn b04_an_inherited_pool_may_be_dropped() {
    let pool = WorkerPool::new(3).unwrap();
    assert_eq!(Arc::strong_count(&pool), 1);
    assert!(in_child(|| {
        // SAFETY: the child's copy of the only handle; it is never used again, because the child leaves by `_exit`.
        drop(unsafe { Arc::from_raw(Arc::as_ptr(&pool)) });
        true
    }));
    assert_eq!(Task::spawn(&pool, || Ok(5)).unwrap().take().unwrap(), 5);
}
