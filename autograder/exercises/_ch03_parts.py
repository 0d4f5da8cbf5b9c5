"""What the exercises of chapter 03 share: right angles and tables to build wrong answers on.

Columns 2i and 2i + 1 belong to pair i, and pair i turns by base^(-2i/d) for each position.
"""

from __future__ import annotations

import numpy as np


def frequencies(width, base):
    """Angle per position of each pair, shape (ceil(width / 2),)."""
    return base ** (-np.arange(0, width, 2) / width)


def angles_of(positions, width, base):
    """Angle of each position and pair, shape (*positions.shape, ceil(width / 2))."""
    return np.asarray(positions)[..., None] * frequencies(width, base)


def interleaved(even, odd, width):
    """Put `even` into columns 0, 2, ... and as much of `odd` as fits into columns 1, 3, ..."""
    table = np.empty((*even.shape[:-1], width))
    table[..., 0::2] = even
    table[..., 1::2] = odd[..., : width // 2]
    return table


def turned(x, angles):
    """Turn each pair (x[2i], x[2i + 1]) by its angle, against the clock."""
    first, second = x[..., 0::2], x[..., 1::2]
    cos, sin = np.cos(angles), np.sin(angles)
    return interleaved(first * cos - second * sin, first * sin + second * cos, x.shape[-1])


def rotated(x, positions, base):
    """Rotary embedding of x (..., length, d) by positions that broadcast to x.shape[:-1]."""
    return turned(x, angles_of(positions, x.shape[-1], base))
