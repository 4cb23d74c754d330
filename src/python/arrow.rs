//! Metadata tables across the Arrow C stream interface.
#![expect(unsafe_code, reason = "the interface consists of C structures behind pointers")]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchOptions, make_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arguments::class_name;
use super::calls::{attribute, call_no_args};
use super::enter::enter;
use super::error::to_py_err;
use crate::cancel::Waiter as _;
use crate::dataset::Metadata;
use crate::error::{Error, Result};

/// Name of the capsules in which streams are handed over.
const STREAM: &CStr = c"arrow_array_stream";

/// How the interface spells a type with columns, as the rows of a table have.
const STRUCT_FORMAT: &str = "+s";

/// A table as a stream that shares its buffers.
pub(super) fn export<'py>(py: Python<'py>, table: &Metadata) -> PyResult<Bound<'py, PyCapsule>> {
    let Metadata { schema, batches } = table.clone();
    if let Some(field) = schema.fields().iter().find(|field| field.name().contains('\0')) {
        return Err(to_py_err(&Error::InvalidValue(format!(
            "the column {:?} has a NUL in its name, which tables cannot have; iterate over the samples without one, or \
             write the cache again with another key",
            field.name()
        ))));
    }
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// Everything that `table` exports.
pub(super) fn import(table: &Bound<'_, PyAny>) -> PyResult<Metadata> {
    let py = table.py();
    let found = table.get_type().fully_qualified_name()?;
    let found = &*found.to_string_lossy();
    let export = attribute(table, intern!(py, "__arrow_c_stream__"))?;
    let exported = if export.is_callable() { call_no_args(&export)? } else { export };
    let raw = exported.cast::<PyCapsule>().ok().and_then(|capsule| capsule.pointer_checked(Some(STREAM)).ok());
    let raw = raw.map(NonNull::cast::<FFI_ArrowArrayStream>).ok_or_else(|| no_stream(found, &exported))?;
    // SAFETY: a capsule of this name holds an initialised stream, which belongs to whoever moves it out; what is left
    // behind counts as released.
    let mut stream = Stream(unsafe { FFI_ArrowArrayStream::from_raw(raw.as_ptr()) });
    enter(py, |waiter, _| {
        let schema = Arc::new(py.detach(|| stream.schema(found))?);
        let mut batches = Vec::new();
        // Whoever made the stream may convert or read a lot for each batch, and attaches itself if it has to.
        while let Some(batch) = py.detach(|| stream.next_batch(&schema))? {
            batches.push(batch);
            waiter.check()?;
        }
        Ok(Metadata { schema, batches })
    })
}

/// The exception for an object whose `__arrow_c_stream__` gives something else.
fn no_stream(table: &str, exported: &Bound<'_, PyAny>) -> PyErr {
    let found = class_name(&exported.get_type(), "another object");
    PyTypeError::new_err(format!(
        "metadata must be a table: expected an Arrow stream from {table}.__arrow_c_stream__, found {found}; \
         pass a polars DataFrame or a pyarrow Table"
    ))
}

/// A stream that somebody else made.
struct Stream(FFI_ArrowArrayStream);

impl Stream {
    fn schema(&mut self, found: &str) -> Result<Schema> {
        let mut exported = FFI_ArrowSchema::empty();
        let get_schema = self.0.get_schema.ok_or_else(|| unreadable("the stream was read before; export it again"))?;
        // SAFETY: the stream is alive, and the call fills an empty structure.
        if unsafe { get_schema(&raw mut self.0, &raw mut exported) } != 0 {
            return Err(self.last_error());
        }
        if exported.format() != STRUCT_FORMAT {
            return Err(Error::WrongType(format!(
                "metadata must be a table, found a single column ({found}); pass the whole frame"
            )));
        }
        let fields = exported.children().map(|column| {
            Field::try_from(column).map_err(|_| {
                let name = column.name().unwrap_or_default();
                let format = unknown_format(column);
                Error::InvalidValue(format!(
                    "column {name:?} has a type that Arrow does not know (format {format:?}); \
                     drop or cast it before the update"
                ))
            })
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        Ok(Schema::new_with_metadata(fields, exported.metadata().map_err(unreadable)?))
    }

    fn next_batch(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        let mut exported = FFI_ArrowArray::empty();
        let get_next = self.0.get_next.ok_or_else(|| unreadable("the stream was read before; export it again"))?;
        // SAFETY: the stream is alive, and the call fills an empty structure.
        if unsafe { get_next(&raw mut self.0, &raw mut exported) } != 0 {
            return Err(self.last_error());
        }
        if exported.is_released() {
            return Ok(None);
        }
        let table = DataType::Struct(schema.fields().clone());
        // SAFETY: the structure was just filled by the stream, whose schema gave the type.
        unsafe { forget_absent_buffers(&mut exported, &table) };
        let (offset, rows) = (exported.offset(), exported.len());
        if exported.num_children() != schema.fields().len() {
            return Err(unreadable("a batch has other columns than the stream says"));
        }
        let columns = schema.fields().iter().enumerate().map(|(number, field)| {
            // Each column by itself, so that one that is kept does not keep the others.
            // SAFETY: whoever exported the batch filled this many places with arrays. One that is moved out counts as
            // released there, and all the rest is released with `exported`, at the end of this function.
            let column = unsafe { FFI_ArrowArray::from_raw(*exported.children.add(number)) };
            // SAFETY: the schema of the stream gave the type.
            let data = unsafe { from_ffi_and_data_type(column, field.data_type().clone()) }.map_err(unreadable)?;
            if offset.checked_add(rows).is_none_or(|end| end > data.len()) {
                return Err(unreadable("a column has fewer rows than its batch"));
            }
            Ok(make_array(data.slice(offset, rows)))
        });
        let columns = columns.collect::<Result<_>>()?;
        // Without columns only this says how many rows there are.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map(Some).map_err(unreadable)
    }

    /// Why the last call failed.
    fn last_error(&mut self) -> Error {
        let Some(get_last_error) = self.0.get_last_error else { return unreadable("no reason was given") };
        // SAFETY: the stream is alive, and its last call failed.
        let text = unsafe { get_last_error(&raw mut self.0) };
        if text.is_null() {
            return unreadable("no reason was given");
        }
        // SAFETY: the text ends with a zero and lives until the stream is used again.
        unreadable(unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }
}

/// How the type is spelled that makes a column's type unknown.
fn unknown_format(column: &FFI_ArrowSchema) -> &str {
    let inner = column.children().find(|inner| DataType::try_from(*inner).is_err());
    inner.map_or(column.format(), unknown_format)
}

fn unreadable(reason: impl std::fmt::Display) -> Error {
    Error::InvalidValue(format!("cannot read metadata: {reason}"))
}

/// Makes arrays of type null what they should be: without buffers. Polars gives them one, which is absent, and then
/// nobody takes them.
///
/// # Safety
/// `array` is an exported array of type `data_type`.
unsafe fn forget_absent_buffers(array: &mut FFI_ArrowArray, data_type: &DataType) {
    let child = |number: usize| {
        // SAFETY: whoever exported the array filled this many places with arrays of its own.
        (number < array.num_children()).then(|| unsafe { *array.children.add(number) })
    };
    let inner: Vec<(Option<*mut FFI_ArrowArray>, &DataType)> = match data_type {
        DataType::Null => {
            array.n_buffers = 0;
            return;
        }
        DataType::Struct(fields) => {
            fields.iter().enumerate().map(|(number, field)| (child(number), field.data_type())).collect()
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => {
            vec![(child(0), item.data_type())]
        }
        DataType::Dictionary(_, values) => vec![(Some(array.dictionary), values)],
        _ => return,
    };
    for (inner, data_type) in inner {
        // SAFETY: the pointer is null or leads to an array that nobody else uses, of the type that the schema gives.
        if let Some(inner) = inner.and_then(|inner| unsafe { inner.as_mut() }) {
            // SAFETY: as above.
            unsafe { forget_absent_buffers(inner, data_type) };
        }
    }
}
