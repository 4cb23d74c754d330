//! Exports of a dataset: everything but its caches in two files, from which the same dataset can be opened again.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::metadata::Metadata;
use super::{Dataset, update};
use crate::cancel::{Waiter, while_waiting};
use crate::error::{Error, Result};
use crate::format::dataset_config::{DATASET_CONFIG_FILE, DatasetConfig};
use crate::format::table_read::TableFile;
use crate::format::table_write::write_table;
use crate::fs::{METADATA_FILE, NewFile, TemporaryFile, remove_file};
use crate::mapped::MappedFile;
use crate::pool::{WorkerPool, map_blocks, run_all};
use crate::reader::{ReaderConfig, open_caches};

/// Bytes that are written together.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes that are made durable together.
const SYNC_BYTES: usize = 16 << 20;

impl Dataset {
    /// Writes the active table and what else is needed to open this dataset again into the existing directory
    /// `directory`, and returns the path of the configuration, for [`from_config`](Self::from_config). It says
    /// `num_workers`, or as many threads as this dataset has. Cursors are not exported.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] when there is an export, [`Error::File`] when there is no such directory or nothing can
    /// be written, [`Error::InvalidValue`] for an empty path or one that JSON cannot hold, [`Error::Interrupted`] from
    /// `waiter`. Nothing is left behind then. Else as [`epoch_len`](Self::epoch_len).
    pub fn dump_config(&self, directory: &Path, num_workers: Option<u64>, waiter: &mut dyn Waiter) -> Result<PathBuf> {
        let (caches, pool, table, epoch_len) = self.with_state(|state| {
            let table = Arc::clone(&state.table);
            Ok((Arc::clone(&state.caches), Arc::clone(&state.pool), table, state.epoch_len))
        })?;
        if directory.as_os_str().is_empty() {
            return Err(Error::InvalidValue("path must be an existing directory, found an empty text".to_owned()));
        }
        // The dot makes a file in the place of the directory an error of its own.
        let directory =
            fs::canonicalize(directory.join(".")).map_err(|error| Error::file("export to", directory, error))?;
        let config_path = directory.join(DATASET_CONFIG_FILE);
        let metadata_path = directory.join(METADATA_FILE);
        refuse_existing(&config_path, &metadata_path)?;
        let config = DatasetConfig {
            cache_paths: self.paths.clone(),
            seed: self.config.seed,
            prefetch_size: self.config.prefetch_size,
            shuffle: self.config.shuffle,
            validate_cache: self.config.validate_cache,
            num_workers: num_workers.unwrap_or(pool.threads() as u64),
            epoch_len,
            row_count: table.len(),
            metadata_file: METADATA_FILE.to_owned(),
        };
        let config = config.to_bytes()?;
        let metadata = table.metadata(&caches, &pool, waiter)?;
        let published = Published::default();
        run_all(&pool, waiter, 1, &|_, cancel| {
            let mut file = TemporaryFile::create(&metadata_path)?;
            let path = file.file().path().to_path_buf();
            let mut out = BufWriter::with_capacity(WRITE_BYTES, Paced { file: file.file(), unsynced: 0 });
            write_table(&mut out, &path, &metadata.schema, &metadata.batches, cancel)?;
            out.flush().map_err(|error| Error::file("write", &path, error))?;
            drop(out);
            cancel.check()?;
            published.publish(file, &metadata_path)?;
            // Last: where there is a configuration, the table is whole.
            let mut file = TemporaryFile::create(&config_path)?;
            file.fill(&config)?;
            published.publish(file, &config_path)
        })
        // Also when everything was done before the wish to stop came through.
        .inspect_err(|_| published.remove())?;
        Ok(config_path)
    }

    /// Opens the dataset that [`dump_config`](Self::dump_config) exported to the configuration `path`, with threads of
    /// its own and fresh cursors. Its table stays in the exported file, which must not change as long as the dataset lives.
    ///
    /// # Errors
    /// [`Error::File`] when the export or a cache is not there: the message names every such cache;
    /// [`Error::InvalidCache`] when the export is damaged or does not fit its caches; else as [`open`](Self::open).
    pub fn from_config(path: &Path, waiter: &mut dyn Waiter) -> Result<Self> {
        let Export { path, config, table } = while_waiting(waiter, || Export::open(path))?;
        let metadata_path = table_path(&path, &config);
        let reader = ReaderConfig {
            seed: config.seed,
            prefetch_size: config.prefetch_size,
            shuffle: config.shuffle,
            validate_cache: config.validate_cache,
        };
        let unfit = |error| unfit(&path, error);
        reader.check().map_err(unfit)?;
        let pool = WorkerPool::new(usize::try_from(config.num_workers).unwrap_or(usize::MAX)).map_err(unfit)?;
        let caches = open_caches(&config.cache_paths, reader.validate_cache, &pool, waiter)?;
        let batches = map_blocks(&pool, waiter, table.batch_count(), &|number, cancel| {
            cancel.check()?;
            table.batch(number)
        })?;
        let batches: Vec<_> = batches.into_iter().flatten().collect();
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows != config.row_count {
            return Err(Error::invalid_cache(
                &metadata_path,
                format!(
                    "expected {} rows, as {} says, found {rows}; the two files are of different exports or damaged, \
                     export again",
                    config.row_count,
                    path.display()
                ),
            ));
        }
        let metadata = Metadata { schema: Arc::clone(table.schema()), batches };
        let origin = update::Origin::Export(&metadata_path);
        let table = update::build(metadata, &origin, None, &caches, &reader, &pool, waiter)?;
        let dataset = Self::over(caches, table, reader, pool)?;
        dataset.set_epoch_len(config.epoch_len)?;
        Ok(dataset)
    }
}

/// What was exported, with the table not read yet.
struct Export {
    /// Absolute path of the configuration.
    path: PathBuf,
    config: DatasetConfig,
    table: TableFile,
}

impl Export {
    fn open(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path).map_err(|error| Error::file("open the exported dataset", path, error))?;
        if path.is_dir() {
            let text = format!("a directory; pass the file {DATASET_CONFIG_FILE} in it");
            let source = io::Error::new(io::ErrorKind::IsADirectory, text);
            return Err(Error::file("open the exported dataset", path, source));
        }
        let config = DatasetConfig::parse(&path, &MappedFile::open(&path)?)?;
        let metadata_path = table_path(&path, &config);
        if matches!(fs::symlink_metadata(&metadata_path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return Err(not_found(
                "open the exported dataset",
                &metadata_path,
                format!("its table is missing beside {}; move both files together", path.display()),
            ));
        }
        check_caches(&path, &config.cache_paths)?;
        let table = TableFile::open(&metadata_path)?;
        Ok(Self { path, config, table })
    }
}

fn table_path(config_path: &Path, config: &DatasetConfig) -> PathBuf {
    config_path.with_file_name(&config.metadata_file)
}

/// A file that is synced while it grows: one sync of everything at the end could not be stopped.
struct Paced<'a> {
    file: &'a mut NewFile,
    unsynced: usize,
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsynced >= SYNC_BYTES {
            self.file.sync().map_err(|error| match error {
                Error::File { source, .. } => source,
                other => io::Error::other(other),
            })?;
            self.unsynced = 0;
        }
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Files that an export has put in place, the last one in front.
#[derive(Default)]
struct Published(Mutex<Vec<PathBuf>>);

impl Published {
    fn publish(&self, file: TemporaryFile, path: &Path) -> Result<()> {
        file.publish()?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(0, path.to_path_buf());
        Ok(())
    }

    fn remove(&self) {
        for path in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // The error that made this necessary is the one that matters.
            let _ = remove_file(path);
        }
    }
}

fn refuse_existing(config: &Path, metadata: &Path) -> Result<()> {
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    let (path, detail) = if exists(config) {
        (config, "already exists: there is an export; choose another directory")
    } else if exists(metadata) {
        (metadata, "already exists, but no dataset.json: no finished export; remove it or choose another directory")
    } else {
        return Ok(());
    };
    Err(Error::AlreadyExists { path: path.to_path_buf(), detail: detail.to_owned() })
}

/// Caches that were moved are told all at once.
fn check_caches(config: &Path, paths: &[PathBuf]) -> Result<()> {
    // What is there but cannot be looked at, opening tells better.
    let is_missing = |path: &PathBuf| match fs::metadata(path) {
        Ok(_) => false,
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    };
    let missing: Vec<&PathBuf> = paths.iter().filter(|path| is_missing(path)).collect();
    let Some(first) = missing.first() else {
        let file = paths.iter().find(|path| fs::metadata(path).is_ok_and(|found| !found.is_dir()));
        return file.map_or(Ok(()), |file| {
            let text = format!("not a directory; correct cache_paths in {}", config.display());
            Err(Error::file("open the cache", file, io::Error::new(io::ErrorKind::NotADirectory, text)))
        });
    };
    let listed: Vec<String> = missing.iter().map(|path| format!("{:?}", path.display())).collect();
    Err(not_found(
        "open the exported dataset",
        first,
        format!(
            "{} of {} cache directories are missing: {}; move them back, or correct cache_paths in {}",
            missing.len(),
            paths.len(),
            listed.join(", "),
            config.display()
        ),
    ))
}

fn not_found(action: &'static str, path: &Path, text: String) -> Error {
    Error::file(action, path, io::Error::new(io::ErrorKind::NotFound, text))
}

/// A value in the configuration that this machine or release refuses.
fn unfit(path: &Path, error: Error) -> Error {
    match error {
        Error::InvalidValue(text) => {
            Error::invalid_cache(path, format!("{text}; edit this number in {DATASET_CONFIG_FILE}"))
        }
        other => other,
    }
}
