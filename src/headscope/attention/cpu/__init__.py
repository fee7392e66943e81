"""The attention statistics on a CPU: torch multiplies rows of scores, numba adds them up."""
