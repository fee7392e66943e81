"""Every model type of the installed transformers, built tiny and random, and what works with it."""
