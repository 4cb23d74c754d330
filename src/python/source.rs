//! Sources in Python: pulls samples out of any iterable while attached to the interpreter.

use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString, PyTuple};

use super::arguments::class_name;
use super::calls;
use super::enter::Parked;
use super::metadata::{Row, Template};
use super::payload::Payload;
use super::scalar::Numpy;
use crate::error::{Error, Result, excerpt};
use crate::writer::{Rows, Source, Stage};

/// A Python object with a `name` that yields samples.
pub(super) struct PySource<'py, 'parked> {
    object: Bound<'py, PyAny>,
    name: std::result::Result<String, String>,
    parked: &'parked Parked,
    iterator: Option<Bound<'py, PyIterator>>,
    template: Option<Template>,
    numpy: Numpy,
}

impl<'py, 'parked> PySource<'py, 'parked> {
    /// Reads the name, which may be a property that runs code; nothing else of the source is touched yet.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the name raised something that is no `Exception`.
    pub(super) fn new(object: Bound<'py, PyAny>, parked: &'parked Parked) -> Result<Self> {
        let name = read_name(&object, parked)?;
        Ok(Self { object, name, parked, iterator: None, template: None, numpy: Numpy::default() })
    }

    fn py(&self) -> Python<'py> {
        self.object.py()
    }

    /// The name for messages outside of rows.
    fn label(&self) -> String {
        self.name.as_ref().map_or_else(|_| "source".to_owned(), |name| format!("source {:?}", excerpt(name)))
    }

    /// The error for an exception while a row is made or taken over.
    fn row_error(&self, rows: &Rows, doing: &str, exception: PyErr) -> Error {
        match self.parked.describe(self.py(), exception) {
            Ok(text) => rows.refuse(format_args!("{doing} raised {text}")),
            Err(interrupted) => interrupted,
        }
    }

    /// Checks one yielded object and appends it.
    fn take(&mut self, item: &Bound<'py, PyAny>, rows: &mut Rows) -> Result<()> {
        let started = rows.stage_started();
        let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let Some(pair) = pair else { return Err(rows.refuse(not_a_sample(item))) };
        let (data, metadata) = pair
            .get_item(0)
            .and_then(|data| Ok((data, pair.get_item(1)?)))
            .map_err(|exception| self.row_error(rows, "reading the sample", exception))?;
        let payload = Payload::new(data, &mut self.numpy)
            .map_err(|exception| self.row_error(rows, "reading data", exception))?
            .map_err(|fault| rows.refuse(fault))?;

        if let Some(template) = &mut self.template {
            let quick = payload.with(|bytes| template.push(&metadata, rows, |rows| rows.begin_row(bytes)));
            if let Some(pushed) = quick.map_err(|exception| self.row_error(rows, "reading data", exception))? {
                rows.stage_ended(Stage::Extract, started, 0);
                return pushed;
            }
        }
        let row = Row::new(&metadata, &mut self.numpy)
            .map_err(|exception| self.row_error(rows, "reading metadata", exception))?
            .map_err(|fault| rows.refuse(fault))?;
        rows.stage_ended(Stage::Extract, started, 0);
        payload
            .with(|bytes| row.push(bytes, rows))
            .map_err(|exception| self.row_error(rows, "reading data", exception))??;
        if self.template.is_none()
            && let Some(schema) = rows.schema()
        {
            self.template = Template::new(&metadata, schema);
        }
        Ok(())
    }
}

impl Source for PySource<'_, '_> {
    fn name(&self) -> std::result::Result<String, String> {
        self.name.clone()
    }

    fn fingerprint(&mut self) -> Result<Option<String>> {
        let py = self.py();
        let value = match calls::attribute(&self.object, intern!(py, "fingerprint")) {
            Ok(value) if value.is_none() => return Ok(None),
            Ok(value) => value,
            Err(exception) if is_missing(&self.object, intern!(py, "fingerprint"), &exception) => return Ok(None),
            Err(exception) => {
                let text = self.parked.describe(py, exception)?;
                return Err(Error::InvalidValue(format!("{}: reading its fingerprint raised {text}", self.label())));
            }
        };
        match value.cast::<PyString>().ok().and_then(|text| text.to_str().ok()) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(Error::WrongType(format!(
                "{}: fingerprint must be a str of valid Unicode, found {}; leave it out or use a digest in hex",
                self.label(),
                type_name(&value)
            ))),
        }
    }

    fn start(&mut self) -> Result<()> {
        match calls::iter(&self.object) {
            Ok(iterator) => {
                self.iterator = Some(iterator);
                Ok(())
            }
            Err(exception) => {
                let text = self.parked.describe(self.py(), exception)?;
                Err(Error::InvalidValue(format!("{}: starting its iteration raised {text}", self.label())))
            }
        }
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        let started = rows.stage_started();
        let next = self.iterator.as_ref().and_then(calls::next);
        rows.stage_ended(Stage::SourceNext, started, 0);
        match next {
            None => Ok(false),
            Some(Ok(item)) => self.take(&item, rows).map(|()| true),
            Some(Err(exception)) => Err(self.row_error(rows, "the source", exception)),
        }
    }

    fn stop(&mut self) {
        if let Some(iterator) = self.iterator.take() {
            calls::release(iterator);
        }
        self.template = None;
    }
}

/// The name of a source, or the reason why it has none.
fn read_name(object: &Bound<'_, PyAny>, parked: &Parked) -> Result<std::result::Result<String, String>> {
    let py = object.py();
    let name = match calls::attribute(object, intern!(py, "name")) {
        Ok(name) => name,
        Err(exception) if is_missing(object, intern!(py, "name"), &exception) => {
            let found = type_name(object);
            return Ok(Err(format!("source must have a name and be iterable, found {found} without a name")));
        }
        Err(exception) => return Ok(Err(format!("reading the name raised {}", parked.describe(py, exception)?))),
    };
    let Ok(text) = name.cast::<PyString>() else {
        return Ok(Err(format!("source name must be a str, found {}", type_name(&name))));
    };
    match text.to_str() {
        Ok(text) => Ok(Ok(text.to_owned())),
        Err(_) => Ok(Err("source name is no valid Unicode, it has a lone surrogate; rename the source".to_owned())),
    }
}

/// Whether an attribute could not be read because there is none. One that the class defines is there: it is its code that
/// lacks something.
fn is_missing(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, exception: &PyErr) -> bool {
    exception.is_instance_of::<PyAttributeError>(object.py()) && !object.get_type().hasattr(name).unwrap_or(false)
}

fn not_a_sample(item: &Bound<'_, PyAny>) -> String {
    let found = match item.cast::<PyTuple>() {
        Ok(tuple) => format!("a tuple of {}", tuple.len()),
        Err(_) => type_name(item),
    };
    format!("expected a CacheInput or a tuple (data, metadata), found {found}")
}

/// Name of the class of an object, for messages.
fn type_name(object: &Bound<'_, PyAny>) -> String {
    class_name(&object.get_type(), "an object")
}
