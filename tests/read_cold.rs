//! Records that are on disk and not in memory: asked for ahead, waited for by the pool.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "files are evicted through the C library")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache_files::CacheFiles;
use dataset_rt::cancel::{PlainWaiter, Waiter};
use dataset_rt::dataset::{Dataset, PopulationOrder};
use dataset_rt::error::Result;
use dataset_rt::ids::SampleId;
use dataset_rt::mapped::MappedFile;
use dataset_rt::prefetch::{is_in_memory, waits_for_disk};
use dataset_rt::reader::{CacheSet, Drawn, Manner, ReaderConfig, announce};
use dataset_rt::runtime::Runtime;
use reading::{in_order, open, pass, validated};

const SAMPLES: u64 = 200;

fn cache(base: &Path) -> PathBuf {
    CacheFiles::new("cache", SAMPLES, |row| if row % 2 == 0 { 100_000 } else { 3 }).write(base)
}

/// Takes a file out of memory. Returns whether that worked: it does not where files live in memory only.
fn evict(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the call takes an open file and numbers.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    !is_in_memory(MappedFile::open(path).unwrap().as_slice())
}

/// Takes all files of a cache out of memory. Returns whether that worked.
fn evict_cache(path: &Path) -> bool {
    let files = ["manifest.json", "shards/000000.bin", "index.bin", "metadata.arrow", "checksums.bin"];
    // All of them, whether or not it works.
    files
        .map(|file| path.join(file))
        .iter()
        .filter(|file| file.exists())
        .map(|file| evict(file))
        .fold(true, |a, b| a & b)
}

/// A caller that lets go of its interpreter whenever it waits, and counts what it waits for the disk then.
#[derive(Default)]
struct Watching {
    waits: i64,
}

impl Waiter for Watching {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        let before = waits_for_disk();
        while !done(Duration::from_millis(50)) {}
        self.waits += waits_for_disk() - before;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How often an operation waits for the disk while it keeps its interpreter, and while it does not.
fn waits_of(operation: impl FnOnce(&mut Watching)) -> (i64, i64) {
    let (before, mut waiter) = (waits_for_disk(), Watching::default());
    operation(&mut waiter);
    (waits_for_disk() - before - waiter.waits, waiter.waits)
}

/// Takes the samples of a window as whoever has an interpreter does. Returns their number.
fn take_all(dataset: &Dataset, waiter: &mut Watching) -> usize {
    let mut stream = dataset.samples::<Vec<u8>>().unwrap();
    let set = dataset.caches().unwrap();
    let mut count = 0;
    while let Some(chunk) = stream.next_chunk(waiter).unwrap() {
        for taken in chunk {
            let sample = taken.read(&set);
            sample.payload.unwrap();
            assert!(set.caches().first().unwrap().metadata().row(sample.place.row).is_some());
            count += 1;
        }
    }
    count
}

/// What is tried, and its name.
type Operation<'a> = (&'a str, Box<dyn FnOnce(&mut Watching) + 'a>);

#[test]
fn b03_nothing_waits_for_the_disk_while_it_keeps_the_interpreter() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let paths = std::slice::from_ref(&path);
    let runtime = Runtime::new(2).unwrap();
    let dataset = open(paths, in_order());
    let (id, rows) = (dataset.caches().unwrap().caches().first().unwrap().id(), dataset.row_count().unwrap());
    let population = base.path().join("population");
    let order = PopulationOrder::WeightedTable;
    dataset
        .export_population(&population, order, std::slice::from_ref(&(0..rows)), &mut PlainWaiter::default())
        .unwrap();
    let folder = base.path().join("export");
    std::fs::create_dir(&folder).unwrap();
    let export = dataset.dump_config(&folder, None, &mut PlainWaiter::default()).unwrap();
    drop(dataset);
    let shuffled = ReaderConfig { shuffle: true, ..in_order() };

    let operations: [Operation<'_>; 6] = [
        ("open", Box::new(|waiter| drop(runtime.open(paths, validated(), waiter).unwrap()))),
        ("get_item", {
            Box::new(|waiter| {
                let dataset = runtime.open(paths, in_order(), waiter).unwrap();
                for sample in [150, 151, 3, 2] {
                    let (caches, sample) = dataset.get_item::<Vec<u8>>(id, SampleId(sample), waiter).unwrap();
                    dataset_rt::dataset::Sample::new(&caches, sample).unwrap();
                }
            })
        }),
        ("in order", {
            Box::new(|waiter| {
                assert_eq!(take_all(&runtime.open(paths, in_order(), waiter).unwrap(), waiter), 200);
            })
        }),
        ("shuffled", {
            Box::new(|waiter| {
                assert_eq!(take_all(&runtime.open(paths, shuffled.clone(), waiter).unwrap(), waiter), 200);
            })
        }),
        ("population", {
            Box::new(|waiter| {
                let dataset = runtime.open_population(paths, shuffled.clone(), &population, 0..rows, waiter).unwrap();
                assert_eq!(take_all(&dataset, waiter), 200);
            })
        }),
        (
            "export",
            Box::new(|waiter| assert_eq!(take_all(&Dataset::from_config(&export, waiter).unwrap(), waiter), 200)),
        ),
    ];
    for (name, operation) in operations {
        let mut evicted = evict_cache(&path) && evict(&population) && evict(&export);
        for file in std::fs::read_dir(&folder).unwrap() {
            evicted &= evict(&file.unwrap().path());
        }
        let (keeping, _) = waits_of(operation);
        assert!(!evicted || keeping == 0, "{name} waited for the disk {keeping} times");
    }
}

#[test]
fn d05_cold_reads_give_the_same_samples() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let expected = pass(&open(std::slice::from_ref(&path), in_order()));
    for prefetch_size in [1, 7, 64, 1 << 40] {
        evict_cache(&path);
        let dataset = open(std::slice::from_ref(&path), ReaderConfig { prefetch_size, ..in_order() });
        // Also when it is found out in the middle.
        let mut samples = dataset.samples::<Vec<u8>>().unwrap().into_iter();
        for (row, expected) in expected.iter().enumerate() {
            if row % 50 == 49 {
                dataset.caches().unwrap().temperature().waited();
            }
            assert_eq!(&samples.next().unwrap().unwrap(), expected);
        }
        assert!(samples.next().is_none());
        drop(dataset);
    }
}

#[test]
fn d05_announced_records_come_into_memory_without_being_read() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let shard = path.join("shards/000000.bin");
    if !evict(&shard) {
        return;
    }
    let dataset = open(&[path], in_order());
    let caches = dataset.caches().unwrap();
    let rows: Vec<u64> = (0..SAMPLES).collect();
    announce(&caches, Manner::Ask, || Drawn { rows: rows.clone(), ..Drawn::default() });
    let map = MappedFile::open(&shard).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_in_memory(map.as_slice()) {
        assert!(Instant::now() < deadline, "the kernel was not asked for all records");
        std::thread::yield_now();
    }
    assert!(caches.temperature().is_cold(), "something was missing");
    // In memory now: some looks later nobody looks any more.
    for _ in 0..4 {
        announce(&caches, Manner::Ask, || Drawn { rows: rows.clone(), ..Drawn::default() });
    }
    assert!(!caches.temperature().is_cold());
}

/// What a cache that is opened in order has, and nothing of it in memory; `None` where files cannot be taken out of memory.
fn opened_cold(path: &PathBuf) -> Option<Arc<CacheSet>> {
    evict_cache(path).then(|| open(std::slice::from_ref(path), in_order()).caches().unwrap())
}

#[test]
fn d05_records_in_order_are_brought_into_memory() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let Some(caches) = opened_cold(&path) else { return };
    let drawn = || Drawn { rows: (0..SAMPLES).collect(), others: Vec::new() };
    let announced = announce(&caches, Manner::Bring, drawn);
    assert!(announced.in_runs && announced.rows == drawn().rows);
    let shard = MappedFile::open(path.join("shards/000000.bin").as_path()).unwrap();
    assert!(is_in_memory(shard.as_slice()), "nobody waited");
    drop(shard);
    assert!(caches.temperature().is_cold(), "something was missing");
    // What others are missing says that reading on will be cold, although all of this is in memory.
    for _ in 0..8 {
        announce(&caches, Manner::Bring, drawn);
    }
    assert!(!caches.temperature().is_cold());
    drop(caches);
    let Some(caches) = opened_cold(&path) else { return };
    for _ in 0..8 {
        announce(&caches, Manner::Bring, || Drawn { rows: Vec::new(), others: vec![SAMPLES - 2] });
    }
    assert!(caches.temperature().is_cold());
}

#[test]
fn d05_what_is_not_drawn_stays_on_disk() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let Some(caches) = opened_cold(&path) else { return };
    let map = |file: &str| MappedFile::open(path.join(file).as_path()).unwrap();
    // Nobody reads the index only to see whether others are in memory.
    announce(&caches, Manner::Bring, || Drawn { rows: Vec::new(), others: vec![20, 190] });
    assert!(!is_in_memory(map("index.bin").as_slice()) && caches.temperature().is_cold());
    // In order, but far from one another: not one run in which the kernel should read ahead.
    let rows: Vec<u64> = (0..SAMPLES).step_by(20).collect();
    let announced = announce(&caches, Manner::Bring, || Drawn { rows, others: Vec::new() });
    assert!(!announced.in_runs);
    let shard = map("shards/000000.bin");
    let far_from_all = shard.len() / 20;
    assert!(!is_in_memory(shard.get(far_from_all..far_from_all + 4096).unwrap()));
}
