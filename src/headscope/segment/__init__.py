"""Segmentation: cut a text where its meaning turns."""
