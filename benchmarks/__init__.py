"""Claims about time, and what asking costs. Not part of the default run: `tox -e bench`."""
