//! Hints to the processor and the kernel about memory that is going to be used.
#![expect(unsafe_code, reason = "the intrinsic and the system call take raw pointers")]

/// Asks for the cache line at the start of `place` without waiting for it. Has no effect but time.
#[inline]
pub fn prefetch<T: ?Sized>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, and the pointer comes from a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: `prfm` never faults and changes neither memory, registers nor flags.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{place}]", place = in(reg) std::ptr::from_ref(place).cast::<u8>(),
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Asks for huge pages behind a large allocation that nobody has written to yet: fewer page faults while it is
/// filled, fewer misses of the address cache when it is read at random. Has no effect but time.
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const HUGE_PAGE: usize = 2 << 20;
        let bytes = size_of_val(memory);
        let start = memory.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(HUGE_PAGE);
        let advised = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if advised > 0 {
            // SAFETY: the range is page-aligned and lies inside `memory`, which is borrowed for as long; the advice
            // leaves its contents as they are.
            unsafe { libc::madvise(start.wrapping_add(skipped).cast(), advised, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
