"""Explorers: interactive figures that compute and draw in the browser."""

from attention_course.explorers.mask_painter import mask_painter

__all__ = ["mask_painter"]
