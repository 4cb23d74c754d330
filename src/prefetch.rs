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

/// Whether all pages of a mapped file that `bytes` touch are in memory. True where nobody can tell.
#[must_use]
pub fn is_in_memory(bytes: &[u8]) -> bool {
    #[cfg(target_os = "linux")]
    {
        let page_bytes = page_bytes();
        let (mut start, mut len) = pages_of(bytes);
        // As many pages as one call is asked about.
        let mut pages = [0_u8; 64];
        while len > 0 {
            let part = len.min(pages.len() * page_bytes);
            // SAFETY: the range is mapped, because its pages hold `bytes`, and there is a place for each of its pages.
            let status = unsafe { libc::mincore(start.cast_mut().cast(), part, pages.as_mut_ptr()) };
            let looked_at = pages.get(..part.div_ceil(page_bytes)).unwrap_or_default();
            if status == 0 && looked_at.iter().any(|page| page & 1 == 0) {
                return false;
            }
            start = start.wrapping_add(part);
            len -= part;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
    true
}

/// Asks the kernel to read the pages of a mapped file that `bytes` touch, and does not wait for them.
pub fn ask_for(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    {
        let (start, len) = pages_of(bytes);
        // SAFETY: the range is mapped, because its pages hold `bytes`; the advice changes nothing but when it is read.
        unsafe { libc::madvise(start.cast_mut().cast(), len, libc::MADV_WILLNEED) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}

/// Reads the pages of a mapped file that `bytes` touch and waits for them. When it is called for one part of a file after the
/// other, the kernel reads ahead, in larger pieces than it is asked for. Where that cannot be had, as before Linux 5.14, asks
/// for the pages and does not wait.
pub fn bring_in(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    {
        let (start, len) = pages_of(bytes);
        // SAFETY: the range is mapped, because its pages hold `bytes`; they are only read, and what cannot be read is an
        // error of the call.
        let status = unsafe { libc::madvise(start.cast_mut().cast(), len, libc::MADV_POPULATE_READ) };
        if status != 0 {
            ask_for(bytes);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}

/// Has the kernel keep what it reads of a mapped file from now on in large pages, where the file system can. It then reads a file
/// from its beginning to its end several times as fast: a request to a disk is limited to so many pages. But it also reads
/// some MiB where a byte is touched that nobody asked for, whatever the disk is set to. `bytes` should be the whole file.
pub fn keep_in_large_pages(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    {
        let (start, len) = pages_of(bytes);
        // SAFETY: the range is mapped, because its pages hold `bytes`; the advice changes nothing but how it is read.
        unsafe { libc::madvise(start.cast_mut().cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}

/// How often this thread has waited for the disk to give a page of a mapped file. Constant where nobody can tell.
#[must_use]
pub fn waits_for_disk() -> i64 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all zeros is a value of this structure of numbers, which the call fills.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage.ru_majflt
        }
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// The pages that `bytes` touch, from the start of the first one to the end of `bytes`.
#[cfg(target_os = "linux")]
fn pages_of(bytes: &[u8]) -> (*const u8, usize) {
    let before = bytes.as_ptr().addr() % page_bytes();
    (bytes.as_ptr().wrapping_sub(before), bytes.len() + before)
}

#[cfg(target_os = "linux")]
fn page_bytes() -> usize {
    // SAFETY: the call only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
