//! How much a write holds in memory, seen by the owners of the payloads.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use dataset_rt::error::{Error, Result};
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::writer::{PayloadRef, Rows, SharedBytes, Source, WriterConfig};
use support::{config, temp_dir, write};

/// A payload that tells when and where it is dropped.
struct Watched {
    bytes: Arc<Vec<u8>>,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    alive: AtomicUsize,
    most: AtomicUsize,
    dropped_on: Mutex<Vec<ThreadId>>,
}

impl SharedBytes for Watched {
    fn as_slice(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.log.alive.fetch_sub(1, Ordering::SeqCst);
        self.log.dropped_on.lock().unwrap().push(thread::current().id());
    }
}

/// Yields watched payloads of one size, then ends or fails.
struct Watching {
    name: &'static str,
    bytes: Arc<Vec<u8>>,
    left: usize,
    fails: bool,
    log: Arc<Log>,
}

impl Watching {
    fn new(name: &'static str, len: usize, count: usize, fails: bool) -> Self {
        Self { name, bytes: Arc::new(vec![7; len]), left: count, fails, log: Arc::default() }
    }
}

impl Source for Watching {
    fn name(&self) -> std::result::Result<String, String> {
        Ok(self.name.to_owned())
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        if self.left == 0 {
            return if self.fails { Err(Error::InvalidValue("failed".to_owned())) } else { Ok(false) };
        }
        self.left -= 1;
        let alive = self.log.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.log.most.fetch_max(alive, Ordering::SeqCst);
        rows.push(
            PayloadRef::Shared(Box::new(Watched { bytes: Arc::clone(&self.bytes), log: Arc::clone(&self.log) })),
            &[],
        )?;
        Ok(true)
    }

    fn stop(&mut self) {}
}

fn assert_all_dropped_here(log: &Log, count: usize) {
    assert_eq!(log.alive.load(Ordering::SeqCst), 0);
    let threads = log.dropped_on.lock().unwrap();
    assert_eq!(threads.len(), count);
    assert!(threads.iter().all(|thread| *thread == thread::current().id()), "dropped on another thread");
}

#[test]
fn c03_no_more_jobs_are_alive_than_the_window_allows() {
    for (workers, prefetch_size) in [(1, 64), (4, 1), (4, 2), (3, 64)] {
        for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
            let base = temp_dir();
            let compression = Compression { algo, ratio: 1.0 };
            let config = WriterConfig { prefetch_size, compression, ..config() };
            // Each sample is a job of its own.
            let mut source = Watching::new("a", (1 << 20) + 1, 24, false);
            let outcomes = write(workers, &mut [&mut source], base.path(), &config);
            assert!(outcomes[0].result.is_ok(), "{outcomes:?}");
            let window = workers.min(usize::try_from(prefetch_size).unwrap());
            // One more is being dispatched, and one may have left the window and wait for its thread.
            let most = source.log.most.load(Ordering::SeqCst);
            assert!(most <= window + 1, "{most} alive with {workers} workers and prefetch_size {prefetch_size}");
            assert_all_dropped_here(&source.log, 24);
        }
    }
}

#[test]
fn c03_large_payloads_are_bounded_by_their_bytes() {
    let base = temp_dir();
    let mut source = Watching::new("a", 100 << 20, 4, false);
    let outcomes = write(8, &mut [&mut source], base.path(), &WriterConfig { prefetch_size: 64, ..config() });
    assert!(outcomes[0].result.is_ok(), "{outcomes:?}");
    // Two of them fit into 256 MiB, a third one waits.
    assert!(source.log.most.load(Ordering::SeqCst) <= 3);
    assert_all_dropped_here(&source.log, 4);
}

#[test]
fn c06_payloads_of_a_failed_source_go_on_the_pulling_thread_too() {
    for count in [1, 300, 900] {
        let base = temp_dir();
        let mut bad = Watching::new("bad", 5_000, count, true);
        let mut good = Watching::new("good", 5_000, count, false);
        let outcomes = write(3, &mut [&mut bad, &mut good], base.path(), &config());
        assert!(outcomes[0].result.is_err() && outcomes[1].result.is_ok(), "{outcomes:?}");
        assert_all_dropped_here(&bad.log, count);
        assert_all_dropped_here(&good.log, count);
    }
}
