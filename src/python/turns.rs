//! Threads that share an iterator take turns at its stream, in the order in which they asked.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;

use super::buffer::NewBytes;
use crate::cancel::Waiter;
use crate::dataset::SampleStream;
use crate::error::{Error, Result};
use crate::pool::ForkStamp;
use crate::reader::Chunk;

/// A stream that one thread at a time prepares samples with.
pub(super) struct Turns {
    stamp: ForkStamp,
    source: Mutex<Source>,
    returned: Condvar,
}

struct Source {
    /// `None` while it is on loan.
    stream: Option<Box<SampleStream<NewBytes>>>,
    taken_by: Option<ThreadId>,
    /// Threads that wait for the stream, in the order they came. Without an order a thread could wait for ever: it runs
    /// only while others let go of the interpreter, and they do that just when they have the stream.
    waiting: VecDeque<ThreadId>,
}

/// The right to prepare samples: the stream itself, on loan.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    /// Only `drop` takes it away.
    stream: Option<Box<SampleStream<NewBytes>>>,
}

impl Turns {
    pub(super) fn new(stream: SampleStream<NewBytes>) -> Result<Self> {
        let source = Source { stream: Some(Box::new(stream)), taken_by: None, waiting: VecDeque::new() };
        Ok(Self { stamp: ForkStamp::here()?, source: Mutex::new(source), returned: Condvar::new() })
    }

    /// An error in a forked child, see [`ForkStamp::check`].
    pub(super) fn check(&self) -> Result<()> {
        self.stamp.check()
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.stamp.is_inherited()
    }

    /// Samples of the window, and how many of them were given out; `None` while a thread has the stream.
    pub(super) fn progress(&self) -> Option<(u64, u64)> {
        self.lock().stream.as_ref().map(|stream| (stream.window_len(), stream.delivered()))
    }

    /// Waits until it is this thread's turn.
    pub(super) fn take(&self, py: Python<'_>, waiter: &mut dyn Waiter) -> Result<Turn<'_>> {
        let thread = thread::current().id();
        let mut source = self.lock();
        if source.taken_by == Some(thread) || source.waiting.contains(&thread) {
            return Err(Error::Unusable(
                "the iterator is already being advanced further up in this thread; do not advance it in a signal handler".to_owned(),
            ));
        }
        source.waiting.push_back(thread);
        if let Some(turn) = self.lend(&mut source, thread) {
            return Ok(turn);
        }
        drop(source);
        let place = Place { turns: self, thread };
        let mut turn = None;
        loop {
            // The turn is taken while waiting: until this thread has the interpreter again, others could have the stream again.
            waiter.wait(&mut |timeout| {
                turn = place.wait(timeout);
                true
            })?;
            if let Some(turn) = turn {
                return Ok(turn);
            }
            waiter.check()?;
            if is_ending(py) {
                return Err(Error::Unusable(
                    "the interpreter is ending and has stopped the thread that advances this iterator; end such threads, \
                     or do not advance it in a destructor"
                        .to_owned(),
                ));
            }
        }
    }

    /// Lends the stream to a thread that waits, if it is its turn.
    fn lend(&self, source: &mut Source, thread: ThreadId) -> Option<Turn<'_>> {
        if !source.is_due(thread) {
            return None;
        }
        source.waiting.pop_front();
        source.taken_by = Some(thread);
        Some(Turn { turns: self, stream: source.stream.take() })
    }

    /// Changes who has the stream or waits for it, and has those who wait look whether it is their turn.
    fn change(&self, change: impl FnOnce(&mut Source)) {
        if self.stamp.is_inherited() {
            // Somebody else may have had the lock when this process was forked.
            return;
        }
        let mut source = self.lock();
        change(&mut source);
        if !source.waiting.is_empty() {
            self.returned.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn is_due(&self, thread: ThreadId) -> bool {
        self.stream.is_some() && self.waiting.front() == Some(&thread)
    }
}

impl Turn<'_> {
    pub(super) fn next_chunk(&mut self, waiter: &mut dyn Waiter) -> Result<Option<Chunk<NewBytes>>> {
        self.stream.as_mut().map_or(Ok(None), |stream| stream.next_chunk(waiter))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let stream = self.stream.take();
        self.turns.change(|source| {
            source.stream = stream;
            source.taken_by = None;
        });
    }
}

/// A thread's place among those that wait.
struct Place<'a> {
    turns: &'a Turns,
    thread: ThreadId,
}

impl<'a> Place<'a> {
    fn wait(&self, timeout: Duration) -> Option<Turn<'a>> {
        let (mut source, _) = self
            .turns
            .returned
            .wait_timeout_while(self.turns.lock(), timeout, |source| !source.is_due(self.thread))
            .unwrap_or_else(PoisonError::into_inner);
        self.turns.lend(&mut source, self.thread)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Who wants to stop instead of waiting is still in the row.
        self.turns.change(|source| source.waiting.retain(|waiting| *waiting != self.thread));
    }
}

/// Whether the interpreter lets no thread but this one run any more.
fn is_ending(py: Python<'_>) -> bool {
    let asked = py.import("sys").and_then(|sys| sys.call_method0("is_finalizing")).and_then(|ending| ending.extract());
    // Without that module it has come far.
    asked.unwrap_or(true)
}
