//! The one doorway out of the interpreter: let go of it, wait, look for signals, turn the error into an exception.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::arguments::class_name;
use super::calls;
use super::error::to_py_err;
use crate::cancel::{WAIT_SLICE, Waiter};
use crate::error::{Error, Result, excerpt};

/// How long work on the calling thread may keep other Python threads out: two switch intervals of the interpreter. A thread
/// that waits asks for the interpreter after one, counted from the last time that somebody let go of it, and only
/// who was asked waits until the other one has it. Letting go after one interval would often come too early, every time.
const LONGEST_HOLD: Duration = Duration::from_millis(10);

/// An exception that ends the operation and has to come out of it as the same object.
///
/// The core knows nothing of exceptions: it sees [`Error::Interrupted`] and unwinds, and the exception waits here.
#[derive(Debug, Default)]
pub(super) struct Parked(RefCell<Option<PyErr>>);

impl Parked {
    /// Keeps the first of them and gives the error for the core.
    pub(super) fn park(&self, exception: PyErr) -> Error {
        self.0.borrow_mut().get_or_insert(exception);
        Error::Interrupted
    }

    /// What is to be told about an exception that came out of Python code called back: an `Exception` is the affair of
    /// what was called, anything else ends the operation.
    pub(super) fn describe(&self, py: Python<'_>, exception: PyErr) -> Result<String> {
        if exception.is_instance_of::<PyException>(py) {
            description(py, &exception, MAX_CAUSES).map_err(|raised| self.park(raised))
        } else {
            Err(self.park(exception))
        }
    }
}

thread_local! {
    /// When this thread last let others in here. It outlives operations: many short ones in a row keep others out as well
    /// as a long one does, if what calls them runs no bytecode in between.
    static LET_OTHERS_IN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The calling thread of an operation, attached to the interpreter.
pub(super) struct Interpreter<'py, 'parked> {
    py: Python<'py>,
    parked: &'parked Parked,
}

/// Runs one operation of the core and raises what it fails with.
pub(super) fn enter<T>(
    py: Python<'_>,
    operation: impl FnOnce(&mut Interpreter<'_, '_>, &Parked) -> Result<T>,
) -> PyResult<T> {
    let parked = Parked::default();
    let result = operation(&mut Interpreter { py, parked: &parked }, &parked);
    result.map_err(|error| match (error, parked.0.take()) {
        (Error::Interrupted, Some(exception)) => exception,
        (error, _) => to_py_err(&error),
    })
}

impl Interpreter<'_, '_> {
    fn signals(&self) -> Result<()> {
        self.py.check_signals().map_err(|exception| self.parked.park(exception))
    }
}

impl Waiter for Interpreter<'_, '_> {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        while !self.py.detach(|| done(WAIT_SLICE)) {
            self.signals()?;
        }
        LET_OTHERS_IN.set(Some(Instant::now()));
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        let_others_in(self.py);
        self.signals()
    }
}

/// Looks for signals between two pieces of work on the calling thread, and lets other threads in now and then.
pub(super) fn pause(py: Python<'_>) -> PyResult<()> {
    let_others_in(py);
    py.check_signals()
}

fn let_others_in(py: Python<'_>) {
    if LET_OTHERS_IN.get().is_none_or(|last| last.elapsed() > LONGEST_HOLD) {
        py.detach(|| ());
        LET_OTHERS_IN.set(Some(Instant::now()));
    }
}

/// How far a chain of causes is told; a chain may even be a circle.
const MAX_CAUSES: u32 = 3;

/// Type, text and causes of an exception: all that a message can keep of it. The text is made by code of the user, and
/// what that raises is an error here unless it is an `Exception`.
fn description(py: Python<'_>, exception: &PyErr, max_causes: u32) -> PyResult<String> {
    let class = class_name(&exception.get_type(py), "an exception");
    let text = match calls::text(exception.value(py).as_any()) {
        Ok(text) => excerpt(&text.to_string_lossy()).into_owned(),
        Err(raised) if raised.is_instance_of::<PyException>(py) => "(its text cannot be made)".to_owned(),
        Err(raised) => return Err(raised),
    };
    let separator = if text.is_empty() { "" } else { ": " };
    Ok(match exception.cause(py) {
        Some(cause) if max_causes > 0 => {
            format!("{class}{separator}{text} (caused by {})", description(py, &cause, max_causes - 1)?)
        }
        _ => format!("{class}{separator}{text}"),
    })
}
