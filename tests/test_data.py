"""The data that come with the course are those that `DATA.md` describes."""

import gzip
import hashlib
import re
import tarfile
from importlib.resources import files

import pytest
from scripts import load_script

from attention_course.data.shakespeare import load_shakespeare
from autograder.masters import ROOT

FOLDER = files("attention_course.data")
SOURCES = (FOLDER / "DATA.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", [path.name for path in FOLDER.iterdir() if path.name.endswith(".gz")]
)
def test_every_file_has_the_hash_that_is_stated(name):
    (row,) = (line for line in SOURCES.splitlines() if line.startswith(f"| `{name}`"))
    stated = re.findall(r"`([0-9a-f]{64})`", row)[-1]
    data = (FOLDER / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == stated
    assert len(data) < 1_500_000


def test_every_data_file_and_every_package_of_weights_is_named():
    kept = {path.name for path in FOLDER.iterdir() if path.is_file()}
    shipped = {name for name in kept if not name.endswith(".py")} - {"DATA.md"}
    assert shipped, "the folder of the data is empty"
    assert all(f"`{name}`" in SOURCES for name in shipped)
    lines = (ROOT / "requirements-models.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split()[0].split("==") for line in lines if line and not line.startswith("#")]
    assert pins and all(f"`{name}` {version}" in SOURCES for name, version in pins)


def test_the_text_is_plain_and_has_the_hash_that_is_stated():
    text = load_shakespeare()
    assert hashlib.sha256(text.encode()).hexdigest() in SOURCES
    assert text.isascii() and "\r" not in text and "\n\n\n" not in text and " \n" not in text
    assert "utenberg" not in text
    assert text.startswith("ACT I.") and "To be, or not to be" in text


def test_the_script_says_which_archive_it_reads(tmp_path):
    module = load_script("data/extract_shakespeare.py")
    assert module.ARCHIVE_SHA256 in SOURCES
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz"):
        pass
    with pytest.raises(ValueError, match="is expected"):
        module.extract(other)


def test_a_play_begins_with_its_first_act():
    tidy = load_script("data/extract_shakespeare.py").tidy
    assert tidy("TITLE\n\nPERSONS\n\nACT I.  \n\n\n\nA line. \n") == "ACT I.\n\nA line.\n"
    with pytest.raises(ValueError, match="no line 'ACT I'"):
        tidy("no act here")


def test_compressing_again_gives_the_same_bytes():
    text = load_shakespeare().encode()
    stored = (FOLDER / "shakespeare.txt.gz").read_bytes()
    assert gzip.decompress(gzip.compress(text, compresslevel=9, mtime=0)) == text
    assert stored[4:8] == b"\0\0\0\0", "a date in the file would change its hash"
