"""The commands behind `python -m dataset_rt`: one module for each, and what they share."""
