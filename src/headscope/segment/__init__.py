"""Segmentation: cut a text where its meaning turns.

`topics.py` cuts between sentences, `sentences.py` between words; `splitter.py` hands the result to
libraries for retrieval; `scores.py` says how good a segmentation is.
"""
