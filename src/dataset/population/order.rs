//! A common order of rows that looks random: everybody who knows the seed finds the same one.

use crate::cancel::Waiter;
use crate::error::Result;
use crate::pool::{WorkerPool, map_blocks};

/// Rows that are sorted together first.
const BLOCK_ROWS: u64 = 1 << 16;

/// Keys are spread evenly over this many buckets, by their highest bits.
const BUCKET_BITS: u32 = 6;

const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// What rows are sorted by. No two rows have the same key.
pub(super) fn order_key(seed: u64, row: u64) -> u64 {
    mix(mix(seed.wrapping_add(GOLDEN_RATIO.wrapping_mul(row))) ^ seed)
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014): different words stay different.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The rows below `rows` in the order of their keys.
///
/// # Errors
/// As [`map_blocks`].
pub(super) fn shuffled(rows: u64, seed: u64, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<Vec<u64>> {
    let blocks = usize::try_from(rows.div_ceil(BLOCK_ROWS)).unwrap_or(usize::MAX);
    let sorted = map_blocks(pool, waiter, blocks, &|block, cancel| {
        cancel.check()?;
        let first = block as u64 * BLOCK_ROWS;
        let mut keys: Vec<(u64, u64)> =
            (first..rows.min(first + BLOCK_ROWS)).map(|row| (order_key(seed, row), row)).collect();
        keys.sort_unstable();
        Ok(keys)
    })?;
    let buckets = map_blocks(pool, waiter, 1 << BUCKET_BITS, &|bucket, cancel| {
        cancel.check()?;
        let bucket_of = |key: u64| key >> (u64::BITS - BUCKET_BITS);
        let mut keys = Vec::new();
        for block in &sorted {
            let start = block.partition_point(|(key, _)| bucket_of(*key) < bucket as u64);
            let end = block.partition_point(|(key, _)| bucket_of(*key) <= bucket as u64);
            keys.extend_from_slice(block.get(start..end).unwrap_or_default());
        }
        keys.sort_unstable();
        Ok(keys.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
    })?;
    Ok(buckets.concat())
}

#[cfg(test)]
mod tests {
    use super::{order_key, shuffled};
    use crate::cancel::PlainWaiter;
    use crate::pool::WorkerPool;

    #[test]
    fn keys_are_those_of_the_loader_plan() {
        // The same numbers stand in tests/python/torch/test_plan.py.
        let seed = 8_961_790_028_188_475_661;
        assert_eq!([0, 1].map(|row| order_key(seed, row)), [7_544_031_930_618_563_842, 4_505_852_109_698_872_522]);
    }

    #[test]
    fn rows_are_in_the_order_of_their_keys_whatever_the_blocks() {
        let pool = WorkerPool::new(2).unwrap();
        for rows in [0, 1, 2, 1000, (1 << 16) + 1, 200_000] {
            let order = shuffled(rows, 9, &pool, &mut PlainWaiter::default()).unwrap();
            let mut expected: Vec<u64> = (0..rows).collect();
            expected.sort_by_key(|row| order_key(9, *row));
            assert!(order == expected, "{rows} rows");
        }
    }
}
