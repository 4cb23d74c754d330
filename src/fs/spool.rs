//! Many append-only byte streams in bounded memory: what does not fit goes to one shared temporary file.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::NewFile;
use crate::error::{Error, Result};

/// Bytes copied at once when streams are read back.
const COPY_BYTES: usize = 1 << 18;

/// Append-only streams. Each keeps its newest bytes in memory up to a limit and the others in a file without
/// a name, which all share.
#[derive(Debug)]
pub struct Spools {
    path: PathBuf,
    file: Option<NewFile>,
    file_end: u64,
    memory_limit: usize,
    streams: Vec<Stream>,
}

#[derive(Debug, Clone, Default)]
struct Stream {
    /// Stretches of the file that hold the stream's beginning, in stream order.
    spilled: Vec<Range<u64>>,
    spilled_bytes: u64,
    memory: Vec<u8>,
}

impl Spools {
    /// `streams` empty streams that keep at most about `memory_limit` bytes each in memory. The file is created at
    /// `path` when it is first needed, and unlinked at once.
    #[must_use]
    pub fn new(path: PathBuf, streams: usize, memory_limit: usize) -> Self {
        Self { path, file: None, file_end: 0, memory_limit, streams: vec![Stream::default(); streams] }
    }

    /// Number of streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Bytes in a stream.
    #[must_use]
    pub fn len(&self, stream: usize) -> u64 {
        self.streams.get(stream).map_or(0, |stream| stream.spilled_bytes + stream.memory.len() as u64)
    }

    /// Whether nothing was appended to any stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        (0..self.streams.len()).all(|stream| self.len(stream) == 0)
    }

    /// Adds bytes to the end of a stream.
    ///
    /// # Errors
    /// [`Error::File`] when the temporary file cannot be created or written.
    pub fn append(&mut self, stream: usize, bytes: &[u8]) -> Result<()> {
        let Some(entry) = self.streams.get_mut(stream) else {
            return Err(Error::InvalidValue(format!("stream {stream} of {} does not exist", self.streams.len())));
        };
        if entry.memory.len() + bytes.len() <= self.memory_limit {
            entry.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(NewFile::create_unlinked(&self.path)?),
        };
        let from_memory = entry.memory.len() as u64;
        file.write_at(self.file_end, &entry.memory)?;
        file.write_at(self.file_end + from_memory, bytes)?;
        let written = from_memory + bytes.len() as u64;
        let end = self.file_end + written;
        match entry.spilled.last_mut() {
            Some(last) if last.end == self.file_end => last.end = end,
            _ => entry.spilled.push(self.file_end..end),
        }
        entry.spilled_bytes += written;
        entry.memory.clear();
        self.file_end = end;
        Ok(())
    }

    /// Writes a stretch of a stream to `out`.
    ///
    /// # Errors
    /// [`Error::File`] when the temporary file cannot be read back, or with `out_path` when `out` fails;
    /// [`Error::InvalidValue`] when the stream has no such stretch.
    pub fn copy_to(&mut self, stream: usize, range: Range<u64>, out: &mut impl Write, out_path: &Path) -> Result<()> {
        let length = self.len(stream);
        let Some(entry) = self.streams.get(stream).filter(|_| range.start <= range.end && range.end <= length) else {
            return Err(Error::InvalidValue(format!("stream {stream} has no bytes {range:?}, it ends at {length}")));
        };
        let mut start = 0;
        for stretch in &entry.spilled {
            let end = start + (stretch.end - stretch.start);
            let wanted = range.start.max(start)..range.end.min(end);
            if wanted.start < wanted.end
                && let Some(file) = &self.file
            {
                let place = stretch.start + (wanted.start - start);
                copy_stretch(file, place, wanted.end - wanted.start, out, out_path)?;
            }
            start = end;
        }
        let in_memory = |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
        let rest = entry.memory.get(in_memory(range.start)..in_memory(range.end)).unwrap_or_default();
        out.write_all(rest).map_err(|error| Error::file("write", out_path, error))
    }
}

/// Copies within a bounded buffer.
fn copy_stretch(file: &NewFile, mut place: u64, length: u64, out: &mut impl Write, out_path: &Path) -> Result<()> {
    let end = place + length;
    let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(length).unwrap_or(COPY_BYTES))];
    while place < end {
        let count = usize::try_from(end - place).map_or(buffer.len(), |left| left.min(buffer.len()));
        let piece = buffer.get_mut(..count).unwrap_or_default();
        file.read_at(place, piece)?;
        out.write_all(piece).map_err(|error| Error::file("write", out_path, error))?;
        place += count as u64;
    }
    Ok(())
}
