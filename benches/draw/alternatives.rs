//! Ways to draw by weight that the library does not use, measured beside the one it does.

/// Walker's alias method with Vose's set-up: one random cell, one comparison.
pub(crate) struct Alias {
    cells: Vec<Cell>,
}

struct Cell {
    keep: u64,
    other: u32,
}

impl Alias {
    pub(crate) fn build(weights: &[f64]) -> Self {
        let rows = weights.len();
        let mean = weights.iter().sum::<f64>() / rows as f64;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (row, share) in shares.iter().enumerate() {
            if *share < 1.0 { small.push(row) } else { large.push(row) }
        }
        let mut cells: Vec<Cell> = (0..rows).map(|row| Cell { keep: u64::MAX, other: row as u32 }).collect();
        while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
            cells[low] = Cell { keep: (shares[low] * 2.0_f64.powi(64)) as u64, other: high as u32 };
            shares[high] -= 1.0 - shares[low];
            if shares[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { cells }
    }

    /// Rows for pairs of random words.
    pub(crate) fn rows(&self, words: &[[u64; 2]], out: &mut [u64]) {
        for (words, out) in words.chunks(128).zip(out.chunks_mut(128)) {
            for (word, row) in words.iter().zip(&mut *out) {
                *row = ((u128::from(word[0]) * self.cells.len() as u128) >> 64) as u64;
                dataset_rt::prefetch::prefetch(&self.cells[*row as usize]);
            }
            for (word, row) in words.iter().zip(out) {
                let cell = &self.cells[*row as usize];
                *row = if word[1] < cell.keep { *row } else { u64::from(cell.other) };
            }
        }
    }
}

/// Cumulative sums for every row and a guide with one bucket for each: the weights are not needed for a draw.
pub(crate) struct Cumulative {
    ends: Vec<u64>,
    guide: Vec<u32>,
    shift: u32,
}

impl Cumulative {
    pub(crate) fn build(weights: &[f64]) -> Self {
        let sum = weights.iter().sum::<f64>();
        let scale = 2.0_f64.powi(61 - sum.log2() as i32);
        let mut end = 0;
        let mut ends = Vec::with_capacity(weights.len());
        for weight in weights {
            end += ((weight * scale) as i64 as u64).max(1);
            ends.push(end);
        }
        let shift = (64 - end.leading_zeros()).saturating_sub(64 - (weights.len() as u64).leading_zeros());
        let mut guide = Vec::with_capacity((end >> shift) as usize + 2);
        for (row, end) in ends.iter().enumerate() {
            while (guide.len() as u64) << shift < *end {
                guide.push(row as u32);
            }
        }
        guide.push(weights.len() as u32 - 1);
        Self { ends, guide, shift }
    }

    /// Rows for pairs of random words.
    pub(crate) fn rows(&self, words: &[[u64; 2]], out: &mut [u64]) {
        let total = u128::from(self.ends[self.ends.len() - 1]);
        for (words, out) in words.chunks(128).zip(out.chunks_mut(128)) {
            for (word, position) in words.iter().zip(&mut *out) {
                *position = ((u128::from(word[0]) * total) >> 64) as u64;
                dataset_rt::prefetch::prefetch(&self.guide[(*position >> self.shift) as usize]);
            }
            let mut first = [0; 128];
            for (position, first) in out.iter().zip(&mut first) {
                *first = self.guide[(*position >> self.shift) as usize] as usize;
                dataset_rt::prefetch::prefetch(&self.ends[*first]);
            }
            for (position, first) in out.iter_mut().zip(first) {
                let last = self.guide[(*position >> self.shift) as usize + 1] as usize;
                let ends = &self.ends[first..last];
                let steps = if ends.len() <= 8 {
                    ends.iter().take_while(|end| **end <= *position).count()
                } else {
                    ends.partition_point(|end| *end <= *position)
                };
                *position = (first + steps) as u64;
            }
        }
    }
}
