//! BLAKE3 of many short messages at once: the nodes of their trees go side by side through the processor's vectors.
//!
//! BLAKE3 is fast where one message has many chunks of 1 KiB to work on side by side; records of a few KiB do not. The
//! chunks of different records are as independent of each other as those of one, and so are the nodes above them.
//! That takes vector instructions; where there are none, the messages are hashed one by one.
#![expect(clippy::indexing_slicing, reason = "places come from walking the very same lists")]

use std::ops::Range;

use super::avx2::{LANES, Vectors};
use super::blake3_64;

/// Bytes of a leaf of the hash tree.
const CHUNK: usize = 1024;

/// Bytes of a compressed block, and of a pair of chaining values.
pub(super) const BLOCK: usize = 64;

/// Longer messages keep the vectors busy by themselves.
const MAX_MESSAGE: usize = 16 * CHUNK;

/// What is known of the bytes below a node: 32 bytes, the first of them are the checksum at the root.
pub(super) type Value = [u8; 32];

/// A leaf of a message, at most a chunk of its bytes; or the node above two others, whose values are its bytes.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) bytes: &'a [u8],
    /// Place among the leaves of the message.
    pub(super) number: u32,
    /// What the first block is marked with.
    pub(super) first_flags: u32,
    /// What the last block is marked with.
    pub(super) last_flags: u32,
    /// Number of the message at its root, else the place of the value among those of all messages.
    place: usize,
}

const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;
const ROOT: u32 = 8;

impl<'a> Node<'a> {
    fn leaf(bytes: &'a [u8], number: u32, place: usize) -> Self {
        Self { bytes, number, first_flags: CHUNK_START, last_flags: CHUNK_END, place }
    }

    fn above(values: &'a [Value; 2], place: usize) -> Self {
        Self { bytes: values.as_flattened(), number: 0, first_flags: 0, last_flags: PARENT, place }
    }

    fn root(self, message: usize) -> Self {
        Self { last_flags: self.last_flags | ROOT, place: message, ..self }
    }

    fn is_root(&self) -> bool {
        self.last_flags & ROOT != 0
    }
}

/// The topmost nodes of a message so far, at least two of them, whose values lie behind each other.
struct Tree {
    message: usize,
    values: Range<usize>,
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
    let (mut whole, mut rest, mut trees, mut place) = (Vec::new(), Vec::with_capacity(messages.len()), Vec::new(), 0);
    for (message, range) in messages.iter().enumerate() {
        let bytes = buffer.get(range.clone()).unwrap_or_default();
        if bytes.len() <= CHUNK {
            rest.push(Node::leaf(bytes, 0, 0).root(message));
        } else if bytes.len() <= MAX_MESSAGE {
            let first = place;
            for (number, bytes) in (0..).zip(bytes.chunks(CHUNK)) {
                let leaves = if bytes.len() == CHUNK { &mut whole } else { &mut rest };
                leaves.push(Node::leaf(bytes, number, place));
                place += 1;
            }
            trees.push(Tree { message, values: first..place });
        } else {
            sums[message] = blake3_64(&[bytes]);
        }
    }
    // Those that go side by side take as long as the longest of them.
    rest.sort_unstable_by_key(|leaf| leaf.bytes.len().div_ceil(BLOCK));

    let mut values = vec![[0; 32]; place];
    hash_all(vectors, &whole, &mut values, sums);
    hash_all(vectors, &rest, &mut values, sums);
    while !trees.is_empty() {
        values = grow(vectors, &mut trees, &values, sums);
    }
}

/// Puts parents above all nodes and gives their values. The last one of an odd number goes up as it is.
fn grow(vectors: Vectors, trees: &mut Vec<Tree>, values: &[Value], sums: &mut [u64]) -> Vec<Value> {
    let mut parents = Vec::with_capacity(values.len() / 2 + trees.len());
    let mut nodes = Vec::with_capacity(values.len() / 2);
    trees.retain_mut(|Tree { message, values: below }| {
        let first = parents.len();
        let (pairs, single) = values[below.clone()].as_chunks::<2>();
        if let ([pair], []) = (pairs, single) {
            nodes.push(Node::above(pair, 0).root(*message));
            return false;
        }
        for pair in pairs {
            nodes.push(Node::above(pair, parents.len()));
            parents.push([0; 32]);
        }
        parents.extend_from_slice(single);
        *below = first..parents.len();
        true
    });
    hash_all(vectors, &nodes, &mut parents, sums);
    parents
}

/// Writes the values of `nodes` to their places.
fn hash_all(vectors: Vectors, nodes: &[Node<'_>], values: &mut [Value], sums: &mut [u64]) {
    for group in nodes.chunks(LANES) {
        // Where there are too few of them, one is hashed several times.
        let mut lanes = [group[0]; LANES];
        lanes[..group.len()].copy_from_slice(group);
        for (node, value) in group.iter().zip(vectors.hash(&lanes)) {
            if node.is_root() {
                sums[node.place] = value.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            } else {
                values[node.place] = value;
            }
        }
    }
}
