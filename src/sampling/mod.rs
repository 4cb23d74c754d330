//! Which row comes next: draw streams, of which any stretch can be computed by anybody.
//!
//! The algorithm and the reasons for it: docs/decisions/0003-draw-stream.md. Golden vectors pin it; another
//! sequence needs another [`DRAW_STREAM_VERSION`].

mod alias;
mod philox;
mod shared_slice;
mod stream;
mod total;
mod vectors;

pub use alias::{AliasTable, LazyTable, RunBlocks, one_by_one};
pub use philox::{DRAW_STREAM_VERSION, philox4x64};
pub use shared_slice::SharedSlice;
pub use stream::{Cursor, DrawStream};
