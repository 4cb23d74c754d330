//! Long payloads: read in pieces that anybody may read, and given up between two of them.

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/holding.rs"]
mod holding;
#[path = "support/reading.rs"]
mod reading;

use std::time::Duration;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::pool::WorkerPool;
use dataset_rt::reader::{PendingFetch, plan};
use holding::hold;
use reading::{in_order, open, pass};

const PIECE: usize = 4 << 20;

#[test]
fn b03_a_long_payload_is_read_in_pieces() {
    let base = temp_dir();
    for (algo, len, pieces) in [
        (CompressionAlgo::None, PIECE, 1),
        (CompressionAlgo::None, PIECE + 1, 2),
        (CompressionAlgo::None, 3 * PIECE + 17, 4),
        (CompressionAlgo::Lz4, 3 * PIECE, 1),
        // Nobody helps with what cannot be stopped.
        (CompressionAlgo::Lz4, 9 * PIECE, 0),
    ] {
        let mut files = CacheFiles::new(&format!("{}-{len}", algo.as_str()), 2, |row| if row == 0 { len } else { 5 });
        files.algo = algo;
        let dataset = open(&[files.write(base.path())], in_order());
        let caches = dataset.caches().unwrap();
        let pool = WorkerPool::new(1).unwrap();
        let (held, go_on) = hold(&pool);
        let pending = PendingFetch::<Vec<u8>>::start(&caches, &pool, plan(&caches, &[0]));
        for piece in 0..pieces {
            assert!(!pending.is_done() && !pending.wait(Duration::ZERO), "{piece} of {pieces}");
            assert!(pending.try_run());
        }
        assert!(!pending.try_run());
        assert_eq!(pending.is_done(), pieces > 0);
        // Whoever gives up waits for no piece that was not begun.
        let given_up = PendingFetch::<Vec<u8>>::start(&caches, &pool, plan(&caches, &[0]));
        assert!(pieces == 0 || given_up.try_run());
        drop(given_up);
        go_on.send(()).unwrap();
        held.take().unwrap();
        let samples = pending.take(&caches);
        assert_eq!(samples.len(), 1);
        assert!(samples.into_iter().next().unwrap().payload.unwrap() == files.samples.first().unwrap().0);
    }
}

#[test]
fn d07_long_payloads_come_whole_from_passes() {
    let base = temp_dir();
    for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
        let mut files = CacheFiles::new(algo.as_str(), 5, |row| {
            [2 * PIECE + 1, 0, 3, PIECE, 5 * PIECE - 1][usize::try_from(row).unwrap()]
        });
        files.algo = algo;
        let dataset = open(&[files.write(base.path())], in_order());
        for (sample, (payload, _)) in pass(&dataset).into_iter().zip(&files.samples) {
            assert!(sample.data == *payload, "sample {}", sample.sample_id.0);
        }
        // Given up in the middle.
        let mut samples = dataset.samples::<Vec<u8>>().unwrap().into_iter();
        assert!(samples.next().unwrap().is_ok());
    }
}
