//! Threads: as many as asked for, named, gone with the pool, and not to be killed by what they run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use dataset_rt::error::Error;
use dataset_rt::pool::{Chore, Spare, Task, WorkerPool};

/// Far longer than anything here takes: a test that would hang fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tests of this file count threads of the process, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Names of all threads of this process that a pool may have started.
fn worker_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .filter(|name| name.starts_with("drt-worker-"))
        .collect();
    names.sort();
    names
}

/// Waits until no worker thread is left. A joined thread may be listed for a moment longer; one that leaks is for ever.
fn assert_all_gone() {
    for _ in 0..1_000_000 {
        if worker_names().is_empty() {
            return;
        }
        thread::yield_now();
    }
    panic!("threads are left: {:?}", worker_names());
}

#[test]
fn b01_a_pool_has_exactly_its_named_threads_until_it_is_dropped() {
    let _alone = ALONE.lock();
    for threads in [1, 2, 7] {
        let pool = WorkerPool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads);
        // All of them meet, so all run; none of them does two of these tasks.
        let meeting = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            let meeting = Arc::clone(&meeting);
            pool.submit(move || {
                meeting.wait();
            })
            .unwrap();
        }
        meeting.wait();
        let expected: Vec<String> = (0..threads).map(|number| format!("drt-worker-{number}")).collect();
        assert_eq!(worker_names(), expected);
        drop(pool);
        assert_all_gone();
    }
}

#[test]
fn b01_impossible_numbers_of_threads_are_refused() {
    let _alone = ALONE.lock();
    for threads in [0, 1025, usize::MAX] {
        let refused = WorkerPool::new(threads).unwrap_err();
        assert!(matches!(refused, Error::InvalidValue(_)), "{refused}");
        assert!(refused.to_string().contains(&threads.to_string()), "{refused}");
    }
    assert_eq!(WorkerPool::new(1024).unwrap().threads(), 1024);
    assert_all_gone();
}

#[test]
fn b02_panics_end_tasks_and_not_threads() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let _alone = ALONE.lock();
    let pool = WorkerPool::new(2).unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    for round in 0..50 {
        pool.submit(|| panic!("a call")).unwrap();
        pool.submit(|| std::panic::panic_any(PanicsWhenDropped)).unwrap();
        let guard = PanicsWhenDropped;
        pool.submit(move || drop(guard)).unwrap();
        let task = Task::<()>::spawn(&pool, move || panic!("round {round}")).unwrap();
        assert!(task.wait(PATIENCE));
        let error = task.take().unwrap_err();
        assert!(matches!(&error, Error::Panicked(text) if *text == format!("round {round}")), "{error}");
        let error = Task::<()>::spawn(&pool, || std::panic::panic_any(7)).unwrap().take().unwrap_err();
        assert!(error.to_string().contains("without a message"), "{error}");
    }
    let _ = std::panic::take_hook();
    assert_eq!(worker_names().len(), 2);
}

#[test]
fn b01_dropping_the_pool_runs_what_is_queued() {
    let _alone = ALONE.lock();
    for threads in [1, 3] {
        let pool = WorkerPool::new(threads).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..1000 {
            let done = Arc::clone(&done);
            pool.submit(move || {
                done.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        }
        drop(pool);
        assert_eq!(done.load(Ordering::Relaxed), 1000, "the threads were joined, so all is done");
    }
}

#[test]
fn b01_a_pool_may_be_dropped_by_its_own_threads() {
    let _alone = ALONE.lock();
    for _ in 0..100 {
        let pool = WorkerPool::new(3).unwrap();
        let (handed_over, received) = mpsc::channel::<()>();
        let last = Arc::clone(&pool);
        let task = Task::spawn(&pool, move || {
            // Waits until this is the only handle.
            let _ = received.recv();
            drop(last);
            Ok(())
        })
        .unwrap();
        drop(pool);
        drop(handed_over);
        assert!(task.wait(PATIENCE), "a thread that joins itself never ends");
        task.take().unwrap();
    }
    assert_all_gone();
}

#[test]
fn c09_idle_threads_see_to_chores_until_nobody_wants_them() {
    let _alone = ALONE.lock();
    let pool = WorkerPool::with_chore_interval(1, Duration::from_millis(1)).unwrap();
    let (sender, receiver) = mpsc::channel();
    let chore: Arc<Chore> = Arc::new(move || {
        let _ = sender.send(());
    });
    pool.add_chore(&chore);
    for _ in 0..3 {
        receiver.recv_timeout(PATIENCE).unwrap();
    }
    drop(chore);
    // The sender went with the chore.
    while receiver.recv_timeout(PATIENCE).is_ok() {}
    assert!(matches!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected)));
    drop(pool);
    assert_all_gone();
}

#[test]
fn c09_spare_work_is_done_while_there_is_no_task() {
    let _alone = ALONE.lock();
    let pool = WorkerPool::new(1).unwrap();
    let (sender, receiver) = mpsc::channel();
    let (busy, free) = mpsc::channel::<()>();
    pool.submit(move || assert!(free.recv().is_err())).unwrap();
    let left = AtomicUsize::new(3);
    let parts = sender.clone();
    let work: Arc<Spare> = Arc::new(move || {
        let _ = parts.send("spare");
        left.fetch_sub(1, Ordering::Relaxed) > 1
    });
    pool.add_spare_work(&work).unwrap();
    pool.submit(move || sender.send("task").unwrap()).unwrap();
    drop(busy);
    let next = || receiver.recv_timeout(PATIENCE).unwrap();
    assert_eq!([next(), next(), next(), next()], ["task", "spare", "spare", "spare"]);
    // A thread that is done with it waits for tasks, and no more is done.
    Task::spawn(&pool, || Ok(())).unwrap().take().unwrap();
    assert!(receiver.try_recv().is_err());
    drop(pool);
    assert_all_gone();
}

#[test]
fn c09_spare_work_without_end_holds_up_neither_tasks_nor_the_end_of_the_pool() {
    let _alone = ALONE.lock();
    let pool = WorkerPool::new(2).unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&done);
    let work: Arc<Spare> = Arc::new(move || counter.fetch_add(1, Ordering::Relaxed) < usize::MAX);
    pool.add_spare_work(&work).unwrap();
    let (sender, receiver) = mpsc::channel();
    for number in 0..100 {
        let sender = sender.clone();
        pool.submit(move || sender.send(number).unwrap()).unwrap();
    }
    assert!((0..100).all(|_| receiver.recv_timeout(PATIENCE).is_ok()));
    while done.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    drop(pool);
    assert_all_gone();
}

#[test]
fn c09_spare_work_ends_with_its_owner_and_with_a_panic() {
    let _alone = ALONE.lock();
    let pool = WorkerPool::new(1).unwrap();
    let (sender, receiver) = mpsc::channel();
    let panics = sender.clone();
    let failing: Arc<Spare> = Arc::new(move || {
        let _ = panics.send(());
        panic!("a part that fails");
    });
    pool.add_spare_work(&failing).unwrap();
    receiver.recv_timeout(PATIENCE).unwrap();
    let work: Arc<Spare> = Arc::new(move || sender.send(()).is_ok());
    pool.add_spare_work(&work).unwrap();
    receiver.recv_timeout(PATIENCE).unwrap();
    drop((work, failing));
    // The senders went with the work.
    while receiver.recv_timeout(PATIENCE).is_ok() {}
    assert!(matches!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected)));
    drop(pool);
    assert_all_gone();
}
