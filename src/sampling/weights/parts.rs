//! A [`WeightTable`] as plain slices and numbers, so that it can be written to a file and used from its map.

use std::ops::Range;

use super::{LINE, Scale, WeightTable};
use crate::error::{Error, Result};
use crate::sampling::SharedSlice;

/// Everything a table consists of. What the slices hold decides which rows are drawn, and nothing else: made-up
/// numbers give made-up rows, perhaps beyond the last one.
#[derive(Debug, Clone)]
pub struct WeightParts {
    /// One weight for each row.
    pub weights: SharedSlice<f64>,
    /// Where each line of rows starts.
    pub starts: SharedSlice<u64>,
    /// In which line each bucket begins.
    pub guide: SharedSlice<u32>,
    /// Binary logarithm of the length of a bucket.
    pub bucket_shift: u32,
    /// Length of all rows together.
    pub total: u64,
    /// Relation of weights and lengths.
    pub scale: i32,
}

impl WeightTable {
    /// Takes the table apart. Nothing is copied.
    #[must_use]
    pub fn parts(&self) -> WeightParts {
        WeightParts {
            weights: self.weights.clone(),
            starts: self.starts.clone(),
            guide: self.guide.clone(),
            bucket_shift: self.bucket_shift,
            total: self.total,
            scale: self.scale.top,
        }
    }

    /// Puts a table together.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when slices and numbers cannot belong together. What the slices hold is not looked at.
    pub fn from_parts(parts: WeightParts) -> Result<Self> {
        let rows = parts.weights.as_slice().len();
        let fits = rows > 0
            && parts.starts.as_slice().len() == rows.div_ceil(LINE)
            && parts.guide.as_slice().len() >= 2
            && parts.bucket_shift < u64::BITS
            && (1..=1 << 63).contains(&parts.total)
            && (Scale::TOPS).contains(&parts.scale);
        if !fits {
            return Err(Error::InvalidValue("expected a table of weights, found parts of different tables".to_owned()));
        }
        Ok(Self {
            weights: parts.weights,
            starts: parts.starts,
            guide: parts.guide,
            bucket_shift: parts.bucket_shift,
            total: parts.total,
            scale: Scale { top: parts.scale },
        })
    }

    /// The stretch of the line that belongs to `rows`: the position where it starts, and its length.
    #[must_use]
    pub fn stretch(&self, rows: Range<u64>) -> (u64, u64) {
        let start = self.start_of(rows.start);
        (start, self.start_of(rows.end).saturating_sub(start))
    }

    fn start_of(&self, row: u64) -> u64 {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        let line = row / LINE;
        let Some(start) = self.starts.as_slice().get(line) else { return self.total };
        let before = self.weights.as_slice().get(line * LINE..row).unwrap_or_default();
        before.iter().fold(*start, |position, weight| position.saturating_add(self.scale.length(*weight)))
    }
}
