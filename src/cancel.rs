//! Stopping early, and waiting in a way that can be stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};

/// A flag that asks running tasks to stop. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody who holds a clone to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// `Err(Interrupted)` once cancelled: for `?` between two steps of a long task.
    ///
    /// # Errors
    /// [`Error::Interrupted`] after [`cancel`](Self::cancel).
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// How the thread that called into the library waits.
///
/// Every operation that can last runs as tasks on the pool while its caller waits through this trait.
/// A caller that holds an interpreter lets go of it while waiting and looks for signals in between.
pub trait Waiter {
    /// Calls `done` until it returns true. Each call may block up to the given time.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller wants to stop instead.
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()>;

    /// Looks for a wish to stop without blocking; called between pieces of work done on the calling thread.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller wants to stop.
    fn check(&mut self) -> Result<()>;
}

/// Does `work` on the calling thread while `waiter` waits: for what may have to wait for the disk, but not for long.
///
/// # Errors
/// Those of `work`; [`Error::Interrupted`] when the caller wanted to stop before it.
pub fn while_waiting<T: Send>(waiter: &mut dyn Waiter, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let (mut work, mut result) = (Some(work), Err(Error::Interrupted));
    waiter.wait(&mut |_| {
        if let Some(work) = work.take() {
            result = work();
        }
        true
    })?;
    result
}

/// Longest time a [`Waiter`] blocks before it looks for signals again.
pub const WAIT_SLICE: Duration = Duration::from_millis(50);

/// Waits as another waiter does, and looks at something after each slice of the time, or when the work is done.
pub struct Watching<'a> {
    /// Who waits.
    pub waiter: &'a mut dyn Waiter,
    /// What is called in between, without an interpreter.
    pub look: &'a mut (dyn FnMut() + Send),
}

impl Waiter for Watching<'_> {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        self.waiter.wait(&mut |timeout| {
            let is_done = done(timeout);
            (self.look)();
            is_done
        })
    }

    fn check(&mut self) -> Result<()> {
        self.waiter.check()
    }
}

/// Waits for as long as it takes, or until its token is cancelled.
#[derive(Debug, Clone, Default)]
pub struct PlainWaiter {
    /// Cancel it from another thread to make the waiting operation return [`Error::Interrupted`].
    pub token: CancelToken,
}

impl Waiter for PlainWaiter {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        while !done(WAIT_SLICE) {
            self.token.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.token.check()
    }
}
