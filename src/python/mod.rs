//! The Python extension module `dataset_rt._native`: what the package `dataset_rt` is built on.

mod arguments;
mod arrow;
mod buffer;
mod calls;
mod config;
mod dataset;
mod enter;
mod error;
mod iterator;
mod metadata;
mod payload;
mod progress;
mod runtime;
mod sample;
mod scalar;
mod source;
mod staging;
mod summary;
mod text;
mod turns;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::python::config::check_reader_config;
    #[pymodule_export]
    use crate::python::dataset::Dataset;
    #[pymodule_export]
    use crate::python::iterator::SampleIterator;
    #[pymodule_export]
    use crate::python::runtime::Runtime;
    #[pymodule_export]
    use crate::python::staging::{find_staging, sweep_staging};
    #[pymodule_export]
    use crate::python::summary::CacheSummary;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
