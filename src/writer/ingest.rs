//! Taking samples over from a source: checks each row against the schema and adds it to a run of rows.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result, excerpt};
use crate::format::columns::ColumnBuffer;
use crate::format::compression::CompressionAlgo;
use crate::format::schema::{Field, Schema};
use crate::value::{Kind, ValueRef};

use super::batch::{Batch, PayloadRef};
use super::profile::{Stage, StageTimes};

/// Keys that the metadata table needs for itself.
const RESERVED_KEYS: [&str; 3] = ["cache_id", "sample_id", "weight"];

/// Collects the samples of one source. A [`Source`](super::source::Source) adds one sample at each pull, either
/// with [`push`](Self::push) or, from the second row on, with the four steps that `push` is made of:
/// [`begin_row`](Self::begin_row), [`push_value`](Self::push_value) for each column of the
/// [`schema`](Self::schema), [`end_row`](Self::end_row).
pub struct Rows {
    source: String,
    schema: Option<Arc<Schema>>,
    compression: CompressionAlgo,
    current: Batch,
    /// A run that was closed because the next sample did not fit; taken before the next pull.
    closed: Option<Batch>,
    /// Whether a sample was begun and not ended.
    within_row: bool,
    spare: Vec<Batch>,
    times: StageTimes,
}

impl Rows {
    pub(crate) fn new(source: &str, compression: CompressionAlgo, times: StageTimes) -> Self {
        Self {
            source: source.to_owned(),
            schema: None,
            compression,
            current: Batch::default(),
            closed: None,
            within_row: false,
            spare: Vec::new(),
            times,
        }
    }

    /// Number of the sample that is being added, from 0.
    #[must_use]
    pub fn row(&self) -> u64 {
        self.current.first_row + self.current.len() as u64
    }

    /// The metadata columns, once row 0 has said what they are.
    #[must_use]
    #[inline]
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.schema.as_ref()
    }

    /// Adds a whole sample; row 0 decides about the schema.
    ///
    /// # Errors
    /// [`Error::WrongType`] or [`Error::InvalidValue`] that names source, row, key, expected and found kind.
    pub fn push(&mut self, payload: PayloadRef<'_>, metadata: &[(&str, ValueRef<'_>)]) -> Result<()> {
        let started = self.stage_started();
        let schema = match &self.schema {
            Some(schema) => Arc::clone(schema),
            None => self.infer_schema(metadata)?,
        };
        self.begin_row(payload)?;
        for (key, value) in metadata {
            let column = schema.position(key).ok_or_else(|| self.unexpected_key(key, value.kind().as_str()))?;
            self.push_value(column, *value)?;
        }
        self.end_row()?;
        self.stage_ended(Stage::Extract, started, 0);
        Ok(())
    }

    /// Adds the payload of the next sample.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when it is too large for the compression.
    pub fn begin_row(&mut self, payload: PayloadRef<'_>) -> Result<()> {
        let length = payload.len();
        self.compression.check_payload_len(length).map_err(|error| self.refuse(error))?;
        if self.current.is_too_full_for(length) {
            debug_assert!(self.closed.is_none(), "the pipeline takes closed runs before each pull");
            self.closed = Some(self.take_current());
        }
        self.current.push(payload).map_err(|error| self.refuse(error))?;
        self.within_row = true;
        Ok(())
    }

    /// Adds the value of one column, by its place in the schema.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the column is of another kind.
    #[inline]
    pub fn push_value(&mut self, column: usize, value: ValueRef<'_>) -> Result<()> {
        match self.current.columns.get_mut(column) {
            Some(buffer) if buffer.kind() == value.kind() => buffer.push(value).map_err(|error| self.refuse(error)),
            _ => Err(self.wrong_kind(column, value.kind().as_str())),
        }
    }

    /// Checks that the sample has every column exactly once.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] that names the key that is missing or occurs twice.
    #[inline]
    pub fn end_row(&mut self) -> Result<()> {
        let started = self.stage_started();
        let rows = self.current.len();
        if let Some(column) = self.current.columns.iter().position(|column| column.len() != rows) {
            return Err(self.miscounted_key(column));
        }
        self.within_row = false;
        self.stage_ended(Stage::MetadataValidate, started, 0);
        Ok(())
    }

    /// The error that `detail` is wrong with the sample that is being added.
    #[must_use]
    pub fn refuse(&self, detail: impl Display) -> Error {
        // A sample that was begun already counts as a row.
        let row = self.row() - u64::from(self.within_row);
        Error::InvalidValue(format!("source {:?}, row {row}: {detail}", self.source))
    }

    /// The error that `key` is no column of the schema.
    #[must_use]
    pub fn unexpected_key(&self, key: &str, found: &str) -> Error {
        self.refuse(format_args!(
            "metadata key {:?}: expected no such key, found {found}; give every row the keys of row 0",
            excerpt(key)
        ))
    }

    /// The error that a value of the kind or type `found` was given for a column.
    #[must_use]
    pub fn wrong_kind(&self, column: usize, found: &str) -> Error {
        match self.schema.as_ref().and_then(|schema| schema.fields().get(column)) {
            Some(Field { name, kind }) => {
                let name = excerpt(name);
                // What is said of other types ends with advice of its own.
                let advice = if Kind::from_name(found).is_some() {
                    format!("; convert all values of this key to one kind, such as {kind}")
                } else {
                    String::new()
                };
                self.refuse(format_args!("metadata key {name:?}: expected {kind} as in row 0, found {found}{advice}"))
            }
            None => self.refuse(format_args!("metadata column {column}: expected no such column, found {found}")),
        }
    }

    /// The clock when the stages are being timed.
    #[must_use]
    #[inline]
    pub fn stage_started(&self) -> Option<Instant> {
        self.times.started()
    }

    /// Counts one call of a stage that began at `started`.
    #[inline]
    pub fn stage_ended(&mut self, stage: Stage, started: Option<Instant>, bytes: u64) {
        self.times.ended(stage, started, bytes);
    }

    pub(crate) fn times(&mut self) -> &mut StageTimes {
        &mut self.times
    }

    /// The run that had to end before the sample added last.
    pub(crate) fn take_closed(&mut self) -> Option<Batch> {
        self.closed.take()
    }

    /// The run being collected, if it is full.
    pub(crate) fn take_full(&mut self) -> Option<Batch> {
        self.current.is_full().then(|| self.take_current())
    }

    /// The run being collected, unless it is empty.
    pub(crate) fn take_rest(&mut self) -> Option<Batch> {
        (self.current.len() > 0).then(|| self.take_current())
    }

    /// Bytes of the run being collected.
    pub(crate) fn byte_len(&self) -> u64 {
        self.current.byte_len()
    }

    /// Gives memory back for another run.
    pub(crate) fn give_spare(&mut self, batch: Batch) {
        if self.spare.len() < 4 {
            self.spare.push(batch);
        }
    }

    fn take_current(&mut self) -> Batch {
        let mut next = self.spare.pop().unwrap_or_default();
        next.first_row = self.row();
        if let Some(schema) = &self.schema {
            next.fit(schema);
        }
        std::mem::replace(&mut self.current, next)
    }

    fn infer_schema(&mut self, metadata: &[(&str, ValueRef<'_>)]) -> Result<Arc<Schema>> {
        if let Some(key) = RESERVED_KEYS.iter().find(|reserved| metadata.iter().any(|(key, _)| key == *reserved)) {
            return Err(
                self.refuse(format_args!("metadata key {key:?} is reserved for the metadata table; rename the key"))
            );
        }
        if let Some((key, _)) = metadata.iter().find(|(key, _)| key.contains('\0')) {
            return Err(self.refuse(format_args!(
                "metadata key {:?} holds a NUL, which no column of the metadata table can have in its name; rename the key",
                excerpt(key)
            )));
        }
        let fields = metadata.iter().map(|(key, value)| Field { name: (*key).to_owned(), kind: value.kind() });
        let schema = Arc::new(Schema::new(fields.collect()).map_err(|error| self.refuse(error))?);
        self.current.fit(&schema);
        self.schema = Some(Arc::clone(&schema));
        Ok(schema)
    }

    fn miscounted_key(&self, column: usize) -> Error {
        let rows = self.current.len();
        let found = self.current.columns.get(column).map_or(0, ColumnBuffer::len);
        match self.schema.as_ref().and_then(|schema| schema.fields().get(column)) {
            Some(Field { name, kind }) if found < rows => self.refuse(format_args!(
                "metadata key {:?}: expected {kind}, found no such key; give every row the keys of row 0",
                excerpt(name)
            )),
            Some(Field { name, kind }) => {
                self.refuse(format_args!("metadata key {:?}: expected one {kind}, found the key twice", excerpt(name)))
            }
            None => self.refuse("metadata does not fit the schema"),
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rows").field("source", &self.source).field("row", &self.row()).finish_non_exhaustive()
    }
}
