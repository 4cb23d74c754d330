//! Where progress of a write is shown: on the terminal, or as one line of a notebook that is written again and again.

use std::time::Instant;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::calls;
use crate::progress::{NoProgress, ProgressSink, WriteProgress};
use crate::terminal::{ProgressLine, TerminalProgress};

/// The sink for a write.
pub(super) fn sink(py: Python<'_>, show: bool) -> PyResult<Box<dyn ProgressSink>> {
    Ok(if !show {
        Box::new(NoProgress)
    } else if is_notebook(py)? {
        Box::new(NotebookProgress { line: ProgressLine::new(Instant::now()), latest: None, width: 0 })
    } else {
        Box::new(TerminalProgress::new())
    })
}

/// Whether standard error of this interpreter goes to the page of a notebook.
fn is_notebook(py: Python<'_>) -> PyResult<bool> {
    let module = py.import("sys")?.getattr("stderr")?.get_type().module()?;
    let module = module.to_str()?;
    Ok(module == "ipykernel" || module.starts_with("ipykernel."))
}

/// One line on the interpreter's standard error, which a notebook shows on its page.
struct NotebookProgress {
    line: ProgressLine,
    latest: Option<WriteProgress>,
    width: usize,
}

impl NotebookProgress {
    fn write(&mut self, line: &str, end: &str) {
        let text = format!("\r{line:width$}{end}", width = self.width);
        self.width = line.chars().count();
        // Progress is no reason for a write to fail: whatever is wrong with the stream is passed over.
        let _ = Python::attach(|py| -> PyResult<()> {
            let stream = py.import("sys")?.getattr("stderr")?;
            calls::method(&stream, intern!(py, "write"), &(text,).into_pyobject(py)?)?;
            calls::method(&stream, intern!(py, "flush"), &PyTuple::empty(py)).map(drop)
        });
    }
}

impl ProgressSink for NotebookProgress {
    fn update(&mut self, progress: &WriteProgress) {
        self.latest = Some(progress.clone());
        if let Some(line) = self.line.update(progress, Instant::now()) {
            self.write(&line, "");
        }
    }

    fn finish(&mut self) {
        if let Some(latest) = self.latest.take() {
            let line = self.line.text(&latest, Instant::now());
            self.write(&line, "\n");
        }
    }
}
