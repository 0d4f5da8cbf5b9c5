"""Kernels for grading: warm, and locked up in bubblewrap."""
