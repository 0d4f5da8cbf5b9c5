"""Eight plays of Shakespeare as one text."""

from __future__ import annotations

import gzip
from importlib.resources import files

FILE_NAME = "shakespeare.txt.gz"


def load_shakespeare() -> str:
    """Return the plays, one after the other: about a million characters, all of them ASCII.

    A line with a speaker's name comes before each speech; two plays are a blank line apart.
    """
    return gzip.decompress((files(__package__) / FILE_NAME).read_bytes()).decode("ascii")
