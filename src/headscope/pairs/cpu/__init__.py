"""The pair statistics on a CPU: torch multiplies a panel of C, numba goes over it."""
