//! Where progress of a write is shown: as one line that is written again and again in a notebook, or nowhere.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::progress::{NoProgress, ProgressSink, WriteProgress};

/// A notebook sends every change over the network.
const DRAW_EVERY: Duration = Duration::from_millis(500);

/// The sink for a write.
pub(super) fn sink(py: Python<'_>, show: bool) -> PyResult<Box<dyn ProgressSink>> {
    if show && is_notebook(py)? {
        return Ok(Box::new(NotebookLine::new()));
    }
    Ok(Box::new(NoProgress))
}

/// Whether standard error of this interpreter goes to the page of a notebook.
fn is_notebook(py: Python<'_>) -> PyResult<bool> {
    py.import("sys")?.getattr("modules")?.contains("ipykernel")
}

/// One line on the interpreter's standard error.
struct NotebookLine {
    started: Instant,
    source_started: Instant,
    source_name: String,
    drawn: Option<Instant>,
    width: usize,
}

impl NotebookLine {
    fn new() -> Self {
        let now = Instant::now();
        Self { started: now, source_started: now, source_name: String::new(), drawn: None, width: 0 }
    }

    fn write(&mut self, line: &str, end: &str) {
        let text = format!("\r{line:width$}{end}", width = self.width);
        self.width = line.chars().count();
        // Progress is no reason for a write to fail: whatever is wrong with the stream is passed over.
        let _ = Python::attach(|py| -> PyResult<()> {
            let stream = py.import("sys")?.getattr("stderr")?;
            stream.call_method1("write", (text,))?;
            stream.call_method0("flush").map(drop)
        });
    }
}

impl ProgressSink for NotebookLine {
    fn update(&mut self, progress: &WriteProgress) {
        let now = Instant::now();
        if progress.source_name != self.source_name {
            self.source_name.clone_from(&progress.source_name);
            self.source_started = now;
        }
        if self.drawn.is_some_and(|drawn| now - drawn < DRAW_EVERY) {
            return;
        }
        self.drawn = Some(now);
        let line = describe(progress, now - self.source_started, now - self.started);
        self.write(&line, "");
    }

    fn finish(&mut self) {
        if self.drawn.is_some() {
            self.write("", "\n");
        }
    }
}

/// What one line says.
#[expect(clippy::cast_precision_loss, reason = "rates are read by people")]
fn describe(progress: &WriteProgress, in_source: Duration, in_call: Duration) -> String {
    let seconds = in_source.as_secs_f64().max(1e-3);
    let rate = progress.samples as f64 / seconds;
    let megabytes = progress.payload_bytes as f64 / 1e6 / seconds;
    let line =
        format!("{}: {} samples, {rate:.0} samples/s, {megabytes:.1} MB/s", progress.source_name, progress.samples);
    if progress.sources_total <= 1 {
        return line;
    }
    let (done, total) = (progress.sources_done, progress.sources_total);
    let line = format!("{line}, source {} of {total}", done + 1);
    if done == 0 {
        return line;
    }
    let left = in_call.as_secs_f64() / done as f64 * (total - done) as f64;
    format!("{line}, about {left:.0} s left")
}
