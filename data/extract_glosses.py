"""Make `attention_course/data/glosses.txt.gz` from Debian's package `wordnet-base`.

    apt-get download wordnet-base=1:3.0-37
    python data/extract_glosses.py wordnet-base_*.deb

The package is only read, never installed. The result is the same on every machine, byte for byte:
`DATA.md` beside it states its hash.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

PACKAGE_SHA256 = "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752"
NOUNS = "data.noun"
TARGET = Path(__file__).resolve().parent.parent / "attention_course/data/glosses.txt.gz"
# WordNet's lexicographers sorted its nouns into files; ten of them, by number.
CLASSES = {
    "04": "act",
    "05": "animal",
    "06": "artifact",
    "08": "body",
    "13": "food",
    "15": "location",
    "18": "person",
    "20": "plant",
    "26": "state",
    "27": "substance",
}
EACH = 600  # glosses of a class
SHORTEST, LONGEST = 4, 20  # words
# Glosses with one of these beginnings of words are left out: not for a classroom.
AVOIDED = re.compile(
    r"\b(sex|homosex|slur|offensive|disparag|derogat|prostitut|brothel|genital|penis|vagina|coit"
    r"|rape\b|rapist|negro|excre|feces|suicid)",
    re.IGNORECASE,
)


def member(package: bytes, name: str) -> bytes:
    """Read one member of an ar archive, which is what a Debian package is."""
    place = len(b"!<arch>\n")
    while place < len(package):
        header = package[place : place + 60]
        size, place = int(header[48:58]), place + 60
        if header[:16].decode("ascii").strip().startswith(name):
            return package[place : place + size]
        place += size + size % 2
    raise ValueError(f"the package has no member {name}")


def lines_of(package: Path, *names: str) -> list[str]:
    """Read WordNet's files of these names, line by line.

    Raises ValueError if it is another package.
    """
    content = package.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != PACKAGE_SHA256:
        raise ValueError(f"{package} has the SHA-256 {found}; {PACKAGE_SHA256} is expected.")
    with tarfile.open(fileobj=io.BytesIO(member(content, "data.tar"))) as files:
        read = (files.extractfile(f"./usr/share/wordnet/{name}").read() for name in names)
        return [line for text in read for line in text.decode("ascii").splitlines()]


def glosses(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (class, definition) of each noun of the ten classes; examples are cut off."""
    for line in lines:
        number = line.split(" ", 2)[1]
        if line[0].isdigit() and number in CLASSES:
            definition = line.partition("| ")[2].split(";")[0].strip()
            is_plain = '"' not in definition and not AVOIDED.search(definition)
            if is_plain and SHORTEST <= len(definition.split()) <= LONGEST:
                yield CLASSES[number], definition


def choose(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Take as many of each class, none twice, in an order that depends on the texts alone."""
    kinds: dict[str, set[str]] = {}
    for kind, gloss in pairs:
        kinds.setdefault(gloss, set()).add(kind)
    single = [(min(found), gloss) for gloss, found in kinds.items() if len(found) == 1]
    shuffled = sorted(single, key=lambda pair: hashlib.sha256(pair[1].encode()).digest())
    chosen = []
    left = dict.fromkeys(CLASSES.values(), EACH)
    for kind, gloss in shuffled:
        if left[kind]:
            left[kind] -= 1
            chosen.append((kind, gloss))
    return chosen


def main() -> int:
    """Write the file and print its hash."""
    if len(sys.argv) != 2:
        print("usage: python data/extract_glosses.py wordnet-base_*.deb", file=sys.stderr)
        return 2
    chosen = choose(list(glosses(lines_of(Path(sys.argv[1]), NOUNS))))
    text = "".join(f"{kind}\t{gloss}\n" for kind, gloss in chosen).encode("ascii")
    # An empty name and no date: the bytes depend on the text alone.
    TARGET.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, {len(chosen):,} glosses")
    print(f"SHA-256: {hashlib.sha256(TARGET.read_bytes()).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
