//! Lets chosen file operations fail, fall short or kill the process. Only builds with the feature `faults` have this, and
//! only tests have that feature.
#![expect(unsafe_code, reason = "the standard library cannot send a signal")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Operation;

/// What happens instead of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies by SIGKILL.
    Kill,
    /// Nothing is done, and the system gives this error number.
    Fail(i32),
    /// A write takes half of its bytes and says so. Other operations are not concerned.
    Short,
}

/// When it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At the operation with this number below the directory, from 0.
    At(usize),
    /// At every operation of a kind.
    Every(Operation),
}

struct Plan {
    root: PathBuf,
    faults: Vec<(When, Fault)>,
    seen: Mutex<Vec<(Operation, PathBuf)>>,
}

static PLANS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

/// Faults that are in force until this is dropped.
pub struct Armed(Arc<Plan>);

/// Puts faults in force for operations on `root` and whatever is below.
#[must_use]
pub fn arm(root: impl Into<PathBuf>, faults: &[(When, Fault)]) -> Armed {
    let plan = Arc::new(Plan { root: root.into(), faults: faults.to_vec(), seen: Mutex::default() });
    lock(&PLANS).push(Arc::clone(&plan));
    Armed(plan)
}

impl Armed {
    /// The operations so far, whether they were let through or not.
    #[must_use]
    pub fn seen(&self) -> Vec<(Operation, PathBuf)> {
        lock(&self.0.seen).clone()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        lock(&PLANS).retain(|plan| !Arc::ptr_eq(plan, &self.0));
    }
}

/// Called before an operation that is no write.
pub(super) fn point(operation: Operation, path: &Path) -> io::Result<()> {
    match fault_for(operation, path) {
        Some(Fault::Kill) => kill(),
        Some(Fault::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
        Some(Fault::Short) | None => Ok(()),
    }
}

/// Called before a write of `length` bytes; says how many of them may be taken.
pub(super) fn write_point(path: &Path, length: usize) -> io::Result<usize> {
    match fault_for(Operation::Write, path) {
        Some(Fault::Kill) => kill(),
        Some(Fault::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
        Some(Fault::Short) => Ok((length / 2).max(1)),
        None => Ok(length),
    }
}

fn fault_for(operation: Operation, path: &Path) -> Option<Fault> {
    let plans = lock(&PLANS);
    let plan = plans.iter().find(|plan| path.starts_with(&plan.root))?;
    let mut seen = lock(&plan.seen);
    let number = seen.len();
    seen.push((operation, path.to_path_buf()));
    let applies = |when: &When| match when {
        When::At(wanted) => *wanted == number,
        When::Every(wanted) => *wanted == operation,
    };
    plan.faults.iter().find(|(when, _)| applies(when)).map(|(_, fault)| *fault)
}

fn kill() -> ! {
    loop {
        // SAFETY: sends a signal to this process; nothing of it runs on.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
