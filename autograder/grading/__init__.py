"""Grading: hidden inputs go into a kernel, arrays come out and become verdicts."""
