//! Work in a forked process that dies at a file operation.
#![expect(unsafe_code, reason = "there is no safe fork")]

use std::path::Path;

use dataset_rt::fs::fault::{Fault, When, arm};

/// Does `work` in a forked process with these faults below `base`. Tells whether it was killed by one of them; otherwise it
/// came to its end without a panic. For programs with a single test: no other thread may hold a lock that the child needs.
pub(crate) fn is_killed(base: &Path, faults: &[(When, Fault)], work: impl Fn()) -> bool {
    // SAFETY: see above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let _armed = arm(base, faults);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child without running anything that belongs to the parent.
        unsafe { libc::_exit(i32::from(done.is_err())) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above; `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if libc::WIFSIGNALED(status) {
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL);
        return true;
    }
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child failed before it was killed");
    false
}
