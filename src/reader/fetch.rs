//! Copies or decompresses payloads into buffers of the caller on the calling thread.
#![expect(unsafe_code, reason = "fills memory that is not initialised")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;
use std::time::Instant;
use std::vec;

use crate::cancel::{Waiter, while_waiting};
use crate::error::{Error, Result};
use crate::format::Damage;
use crate::format::compression::CompressionAlgo;
use crate::prefetch::waits_for_disk;
use crate::reader::ahead::{look_at, look_at_metadata};
use crate::reader::buffer::PayloadBuffer;
use crate::reader::cache_set::{CacheSet, Place};
use crate::reader::plan::{FoundPayload, PlannedSample, Stretch, plan_one};
use crate::reader::record::damaged_record;

/// A sample that was read, or why it was not.
#[derive(Debug)]
pub struct Fetched<B> {
    /// Which sample.
    pub place: Place,
    /// Its payload. An error names the sample.
    pub payload: std::result::Result<B, Box<Error>>,
}

/// Verbatim payloads up to this size are copied at once, without letting go of anything.
const VERBATIM_AT_ONCE: usize = 256 << 10;

/// As `VERBATIM_AT_ONCE`, for compressed payloads, which cost more a byte.
const COMPRESSED_AT_ONCE: usize = 64 << 10;

/// Bytes that are copied between two chances to stop: a few milliseconds, also into fresh memory.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// Reads one sample on this thread. What lasts is done while `waiter` waits, and so is what may have to wait for the disk;
/// a compressed payload in one piece.
///
/// # Errors
/// [`Error::Sample`] when it cannot be read, [`Error::Interrupted`] from `waiter`.
pub fn fetch_one<B: PayloadBuffer>(set: &CacheSet, place: Place, waiter: &mut dyn Waiter) -> Result<B> {
    let temperature = set.temperature();
    if temperature.is_cold() {
        while_waiting(waiter, || {
            look_at(set, place);
            Ok(())
        })?;
    }
    let waits = is_watched(place).then(|| {
        let before = waits_for_disk();
        look_at_metadata(set, place);
        before
    });
    let PlannedSample { place, found } = plan_one(set, place);
    let fetched = found.and_then(|found| {
        let at_once = match found.stored.algo {
            CompressionAlgo::None => VERBATIM_AT_ONCE,
            CompressionAlgo::Lz4 => COMPRESSED_AT_ONCE,
        };
        if found.len <= at_once { fetch_now(set, place, &found) } else { fetch_waiting(set, place, &found, waiter) }
    });
    if waits.is_some_and(|before| before != waits_for_disk()) {
        temperature.waited();
    }
    fetched.map_err(|error| match *error {
        Error::Interrupted => Error::Interrupted,
        error => set.sample_error(place, error),
    })
}

/// Whether to find out if reading this sample alone has to wait for the disk: that costs two system calls, and so is done for
/// one row of 32, spread so that no usual pattern of reads passes over them.
#[inline]
fn is_watched(place: Place) -> bool {
    place.row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59 == 0
}

#[cold]
fn fetch_waiting<B: PayloadBuffer>(
    set: &CacheSet,
    place: Place,
    found: &FoundPayload,
    waiter: &mut dyn Waiter,
) -> std::result::Result<B, Box<Error>> {
    let FoundPayload { stored, len } = found;
    let mut buffer = B::allocate(*len).ok_or_else(|| Box::new(no_memory(*len)))?;
    // SAFETY: `allocate` gave that many bytes, and nobody else has the buffer, which stays until the borrow ends.
    let target = unsafe { slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<MaybeUninit<u8>>(), *len) };
    let filled = set.with_shard(place.cache, stored.shard, |shard| {
        let bytes = shard.get(stored.start..stored.end).unwrap_or_default();
        let mut filled = Ok(());
        if is_verbatim(found, bytes) {
            let mut pieces = bytes.chunks(PIECE_BYTES).zip(target.chunks_mut(PIECE_BYTES));
            waiter.wait(&mut |timeout| {
                let started = Instant::now();
                for (from, to) in pieces.by_ref() {
                    // SAFETY: both have the same length, and a read-only map does not overlap memory of the caller.
                    unsafe { to.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
                    if started.elapsed() >= timeout {
                        return false;
                    }
                }
                true
            })?;
        } else {
            waiter.wait(&mut |_| {
                // SAFETY: the target has `len` bytes, which are borrowed for this alone.
                filled = unsafe { fill_from(bytes, found, target.as_mut_ptr().cast()) };
                true
            })?;
        }
        Ok::<_, Error>(filled)
    })?;
    filled?.map_err(|damage| Box::new(damaged_record(set, place, stored, &damage)))?;
    // SAFETY: as above; all of the bytes were written.
    unsafe { buffer.assume_filled(*len) };
    Ok(buffer)
}

/// Samples of one chunk, in order.
#[derive(Debug)]
pub enum Chunk<B> {
    /// Read before.
    Fetched(vec::IntoIter<Fetched<B>>),
    /// To be found and read when they are taken.
    Stretch(Stretch),
}

/// A sample that was taken out of a chunk.
#[derive(Debug)]
pub enum Taken<B> {
    /// Read before.
    Fetched(Fetched<B>),
    /// Still to be found and read.
    Place(Place),
}

impl<B> Default for Chunk<B> {
    fn default() -> Self {
        Self::Fetched(Vec::new().into_iter())
    }
}

impl<B> Iterator for Chunk<B> {
    type Item = Taken<B>;

    #[inline]
    fn next(&mut self) -> Option<Taken<B>> {
        match self {
            Self::Fetched(samples) => samples.next().map(Taken::Fetched),
            Self::Stretch(stretch) => stretch.next().map(Taken::Place),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Fetched(samples) => samples.size_hint(),
            Self::Stretch(stretch) => stretch.size_hint(),
        }
    }
}

impl<B> ExactSizeIterator for Chunk<B> {}

impl<B: PayloadBuffer> Taken<B> {
    /// The sample, read on this thread if it was not before.
    #[inline]
    pub fn read(self, set: &CacheSet) -> Fetched<B> {
        match self {
            Self::Fetched(sample) => sample,
            Self::Place(place) => match fetch_verbatim(set, place) {
                Some(payload) => Fetched { place, payload: Ok(payload) },
                None => fetch_planned(set, plan_one(set, place)),
            },
        }
    }
}

/// Reads planned samples on this thread.
pub fn fetch_all<B: PayloadBuffer>(
    set: &CacheSet,
    samples: impl IntoIterator<Item = PlannedSample>,
) -> Vec<Fetched<B>> {
    samples.into_iter().map(|sample| fetch_planned(set, sample)).collect()
}

/// Reads a sample that is stored as it is in a shard that is mapped; `None` if it is not, or if anything is wrong with it.
#[inline]
fn fetch_verbatim<B: PayloadBuffer>(set: &CacheSet, place: Place) -> Option<B> {
    set.verbatim_payload(place).and_then(copied)
}

/// A copy of a payload in a buffer of its own; `None` when there is no memory for it.
#[inline]
fn copied<B: PayloadBuffer>(payload: &[u8]) -> Option<B> {
    let mut buffer = B::allocate(payload.len())?;
    // SAFETY: `allocate` gave that many bytes to us alone, and a read-only map does not overlap them.
    unsafe {
        buffer.as_mut_ptr().copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        buffer.assume_filled(payload.len());
    }
    Some(buffer)
}

#[inline]
fn fetch_planned<B: PayloadBuffer>(set: &CacheSet, PlannedSample { place, found }: PlannedSample) -> Fetched<B> {
    let payload = found.and_then(|found| fetch_now(set, place, &found));
    Fetched { place, payload: payload.map_err(|error| Box::new(set.sample_error(place, *error))) }
}

#[inline]
fn fetch_now<B: PayloadBuffer>(
    set: &CacheSet,
    place: Place,
    found: &FoundPayload,
) -> std::result::Result<B, Box<Error>> {
    if let Some(bytes) = set.mapped(&found.stored)
        && is_verbatim(found, bytes)
        && let Some(buffer) = copied(bytes)
    {
        return Ok(buffer);
    }
    let mut buffer = B::allocate(found.len).ok_or_else(|| Box::new(no_memory(found.len)))?;
    // SAFETY: `allocate` gave that many bytes, and nobody else has the buffer.
    unsafe { fill(set, place, found, buffer.as_mut_ptr()) }?;
    // SAFETY: `fill` succeeded, so it wrote all of them.
    unsafe { buffer.assume_filled(found.len) };
    Ok(buffer)
}

/// Writes a payload to `target`: all `found.len` bytes when it succeeds.
///
/// # Safety
/// `target` is the start of `found.len` bytes that are writable and that nobody else touches meanwhile.
#[inline]
pub(super) unsafe fn fill(
    set: &CacheSet,
    place: Place,
    found: &FoundPayload,
    target: *mut u8,
) -> std::result::Result<(), Box<Error>> {
    let stored = &found.stored;
    let filled = set.with_shard(place.cache, stored.shard, |shard| {
        let bytes = shard.get(stored.start..stored.end).unwrap_or_default();
        // SAFETY: as the caller promises.
        unsafe { fill_from(bytes, found, target) }
    })?;
    filled.map_err(|damage| Box::new(damaged_record(set, place, stored, &damage)))
}

/// Writes a part of a payload that is stored as it is to `target`.
///
/// # Safety
/// `target` is the start of as many bytes as `part` has that are writable and that nobody else touches meanwhile.
pub(super) unsafe fn fill_part(
    set: &CacheSet,
    place: Place,
    found: &FoundPayload,
    part: &Range<usize>,
    target: *mut u8,
) -> std::result::Result<(), Box<Error>> {
    let stored = &found.stored;
    let filled = set.with_shard(place.cache, stored.shard, |shard| {
        let bytes = shard.get(stored.start..stored.end).unwrap_or_default();
        match bytes.get(part.clone()) {
            Some(piece) if is_verbatim(found, bytes) => {
                // SAFETY: `piece` has as many bytes as `target`, and a read-only map does not overlap memory of the caller.
                unsafe { target.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
                Ok(())
            }
            _ => Err(Damage(format!("expected a payload of {} bytes, found {}", found.len, bytes.len()))),
        }
    })?;
    filled.map_err(|damage| Box::new(damaged_record(set, place, stored, &damage)))
}

/// Whether the stored bytes are the payload. If they should be and are not, the record is damaged.
#[inline]
fn is_verbatim(found: &FoundPayload, bytes: &[u8]) -> bool {
    found.stored.algo == CompressionAlgo::None && bytes.len() == found.len
}

/// Writes the payload that is stored as `bytes` to `target`, as [`fill`] does.
///
/// # Safety
/// As for [`fill`].
#[inline]
unsafe fn fill_from(bytes: &[u8], found: &FoundPayload, target: *mut u8) -> std::result::Result<(), Damage> {
    if is_verbatim(found, bytes) {
        // SAFETY: `bytes` has `len` bytes, `target` too, and a read-only map does not overlap memory of the caller.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), found.len) };
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { target.write_bytes(0, found.len) };
    // SAFETY: as above, and now all bytes are initialised.
    let payload = unsafe { slice::from_raw_parts_mut(target, found.len) };
    found.stored.algo.decompress_into(bytes, payload)
}

#[cold]
pub(super) fn no_memory(bytes: usize) -> Error {
    Error::OutOfMemory { bytes, purpose: "a payload" }
}
