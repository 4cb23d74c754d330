//! Progress of a write as plain counters. Drawing them is somebody else's work.

/// What a write has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteProgress {
    /// Name of the source being pulled.
    pub source_name: String,
    /// Samples of that source committed to its shards.
    pub samples: u64,
    /// Payload bytes of those samples, before compression.
    pub payload_bytes: u64,
    /// Sources that are finished, well or not.
    pub sources_done: usize,
    /// All sources of the call.
    pub sources_total: usize,
}

/// Receives progress on the thread that called the write; called often, so it decides itself how often to draw.
pub trait ProgressSink {
    /// The counters as they are now.
    fn update(&mut self, progress: &WriteProgress);

    /// The write is over, well or not: leave the terminal tidy.
    fn finish(&mut self);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn update(&mut self, _progress: &WriteProgress) {}

    fn finish(&mut self) {}
}
