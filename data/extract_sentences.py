"""Make the text that chapter 09's blank filler learns from, out of Debian's `wordnet-base`.

    apt-get download wordnet-base=1:3.0-37
    python data/extract_sentences.py wordnet-base_*.deb build/sentences.txt

Definitions and examples of all nouns, verbs, adjectives and adverbs, a line each, but for those
that come with the course in `glosses.txt.gz`: with them the filler is tested. Nothing of the result
is part of the course; `experiments/bert_filler.py` states its hash.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from extract_glosses import AVOIDED, TARGET, lines_of

FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
SHORTEST, LONGEST = 4, 24  # words
EXAMPLE = re.compile(r'"([^"]+)"')


def parts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the parts of each gloss: definitions first, then examples, without quotation marks."""
    for line in lines:
        if line[0].isdigit():
            gloss = line.partition("| ")[2]
            yield from EXAMPLE.sub("", gloss).split(";")
            yield from EXAMPLE.findall(gloss)


def sentences(lines: Iterable[str], kept: set[str]) -> list[str]:
    """Take what is neither too short, too long, coarse nor in `kept`, each once, sorted."""
    found = {" ".join(part.split()).rstrip(" ,:") for part in parts(lines)} - kept
    return sorted(
        text
        for text in found
        if SHORTEST <= len(text.split()) <= LONGEST and '"' not in text and not AVOIDED.search(text)
    )


def main() -> int:
    """Write the text and print its hash."""
    if len(sys.argv) != 3:
        print("usage: python data/extract_sentences.py wordnet-base_*.deb TEXT", file=sys.stderr)
        return 2
    package, target = map(Path, sys.argv[1:])
    shipped = gzip.decompress(TARGET.read_bytes()).decode("ascii").splitlines()
    chosen = sentences(lines_of(package, *FILES), {line.split("\t")[1] for line in shipped})
    text = "".join(f"{sentence}\n" for sentence in chosen).encode("ascii")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text)
    print(f"{target.name}: {len(chosen):,} sentences, {len(text):,} bytes")
    print(f"SHA-256: {hashlib.sha256(text).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
