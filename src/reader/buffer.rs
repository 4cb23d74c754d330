//! Where payloads go: memory that the caller allocates and the reader fills.
#![expect(unsafe_code, reason = "buffers are handed over uninitialised, so that each byte is written once")]

/// Memory for one payload.
///
/// The reader allocates, moves and drops buffers only on the thread that called it, and never while it waits. Their
/// bytes may be filled by another thread meanwhile.
///
/// # Safety
/// After `allocate(len)` succeeded, `as_mut_ptr` gives the start of `len` writable bytes. They stay where they are,
/// and nobody else touches them, until `assume_filled` was called or the buffer is dropped, even while the buffer is moved.
pub unsafe trait PayloadBuffer: Send + Sync + Sized {
    /// A buffer for `len` bytes, with any contents; `None` when there is not enough memory.
    fn allocate(len: usize) -> Option<Self>;

    /// Start of the memory to fill.
    fn as_mut_ptr(&mut self) -> *mut u8;

    /// Told once, when all bytes are written.
    ///
    /// # Safety
    /// `len` is what was allocated, and that many bytes are initialised.
    unsafe fn assume_filled(&mut self, len: usize);
}

// SAFETY: a vector keeps its bytes on the heap, has capacity for what was reserved, and does not touch spare capacity.
unsafe impl PayloadBuffer for Vec<u8> {
    fn allocate(len: usize) -> Option<Self> {
        let mut buffer = Self::new();
        buffer.try_reserve_exact(len).ok()?;
        Some(buffer)
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        Self::as_mut_ptr(self)
    }

    unsafe fn assume_filled(&mut self, len: usize) {
        // SAFETY: the caller says that `len` bytes are initialised, and so many were reserved.
        unsafe { self.set_len(len) };
    }
}
