"""One finding per file: what it measures, its formula, and how it adds up over texts."""
