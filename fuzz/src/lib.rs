//! What the fuzz targets share: small caches to damage, and what must hold whatever was done to them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;

#[path = "../../tests/support/cache_files.rs"]
mod cache_files;

use cache_files::{CacheFiles, temp_dir};

/// Most bytes of one allocation: 255 times what a record can have in files as small as these, which is what LZ4 can ask for.
const LARGEST_ALLOCATION: usize = 8 << 20;

/// Ends the process when damaged bytes ask for more memory than they can stand for.
struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST_ALLOCATION {
            eprintln!("one allocation of {} bytes", layout.size());
            std::process::abort();
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) };
    }
}

/// The cache that targets damage: several shards and batches of every kind.
pub fn small_cache(algo: CompressionAlgo) -> CacheFiles {
    let mut files = CacheFiles::new("cache", 12, |row| row as usize * 17);
    files.algo = algo;
    files.max_shard_bytes = 600;
    files
}

/// Files that a target may damage, by number.
pub const FILES: [&str; 6] =
    ["manifest.json", "metadata.arrow", "index.bin", "checksums.bin", "shards/000000.bin", "shards/000001.bin"];

/// A cache on disk that is put right again before every run.
pub struct Cache {
    _base: tempfile::TempDir,
    path: PathBuf,
    runtime: Runtime,
    sound: Vec<Vec<u8>>,
}

impl Cache {
    pub fn new(algo: CompressionAlgo) -> Self {
        let base = temp_dir();
        let path = small_cache(algo).write(base.path());
        let sound = FILES.iter().map(|name| fs::read(path.join(name)).unwrap()).collect();
        Self { _base: base, path, runtime: Runtime::new(2).unwrap(), sound }
    }

    /// The sound bytes of a file.
    pub fn sound(&self, file: usize) -> &[u8] {
        &self.sound[file]
    }

    /// Runs everything on a cache with these files in place of the sound ones.
    pub fn check(&self, damaged: &[(usize, &[u8])]) {
        for (file, bytes) in damaged {
            fs::write(self.path.join(FILES[*file]), bytes).unwrap();
        }
        self.use_all();
        let changed = damaged.iter().any(|(file, bytes)| self.sound[*file] != *bytes);
        let validated = self.open(ReaderConfig { validate_cache: true, ..ReaderConfig::new(1) });
        // What a manifest says is only known to be wrong where it carries its own checksum.
        let sealed = damaged.iter().all(|(file, _)| *file != 0);
        assert!(!(changed && sealed) || validated.is_err(), "damage went unnoticed");
        drop(validated);
        for (file, _) in damaged {
            fs::write(self.path.join(FILES[*file]), &self.sound[*file]).unwrap();
        }
    }

    fn open(&self, config: ReaderConfig) -> dataset_rt::Result<dataset_rt::Dataset> {
        self.runtime.open(std::slice::from_ref(&self.path), config, &mut PlainWaiter::default())
    }

    /// Reads without verification: any errors, but nothing else.
    fn use_all(&self) {
        for shuffle in [false, true] {
            let dataset = match self.open(ReaderConfig { shuffle, ..ReaderConfig::new(1) }) {
                Ok(dataset) => dataset,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return;
                }
            };
            for sample in dataset.samples::<Vec<u8>>().unwrap().into_iter().take(200) {
                if let Err(error) = sample {
                    assert!(error.to_string().contains("cache"), "{error}");
                }
            }
            let waiter = &mut PlainWaiter::default();
            if let Ok(table) = dataset.metadata(waiter) {
                let _ = dataset.update_metadata(table.as_ref().clone(), waiter);
            }
        }
    }
}

/// The cache of this process, stored verbatim or compressed.
pub fn cache(compressed: bool) -> &'static Cache {
    static CACHES: LazyLock<[Cache; 2]> =
        LazyLock::new(|| [CompressionAlgo::None, CompressionAlgo::Lz4].map(Cache::new));
    &CACHES[usize::from(compressed)]
}

/// Writes what fuzzing a target starts with, and ends the process.
pub fn write_seeds_and_end(corpus: &Path) {
    for (number, compressed) in [false, true].into_iter().enumerate() {
        let cache = cache(compressed);
        for (target, file) in [("manifest", 0), ("metadata", 1), ("index", 2), ("record", 4)] {
            let mut seed = if target == "record" { vec![u8::from(compressed)] } else { Vec::new() };
            seed.extend_from_slice(cache.sound(file));
            write_seed(corpus, target, number, &seed);
        }
        for file in 0..FILES.len() {
            let seed = [u8::from(compressed), file as u8, 3, 0, 9, 0xff];
            write_seed(corpus, "open", number * FILES.len() + file, &seed);
        }
    }
    std::process::exit(0);
}

fn write_seed(corpus: &Path, target: &str, number: usize, seed: &[u8]) {
    let folder = corpus.join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
}
