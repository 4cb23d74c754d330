//! Damaged caches: an error for the samples concerned, everything for those who verify, never a crash.
#![expect(unsafe_code, reason = "an allocator that remembers the largest request")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::Sample;
use dataset_rt::error::Error;
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::format::index::{IndexRow, ROW_BYTES};
use dataset_rt::ids::CacheId;
use reading::{get_item, in_order, is_damage, open, try_open, validated};

/// The largest number of bytes that anybody asked for at once.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watched;

// SAFETY: all of it is done by the allocator of the system.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// More than one allocation has while the caches of these tests are read, damaged or not: the whole process of tests, with all
/// that runs beside, stays below it. Numbers in damaged files claim up to 2^64.
const ENOUGH: usize = 4 << 20;

fn small(name: &str, algo: CompressionAlgo) -> CacheFiles {
    let mut files = CacheFiles::new(name, 3, |row| usize::try_from(row).unwrap() * 20);
    files.algo = algo;
    files.max_shard_bytes = 250;
    files
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// All outcomes of one pass.
fn outcomes(path: &PathBuf) -> Vec<Result<Sample, Error>> {
    open(std::slice::from_ref(path), in_order()).samples::<Vec<u8>>().unwrap().into_iter().collect()
}

/// Row `row` fails with an error that names it; all others are fine.
fn only_fails(path: &PathBuf, row: usize, count: usize, says: &str) {
    let outcomes = outcomes(path);
    assert_eq!(outcomes.len(), count);
    for (at, outcome) in outcomes.into_iter().enumerate() {
        if at != row {
            assert_eq!(outcome.unwrap().sample_id.0, at as u64);
            continue;
        }
        let error = outcome.unwrap_err();
        let Error::Sample { cache_path, cache_id, sample_id, .. } = &error else { panic!("{error:?}") };
        assert_eq!((cache_path, sample_id.0), (path, row as u64));
        assert!(is_damage(&error), "{error:?}");
        let text = error.to_string();
        for part in [path.to_str().unwrap(), &cache_id.to_string(), &format!("sample {row}"), says] {
            assert!(text.contains(part), "{text:?} does not say {part:?}");
        }
    }
    let id = open(std::slice::from_ref(path), in_order()).caches().unwrap().caches()[0].id().0;
    let dataset = open(std::slice::from_ref(path), in_order());
    assert!(matches!(get_item(&dataset, id, row as u64), Err(Error::Sample { .. })));
}

#[test]
fn d08_an_index_row_that_points_outside_fails_its_own_sample_only() {
    let base = temp_dir();
    let rows = [
        IndexRow { shard: 9, offset: 0, length: 10 },
        IndexRow { shard: u64::MAX, offset: 0, length: 10 },
        IndexRow { shard: 0, offset: u64::MAX, length: 10 },
        IndexRow { shard: 0, offset: 0, length: u64::MAX },
        IndexRow { shard: 0, offset: 1 << 40, length: 10 },
        IndexRow { shard: 0, offset: 0, length: 1 << 40 },
    ];
    for (number, row) in rows.into_iter().enumerate() {
        // Large samples are read by the pool, small ones by the consumer.
        for payload in [10, 30_000] {
            let path = CacheFiles::new(&format!("cache-{number}-{payload}"), 20, |_| payload).write(base.path());
            edit(&path.join("index.bin"), |bytes| bytes[7 * ROW_BYTES..8 * ROW_BYTES].copy_from_slice(&row.to_bytes()));
            only_fails(&path, 7, 20, "index.bin");
        }
    }
}

#[test]
fn d08_a_damaged_record_fails_its_own_sample_only() {
    for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
        for payload in [300, 30_000] {
            let base = temp_dir();
            let mut files = CacheFiles::new("cache", 20, |_| payload);
            files.algo = algo;
            let path = files.write(base.path());
            let row =
                open(std::slice::from_ref(&path), in_order()).caches().unwrap().caches()[0].index().get(7).unwrap();
            let start = usize::try_from(row.offset).unwrap();
            let shard = path.join("shards/000000.bin");
            let json = {
                let bytes = fs::read(&shard).unwrap();
                usize::try_from(u64::from_le_bytes(bytes[start..start + 8].try_into().unwrap())).unwrap()
            };
            // The length of the envelope.
            edit(&shard, |bytes| bytes[start + 7] ^= 1);
            only_fails(&path, 7, 20, "000000.bin");
            edit(&shard, |bytes| bytes[start + 7] ^= 1);
            if algo == CompressionAlgo::Lz4 {
                // The length of the payload: too much for its block; then a little more than it has.
                for (byte, bit) in [(3, 0x80), (0, 1)] {
                    edit(&shard, |bytes| bytes[start + 8 + json + byte] ^= bit);
                    only_fails(&path, 7, 20, "000000.bin");
                    edit(&shard, |bytes| bytes[start + 8 + json + byte] ^= bit);
                }
            }
            assert!(outcomes(&path).iter().all(Result::is_ok));
        }
    }
}

#[test]
fn d08_damaged_text_fails_its_own_sample_only() {
    let base = temp_dir();
    let path = CacheFiles::new("cache", 20, |_| 3).write(base.path());
    let text = "cache 7 ü".as_bytes();
    edit(&path.join("metadata.arrow"), |bytes| {
        let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
        bytes[at + text.len() - 1] = b'x';
    });
    only_fails(&path, 7, 20, "metadata.arrow");
    // Tables are checked as a whole.
    let dataset = open(std::slice::from_ref(&path), in_order());
    let error = dataset.metadata(&mut PlainWaiter::default()).unwrap_err();
    assert!(is_damage(&error) && error.to_string().contains("metadata.arrow"), "{error:?}");
}

/// Every file of a cache, and its content.
fn files_of(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let shards = fs::read_dir(path.join("shards")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = shards.collect();
    files.sort();
    for name in ["manifest.json", "metadata.arrow", "index.bin", "checksums.bin"] {
        let file = path.join(name);
        if file.exists() {
            files.push(file);
        }
    }
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[test]
fn d03_no_flipped_byte_crashes_and_verification_names_the_file() {
    for (name, algo, checksums) in [
        ("sums", CompressionAlgo::None, true),
        ("lz4", CompressionAlgo::Lz4, true),
        ("plain", CompressionAlgo::None, false),
    ] {
        let base = temp_dir();
        let path = CacheFiles { checksums, ..small(name, algo) }.write(base.path());
        let paths = std::slice::from_ref(&path);
        open(paths, validated());
        for (file, bytes) in files_of(&path) {
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << (at % 8);
                fs::write(&file, damaged).unwrap();
                match try_open(paths, in_order()) {
                    Ok(dataset) => {
                        for outcome in dataset.samples::<Vec<u8>>().unwrap().into_iter().take(100) {
                            assert!(
                                outcome.as_ref().is_ok_and(|_| true) || outcome.is_err_and(|error| is_damage(&error))
                            );
                        }
                        let _ = dataset.metadata(&mut PlainWaiter::default());
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
                let named = file.to_str().unwrap();
                let Err(error) = try_open(paths, validated()) else {
                    // Without its key the checksum of the manifest is none; version 2 has none.
                    let allowed = [r#""manifest_checksum""#, r#""format_version": 3"#].map(|text| {
                        let start = bytes.windows(text.len()).position(|window| window == text.as_bytes());
                        start.is_some_and(|start| (start..start + text.len()).contains(&at))
                    });
                    assert!(named.ends_with("json") && allowed.contains(&true), "byte {at} of {named} went unnoticed");
                    continue;
                };
                // A changed manifest shows in whatever it no longer fits.
                assert!(
                    error.to_string().contains(if named.ends_with("json") { path.to_str().unwrap() } else { named }),
                    "byte {at} of {named}: {error}"
                );
            }
            fs::write(&file, bytes).unwrap();
        }
        open(paths, validated());
    }
    assert!(LARGEST.load(Ordering::Relaxed) < ENOUGH, "{} bytes at once", LARGEST.load(Ordering::Relaxed));
}

#[test]
fn d03_no_truncation_crashes_and_verification_names_the_file() {
    for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
        let base = temp_dir();
        let path = small("cache", algo).write(base.path());
        let paths = std::slice::from_ref(&path);
        for (file, bytes) in files_of(&path) {
            for len in 0..bytes.len() {
                fs::write(&file, &bytes[..len]).unwrap();
                if let Ok(dataset) = try_open(paths, in_order()) {
                    dataset.samples::<Vec<u8>>().unwrap().into_iter().for_each(drop);
                    let _ = dataset.metadata(&mut PlainWaiter::default());
                }
                let error = try_open(paths, validated()).unwrap_err();
                assert!(error.to_string().contains(file.to_str().unwrap()), "{len} bytes: {error}");
            }
            fs::write(&file, bytes).unwrap();
        }
    }
    assert!(LARGEST.load(Ordering::Relaxed) < ENOUGH, "{} bytes at once", LARGEST.load(Ordering::Relaxed));
}

#[test]
fn d03_no_number_of_a_damaged_file_makes_anybody_allocate_what_the_file_cannot_hold() {
    let base = temp_dir();
    let path = small("claims", CompressionAlgo::Lz4).write(base.path());
    let paths = std::slice::from_ref(&path);
    let before = LARGEST.load(Ordering::Relaxed);
    for (file, bytes) in files_of(&path) {
        // Whatever is a number there becomes a large one.
        for width in [4, 8] {
            for at in 0..bytes.len().saturating_sub(width) {
                let mut damaged = bytes.clone();
                damaged[at..at + width].fill(0xff);
                damaged[at + width - 1] = 0x7f;
                fs::write(&file, damaged).unwrap();
                if let Ok(dataset) = try_open(paths, in_order()) {
                    dataset.samples::<Vec<u8>>().unwrap().into_iter().take(100).for_each(drop);
                    let _ = dataset.metadata(&mut PlainWaiter::default());
                }
            }
        }
        fs::write(&file, bytes).unwrap();
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < ENOUGH, "{largest} bytes at once, {before} before");
}

#[test]
fn d03_a_damaged_payload_is_found_and_its_sample_named() {
    let base = temp_dir();
    let path = CacheFiles::new("cache", 500, |row| usize::try_from(row % 9).unwrap() * 700).write(base.path());
    let shard = path.join("shards/000000.bin");
    let row = open(std::slice::from_ref(&path), in_order()).caches().unwrap().caches()[0].index().get(321).unwrap();
    edit(&shard, |bytes| bytes[usize::try_from(row.offset + row.length - 1).unwrap()] ^= 1);
    let error = try_open(std::slice::from_ref(&path), validated()).unwrap_err();
    let Error::Sample { cache_id, sample_id, .. } = &error else { panic!("{error:?}") };
    assert_eq!((cache_id.0, sample_id.0), (CacheId::of_source_name("cache").0, 321));
    assert!(error.to_string().contains(shard.to_str().unwrap()), "{error}");
}

#[test]
fn d03_checksums_of_shards_count_where_records_do_not_cover_them() {
    let base = temp_dir();
    let path = CacheFiles::new("cache", 20, |_| 100).write(base.path());
    // Leave the first sample out: its bytes are covered by no record any more, only by the checksum of the shard.
    edit(&path.join("index.bin"), |bytes| bytes.copy_within(ROW_BYTES..2 * ROW_BYTES, 0));
    edit(&path.join("checksums.bin"), |bytes| bytes.copy_within(8..16, 0));
    let sha256 = |name: &str| dataset_rt::checksum::sha256_hex(&fs::read(path.join(name)).unwrap());
    let manifest = path.join("manifest.json");
    let mut described =
        dataset_rt::format::manifest::Manifest::parse(&manifest, &fs::read(&manifest).unwrap()).unwrap();
    described.index_sha256 = sha256("index.bin");
    described.record_checksums.as_mut().unwrap().sha256 = sha256("checksums.bin");
    fs::write(&manifest, described.to_bytes().unwrap()).unwrap();
    open(std::slice::from_ref(&path), validated());
    edit(&path.join("shards/000000.bin"), |bytes| bytes[12] ^= 1);
    let error = try_open(std::slice::from_ref(&path), validated()).unwrap_err();
    assert!(error.to_string().contains("000000.bin") && error.to_string().contains("sha256"), "{error}");
}

#[test]
fn d03_verification_can_be_interrupted() {
    let base = temp_dir();
    let path = CacheFiles::new("cache", 200, |_| 1000).write(base.path());
    let mut waiter = PlainWaiter::default();
    waiter.token.cancel();
    let runtime = dataset_rt::runtime::Runtime::new(1).unwrap();
    // Keeps the only thread busy until the waiter has looked.
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.pool().unwrap().submit(move || held.recv().unwrap_or_default()).unwrap();
    let outcome = runtime.open(&[path], validated(), &mut waiter).map(drop);
    drop(release);
    assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
}
