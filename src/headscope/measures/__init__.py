"""One finding per file: what it measures, its formula, and how it adds up over texts.

A measure is a module with two pure functions. `update` turns what was seen of some texts into named
arrays (texts, layers, heads), which add up over texts; `compute` turns such sums into quantities,
each beside its chance level. Sums may have any axes in front: a bootstrap replicate is one more.
"""
