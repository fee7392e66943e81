"""A study: every measure over a corpus, streamed, resumable, with chance levels and intervals.

`run.py` is where to start reading. Windows of documents (`units.py`) go through the model
(`observe.py`), measures add up (`sums.py`) with bootstrap replicates (`bootstrap.py`), and totals
become tables (`results.py`), verdicts (`findings.py`, `verdicts.py`) and head cards (`cards.py`).
"""
