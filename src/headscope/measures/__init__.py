"""One finding per file: its quantities with their definitions, and how they add up over texts.

Each file ends with its `MEASURE` (`base.Measure`); `registry` lists them. Sums may have any axes in
front: a bootstrap replicate is one more.
"""
