//! A hint to the processor that memory is about to be read.
#![expect(unsafe_code, reason = "the intrinsic takes a raw pointer")]

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
