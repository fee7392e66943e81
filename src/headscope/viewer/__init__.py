"""One viewer, three shells: a local server, a notebook and a self-contained file."""
