"""Definitions of nouns from WordNet 3.0, each with the class of the thing that it defines.

WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. Licence and notice:
`DATA.md` and `wordnet-licence.md` beside this file.
"""

from __future__ import annotations

import gzip
from importlib.resources import files

FILE_NAME = "glosses.txt.gz"
CLASSES = (
    *("act", "animal", "artifact", "body", "food"),
    *("location", "person", "plant", "state", "substance"),
)


def load_glosses() -> list[tuple[str, str]]:
    """Return (definition, class) of 6,000 nouns, 600 of each class, in no order of meaning.

    Classes of which WordNet has many come more often at the beginning: a slice is not balanced.
    """
    text = gzip.decompress((files(__package__) / FILE_NAME).read_bytes()).decode("ascii")
    pairs = (line.split("\t") for line in text.splitlines())
    return [(gloss, kind) for kind, gloss in pairs]
