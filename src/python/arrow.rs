//! Metadata tables across the Arrow C stream interface.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{ArrowError, Field};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatchReader;
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};

use super::enter::enter;
use crate::cancel::Waiter as _;
use crate::dataset::Metadata;
use crate::error::Error;

/// A table as a stream that shares its buffers.
pub(super) fn export<'py>(
    py: Python<'py>,
    table: &Metadata,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let Metadata { schema, batches } = table;
    let field = Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
    let arrays = batches.iter().map(|batch| Ok(Arc::new(StructArray::from(batch.clone())) as ArrayRef));
    let reader = ArrayIterator::new(arrays.collect::<Vec<Result<ArrayRef, ArrowError>>>(), Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
}

/// Everything that `table` exports.
pub(super) fn import(table: &Bound<'_, PyAny>) -> PyResult<Metadata> {
    let py = table.py();
    let mut reader = table.extract::<PyRecordBatchReader>()?.into_reader()?;
    let schema = reader.schema();
    enter(py, |waiter, _| {
        let mut batches = Vec::new();
        // Whoever made the stream may convert or read a lot for each batch, and attaches itself if it has to.
        while let Some(batch) = py.detach(|| reader.next()) {
            batches.push(batch.map_err(|error| Error::InvalidValue(format!("cannot read metadata: {error}")))?);
            waiter.check()?;
        }
        Ok(Metadata { schema, batches })
    })
}
