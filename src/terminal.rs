//! Draws the progress of a write or a verification: one line that is updated in place. All drawing happens on the thread that reports.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::progress::{ProgressSink, WriteProgress};

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(100);

/// Characters of a source's name that are shown.
const MAX_NAME: usize = 24;

/// Turns counters into the text of the line, with rates and an estimate of the time left.
#[derive(Debug)]
pub struct ProgressLine {
    started: Instant,
    source_started: Instant,
    source_name: String,
    last: Option<Instant>,
}

impl ProgressLine {
    /// A line for a write that begins now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { started: now, source_started: now, source_name: String::new(), last: None }
    }

    /// The text for these counters; `None` when the last one is recent enough.
    pub fn update(&mut self, progress: &WriteProgress, now: Instant) -> Option<String> {
        if self.source_name != progress.source_name {
            self.source_name.clone_from(&progress.source_name);
            self.source_started = now;
        }
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= REDRAW);
        is_due.then(|| {
            self.last = Some(now);
            self.text(progress, now)
        })
    }

    /// The text for these counters.
    #[must_use]
    pub fn text(&self, progress: &WriteProgress, now: Instant) -> String {
        let WriteProgress { samples, payload_bytes, sources_done, sources_total, .. } = *progress;
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        if sources_total > 1 {
            let _ = write!(text, "[{sources_done}/{sources_total}] ");
        }
        let name = short(&progress.source_name);
        let seconds = now.duration_since(self.source_started).as_secs_f64().max(1e-3);
        let (samples_each, bytes_each) = (per(samples, seconds), per(payload_bytes, seconds));
        let _ = write!(text, "{name}: {samples} samples, {samples_each:.0} samples/s, {:.1} MB/s", bytes_each / 1e6);
        if sources_total > 1 && sources_done > 0 && sources_done < sources_total {
            let left = u32::try_from(sources_total - sources_done).unwrap_or(u32::MAX);
            let done = u32::try_from(sources_done).unwrap_or(u32::MAX);
            let estimate = now.duration_since(self.started).saturating_mul(left) / done;
            let seconds = estimate.as_secs();
            let _ = write!(text, ", ETA {}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        }
        text
    }
}

/// A name that leaves room for the numbers, and that no terminal takes for a command.
fn short(name: &str) -> String {
    let mut shown: String = name.chars().filter(|char| !char.is_control()).take(MAX_NAME + 1).collect();
    if let Some((end, _)) = shown.char_indices().nth(MAX_NAME) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to look at")]
fn per(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// Draws on the standard error stream if that is a terminal, and nothing otherwise.
#[derive(Debug)]
pub struct TerminalProgress {
    bar: ProgressBar,
    line: ProgressLine,
    latest: WriteProgress,
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl TerminalProgress {
    /// A sink for a write that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { bar: line_of_text(), line: ProgressLine::new(Instant::now()), latest: WriteProgress::default() }
    }
}

impl ProgressSink for TerminalProgress {
    fn update(&mut self, progress: &WriteProgress) {
        if self.bar.is_hidden() {
            return;
        }
        self.latest.clone_from(progress);
        if let Some(text) = self.line.update(progress, Instant::now()) {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    fn finish(&mut self) {
        if self.bar.is_hidden() || self.latest.sources_total == 0 {
            return;
        }
        // The last word stays on the terminal, with the cursor below it.
        self.bar.finish_with_message(self.line.text(&self.latest, Instant::now()));
        eprintln_newline();
    }
}

/// A line on the standard error stream, or nothing if that is no terminal.
fn line_of_text() -> ProgressBar {
    // Never a steady tick: that would start a thread.
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// Draws how far the verification of a cache has come, on the standard error stream if that is a terminal. The line goes
/// when this does: what comes of the verification is told elsewhere.
#[derive(Debug)]
pub struct TerminalVerification {
    bar: ProgressBar,
    title: String,
    started: Instant,
}

impl TerminalVerification {
    /// A line for a verification that begins now.
    #[must_use]
    pub fn new(title: impl AsRef<str>) -> Self {
        Self { bar: line_of_text(), title: short(title.as_ref()), started: Instant::now() }
    }

    /// Draws how many bytes were checked, out of how many.
    pub fn update(&self, checked: u64, total: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_message(verification_text(&self.title, checked, total, self.started.elapsed()));
            self.bar.tick();
        }
    }
}

impl Drop for TerminalVerification {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn verification_text(title: &str, checked: u64, total: u64, elapsed: Duration) -> String {
    let percent = u128::from(checked) * 100 / u128::from(total.max(1));
    let rate = per(checked, elapsed.as_secs_f64().max(1e-3)) / 1e6;
    format!("{title}: {percent} % of {:.1} MB, {rate:.1} MB/s", per(total, 1e6))
}

/// Ends the line of the bar, which the drawing library leaves open.
fn eprintln_newline() {
    use std::io::Write as _;

    // A terminal that has gone away is no reason to fail a write.
    let _ = std::io::stderr().write_all(b"\n");
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::progress::WriteProgress;
    use crate::terminal::{ProgressLine, verification_text};

    fn progress(samples: u64, sources_done: usize, sources_total: usize) -> WriteProgress {
        let source_name = "digits\u{1b}[2J".to_owned();
        WriteProgress { source_name, samples, payload_bytes: samples * 1_000, sources_done, sources_total }
    }

    #[test]
    fn c12_one_source_has_rates_only() {
        let start = Instant::now();
        let mut line = ProgressLine::new(start);
        assert!(line.update(&progress(0, 0, 1), start).is_some());
        let later = start + Duration::from_secs(2);
        let text = line.update(&progress(3_000, 0, 1), later).unwrap();
        assert_eq!(text, "digits[2J: 3000 samples, 1500 samples/s, 1.5 MB/s");
    }

    #[test]
    fn c12_several_sources_are_counted_and_estimated() {
        let start = Instant::now();
        let mut line = ProgressLine::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            line.update(&progress(0, 0, 4), start).unwrap(),
            "[0/4] digits[2J: 0 samples, 0 samples/s, 0.0 MB/s"
        );
        let text = line.update(&progress(10, 2, 5), at(13_000)).unwrap();
        assert!(text.starts_with("[2/5] ") && text.ends_with(", ETA 5:25:00"), "{text}");
    }

    #[test]
    fn c12_long_names_leave_room_for_the_numbers() {
        let start = Instant::now();
        let named = WriteProgress { source_name: "ä".repeat(25), ..progress(0, 0, 1) };
        let expected = format!("{}…: 0 samples, 0 samples/s, 0.0 MB/s", "ä".repeat(24));
        assert_eq!(ProgressLine::new(start).text(&named, start), expected);
        let fits = WriteProgress { source_name: "ä".repeat(24), ..named };
        assert_eq!(ProgressLine::new(start).text(&fits, start), expected.replace('…', ""));
    }

    #[test]
    fn c12_the_line_is_not_drawn_more_often_than_anybody_can_see() {
        let start = Instant::now();
        let mut line = ProgressLine::new(start);
        let drawn = (0..1_000)
            .filter(|tick| line.update(&progress(*tick, 0, 1), start + Duration::from_millis(*tick)).is_some());
        assert_eq!(drawn.count(), 10);
    }
    #[test]
    fn d03_a_verification_tells_how_much_is_done() {
        let text = verification_text("digits", 50_000_000, 200_000_000, Duration::from_secs(2));
        assert_eq!(text, "digits: 25 % of 200.0 MB, 25.0 MB/s");
        assert_eq!(verification_text("none", 0, 0, Duration::ZERO), "none: 0 % of 0.0 MB, 0.0 MB/s");
    }
}
