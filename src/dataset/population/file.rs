//! The file of a population: a header of whole numbers, then the slices, each on its own cache line. Written and read by
//! processes of one job, of which all run the same release; another layout gets another magic.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};

use crate::cancel::{CancelToken, Waiter};
use crate::dataset::table::RowMap;
use crate::error::{Error, Result};
use crate::fs::NewFile;
use crate::mapped::MappedFile;
use crate::pool::{WorkerPool, run_all};
use crate::sampling::{AliasTable, DrawStream, SharedSlice};

const MAGIC: u64 = u64::from_le_bytes(*b"DRTPOPU1");
/// Whole numbers in the header, the last ones unused.
const HEADER_WORDS: usize = 16;
const LINE: usize = 64;
/// Bytes that are converted together.
const PIECE: usize = 1 << 20;

/// What a file holds beside its slices.
#[derive(Debug, Clone, Copy)]
struct Header {
    rows: u64,
    /// Samples of all caches together: a population fits only those it was made for.
    samples: u64,
    /// Bytes of each row's sample number; 0 if rows are all samples in order.
    sample_bytes: u64,
    /// 1 if rows have different weights.
    weighted: u64,
    /// Parts of the rows that have tables.
    parts: u64,
    /// Cells of all these tables.
    cells: u64,
}

/// Words for each part: its first row, the one behind its last, and the capacity of its cells, 0 if it has no table
/// because its weights are equal.
const PART_WORDS: usize = 3;

impl Header {
    fn words(self) -> [u64; HEADER_WORDS] {
        let Self { rows, samples, sample_bytes, weighted, parts, cells } = self;
        [MAGIC, rows, samples, sample_bytes, weighted, parts, cells, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        match *words {
            [MAGIC, rows, samples, sample_bytes @ (0 | 4 | 8), weighted @ (0 | 1), parts, cells, ..] => {
                Some(Self { rows, samples, sample_bytes, weighted, parts, cells })
            }
            _ => None,
        }
    }

    /// Where the slices of samples, weights, parts and cells lie, and the length of the file.
    fn places(self) -> Option<([Range<usize>; 4], usize)> {
        let lengths = [
            self.rows.checked_mul(self.sample_bytes)?,
            self.rows.checked_mul(8 * self.weighted)?,
            self.parts.checked_mul(8 * PART_WORDS as u64)?,
            self.cells.checked_mul(8)?,
        ];
        let mut end = HEADER_WORDS * 8;
        let mut places = [const { 0..0 }; 4];
        for (place, length) in places.iter_mut().zip(lengths).filter(|(_, length)| *length > 0) {
            let start = end.checked_next_multiple_of(LINE)?;
            end = start.checked_add(usize::try_from(length).ok()?)?;
            *place = start..end;
        }
        Some((places, end))
    }
}

/// The sample of every row, as it is written.
pub(super) enum Samples<'a> {
    /// All samples in order.
    InOrder,
    /// A number for each row.
    Listed(&'a (dyn Fn(usize) -> Option<u64> + Sync)),
}

/// Writes a population to the new file `path`. Without `weights` all are equal.
pub(super) fn write(
    path: &Path,
    rows: u64,
    all_samples: u64,
    samples: &Samples<'_>,
    weights: Option<&[f64]>,
    tables: &[(Range<u64>, Option<AliasTable>)],
    cancel: &CancelToken,
) -> Result<()> {
    let narrow = u32::try_from(all_samples).is_ok();
    let header = Header {
        rows,
        samples: all_samples,
        sample_bytes: match samples {
            Samples::InOrder => 0,
            Samples::Listed(_) => 4 + 4 * u64::from(!narrow),
        },
        weighted: u64::from(weights.is_some()),
        parts: tables.len() as u64,
        cells: tables.iter().filter_map(|(_, table)| Some(table.as_ref()?.rows())).sum(),
    };
    let mut out = Out { file: BufWriter::with_capacity(PIECE, NewFile::create(path)?), path, written: 0, cancel };
    out.slice(&header.words(), u64::to_le_bytes)?;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    if let Samples::Listed(sample) = samples {
        let sample = |row| sample(row).unwrap_or(u64::MAX);
        let narrow_sample = |row| u32::try_from(sample(row)).unwrap_or(u32::MAX).to_le_bytes();
        if narrow { out.all(0..rows, narrow_sample)? } else { out.all(0..rows, |row| sample(row).to_le_bytes())? }
    }
    out.slice(weights.unwrap_or_default(), f64::to_le_bytes)?;
    let capacity = |table: &Option<AliasTable>| table.as_ref().map_or(0, AliasTable::capacity);
    out.all(tables.iter().flat_map(|(part, table)| [part.start, part.end, capacity(table)]), u64::to_le_bytes)?;
    let cells = tables.iter().filter_map(|(_, table)| Some(table.as_ref()?.cells().as_slice()));
    out.all(cells.flatten().copied(), u64::to_le_bytes)?;
    out.file.flush().map_err(|error| Error::file("write", path, error))
}

struct Out<'a> {
    file: BufWriter<NewFile>,
    path: &'a Path,
    written: usize,
    cancel: &'a CancelToken,
}

impl Out<'_> {
    fn slice<T: Copy, const N: usize>(&mut self, slice: &[T], bytes: impl Fn(T) -> [u8; N]) -> Result<()> {
        self.all(slice.iter().copied(), bytes)
    }

    /// Writes numbers, if there are any, beginning on a line of their own.
    fn all<T, const N: usize>(&mut self, numbers: impl Iterator<Item = T>, bytes: impl Fn(T) -> [u8; N]) -> Result<()> {
        let mut numbers = numbers.peekable();
        let mut piece = Vec::new();
        if numbers.peek().is_some() {
            piece.resize(self.written.next_multiple_of(LINE) - self.written, 0);
        }
        loop {
            piece.extend(numbers.by_ref().take(PIECE / N).flat_map(&bytes));
            if piece.is_empty() {
                return Ok(());
            }
            self.cancel.check()?;
            self.file.write_all(&piece).map_err(|error| Error::file("write", self.path, error))?;
            self.written += piece.len();
            piece.clear();
        }
    }
}

/// A population in a mapped file.
#[derive(Debug)]
pub(in crate::dataset) struct MappedPopulation {
    header: Header,
    places: [Range<usize>; 4],
    /// [`PART_WORDS`] for each of them.
    parts: Vec<u64>,
    file: Buffer,
}

impl MappedPopulation {
    /// Maps `path`. Nothing but the header and the list of parts is read.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::InvalidValue`] for a file that holds no population of `samples` samples.
    pub(in crate::dataset) fn open(path: &Path, samples: u64) -> Result<Self> {
        let wrong = |found: &str| {
            Error::InvalidValue(format!(
                "{}: expected the population of a loader over {samples} samples, found {found}; construct the loader anew",
                path.display()
            ))
        };
        let map = MappedFile::open(path)?;
        let len = map.as_slice().len();
        let file = Buffer::from(bytes::Bytes::from_owner(map));
        let header = (len >= HEADER_WORDS * 8)
            .then(|| Header::from_words(&numbers::<u64>(&file, &(0..HEADER_WORDS * 8))))
            .flatten()
            .ok_or_else(|| wrong("another kind of file"))?;
        match header.places() {
            Some((places, end)) if end == len && header.rows > 0 => {
                if header.samples == samples {
                    let parts = numbers::<u64>(&file, &places[2]).to_vec();
                    Ok(Self { header, places, parts, file })
                } else {
                    Err(wrong(&format!("one over {}", header.samples)))
                }
            }
            _ => Err(wrong("one of another length than its header says")),
        }
    }

    /// Number of rows.
    pub(in crate::dataset) fn rows(&self) -> u64 {
        self.header.rows
    }

    /// The samples of some rows, which there must be.
    pub(in crate::dataset) fn samples(&self, rows: &Range<u64>) -> RowMap {
        let [samples, ..] = &self.places;
        let (first, len) = (index(rows.start), index(rows.end - rows.start));
        match self.header.sample_bytes {
            0 => RowMap::From(rows.start),
            4 => RowMap::Narrow(numbers(&self.file, samples).slice(first, len)),
            _ => RowMap::Wide(numbers(&self.file, samples).slice(first, len)),
        }
    }

    /// The stream of draws from some rows, which there must be.
    ///
    /// # Errors
    /// As [`DrawStream::weighted`].
    pub(in crate::dataset) fn draws(
        &self,
        rows: &Range<u64>,
        seed: u64,
        pool: &WorkerPool,
        waiter: &mut dyn Waiter,
    ) -> Result<DrawStream> {
        let [_, weights, _, cells] = &self.places;
        if self.header.weighted == 0 {
            return DrawStream::uniform(rows.end - rows.start, seed);
        }
        let mut first_cell = 0_usize;
        for part in self.parts.chunks_exact(PART_WORDS) {
            let [start, end, capacity] = *part else { continue };
            let part_cells = if capacity == 0 { 0 } else { index(end.saturating_sub(start)) };
            if *rows == (start..end) {
                if capacity == 0 {
                    return DrawStream::uniform(end - start, seed);
                }
                let cells = numbers::<u64>(&self.file, cells);
                if first_cell.checked_add(part_cells).is_none_or(|end| end > cells.len()) {
                    return Err(Error::InvalidValue("expected a table for each part, found fewer cells".to_owned()));
                }
                let table = AliasTable::from_parts(SharedSlice::new(cells.slice(first_cell, part_cells)), capacity)?;
                return Ok(DrawStream::from_table(Arc::new(table), seed));
            }
            first_cell = first_cell.saturating_add(part_cells);
        }
        let weights = numbers::<f64>(&self.file, weights).slice(index(rows.start), index(rows.end - rows.start));
        DrawStream::weighted(&weights, seed, &mut |blocks, work| {
            run_all(pool, waiter, blocks, &|block, cancel| {
                cancel.check()?;
                work(block)
            })
        })
    }
}

/// As a place in memory; too large a number is none.
pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Numbers of the file, which is little endian as everything here is.
fn numbers<T: ArrowNativeType>(file: &Buffer, place: &Range<usize>) -> ScalarBuffer<T> {
    ScalarBuffer::from(file.slice_with_length(place.start, place.len()))
}
