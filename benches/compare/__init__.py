"""Measures the library against its published version, its peers and its floors: `make compare`."""
