//! BLAKE3 of many short messages at once: one message in each lane of the processor's vectors.
//!
//! BLAKE3 is fast where one message has many chunks of 1 KiB to work on side by side; records of a few KiB do not. The
//! chunks of different records are as independent of each other as those of one, so they go side by side here.
//! That takes vector instructions; where there are none, the messages are hashed one by one.
#![expect(clippy::indexing_slicing, reason = "places come from walking the very same lists")]

use std::ops::Range;

use blake3::hazmat::{ChainingValue, Mode, merge_subtrees_non_root, merge_subtrees_root};

use super::avx2::{LANES, Vectors};
use super::blake3_64;

/// Bytes of a leaf of the hash tree.
const CHUNK: usize = 1024;

/// Longer messages keep the vectors busy by themselves.
const MAX_MESSAGE: usize = 8 * CHUNK;

/// A leaf of a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Leaf<'a> {
    /// At most a chunk of them.
    pub(super) bytes: &'a [u8],
    message: usize,
    /// Place among the leaves of the message.
    pub(super) number: u32,
    /// Whether it is the whole message.
    pub(super) is_root: bool,
}

/// Sets `sums` to [`blake3_64`] of each of the `messages`, which are ranges of `buffer`.
pub(super) fn fill(buffer: &[u8], messages: &[Range<usize>], sums: &mut Vec<u64>) {
    sums.clear();
    sums.resize(messages.len(), 0);
    let Some(vectors) = Vectors::detect() else {
        for (sum, message) in sums.iter_mut().zip(messages) {
            *sum = blake3_64(&[buffer.get(message.clone()).unwrap_or_default()]);
        }
        return;
    };
    // Leaves of equal length go together: a group takes as long as its longest leaf.
    let (mut full, mut rest) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    for (number, message) in messages.iter().enumerate() {
        let bytes = buffer.get(message.clone()).unwrap_or_default();
        if bytes.len() > MAX_MESSAGE {
            sums[number] = blake3_64(&[bytes]);
            continue;
        }
        let is_root = bytes.len() <= CHUNK;
        let mut leaves = bytes.chunks(CHUNK);
        let empty: &[u8] = &[];
        let first = leaves.next().unwrap_or(empty);
        for (place, bytes) in (0..).zip(std::iter::once(first).chain(leaves)) {
            let leaf = Leaf { bytes, message: number, number: place, is_root };
            if bytes.len() == CHUNK { full.push(leaf) } else { rest.push(leaf) }
        }
    }
    let mut trees: Vec<Vec<ChainingValue>> = Vec::new();
    trees.resize_with(if full.is_empty() { 0 } else { messages.len() }, Vec::new);
    // Full leaves come first and in order, so every tree gets its leaves from left to right.
    for group in full.chunks(LANES).chain(rest.chunks(LANES)) {
        let mut leaves = [group[0]; LANES];
        leaves[..group.len()].copy_from_slice(group);
        for (leaf, value) in group.iter().zip(vectors.hash_leaves(&leaves)) {
            if leaf.is_root {
                sums[leaf.message] = first_word(&value);
            } else {
                trees[leaf.message].push(value);
            }
        }
    }
    for (sum, leaves) in sums.iter_mut().zip(&trees) {
        if leaves.len() > 1 {
            let (left, right) = leaves.split_at(left_len(leaves.len()));
            *sum = first_word(merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes());
        }
    }
}

fn first_word(hash: &[u8; 32]) -> u64 {
    hash.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word))
}

/// Leaves left of the middle: the largest power of two that leaves something for the right.
const fn left_len(leaves: usize) -> usize {
    leaves.next_power_of_two() / 2
}

fn subtree(leaves: &[ChainingValue]) -> ChainingValue {
    if let [leaf] = leaves {
        return *leaf;
    }
    let (left, right) = leaves.split_at(left_len(leaves.len()));
    merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
}
