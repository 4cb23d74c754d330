//! Loops over weights, compiled once more for processors with wide vectors. Both give the same numbers.
#![expect(unsafe_code, reason = "only the caller knows what the processor has")]

/// A loop. `run`, and all that it calls, must be inlined always: only then it is compiled for wide vectors, too.
pub(super) trait Loop {
    type Output;

    fn run(self) -> Self::Output;
}

/// Runs a loop, with wide vectors if the processor has them.
#[inline]
pub(super) fn vectorized<L: Loop>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<L: Loop>(work: L) -> L::Output {
    work.run()
}
