"""Remember what was graded, so that an interrupted run goes on and an unchanged one is short."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import attention_course
import autograder
from autograder.classrun.course import Course
from autograder.exercises import of_chapter
from autograder.grading.status import Status

FOLDER = ".autograder-cache"
# Code that decides on marks, beside the exercises of the assignment.
GRADING_CODE = ("*.py", "grading/*.py", "intake/*.py", "kernels/*.py", "exercises/__init__.py")


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _name(value: object) -> str:
    """Name what JSON cannot hold; a function's `repr` would differ from run to run."""
    return getattr(value, "__qualname__", "") or repr(value)


def _code(assignment: str) -> Iterator[bytes]:
    """List the code that an assignment's marks depend on."""
    package = Path(autograder.__file__).parent
    paths = [path for pattern in GRADING_CODE for path in package.glob(pattern)]
    number = assignment.partition("_")[0]
    paths += package.glob(f"exercises/*ch{number}_*.py")
    paths += Path(attention_course.__file__).parent.rglob("*.py")
    for path in sorted(paths):
        yield str(path).encode()
        yield path.read_bytes()


def assignment_key(course: Course, cells: bytes, secret: bytes) -> str:
    """Hash all that marks depend on but the submission; `cells`: what the gradebook knows."""
    versions = sorted(f"{d.name}=={d.version}" for d in importlib.metadata.distributions())
    settings = {name: dict(part) for name, part in course.config.items()}
    settings["CourseDirectory"].pop("root", None)  # a course may move
    config = json.dumps(settings, sort_keys=True, default=_name)
    parts = [sys.version, *versions, config]
    files = [part for name, c in sorted(course.source_files.items()) for part in (name.encode(), c)]
    code = _code(course.name) if of_chapter(course.name) else ()
    return _digest([*(part.encode() for part in parts), *files, cells, secret, *code])


def submission_key(folder: Path, shared: str) -> str:
    """Hash a submission's files; links and what cannot be read count with their names."""

    def parts() -> Iterator[bytes]:
        yield shared.encode()
        for current, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted([*names, *folders]):
                path = Path(current, name)
                yield os.fsencode(path.relative_to(folder))
                if path.is_symlink():
                    yield os.fsencode(os.readlink(path))
                elif path.is_file():
                    try:
                        yield path.read_bytes()
                    except OSError as error:
                        yield repr(error).encode()

    return _digest(parts())


@dataclass
class Record:
    """Which submissions of an assignment were graded from what, and with which status."""

    path: Path
    entries: dict[str, dict] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path, assignment: str) -> Record:
        """Read the record; a missing or damaged one is empty, which costs a regrade at most."""
        path = root / FOLDER / f"{assignment}.json"
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            entries = {}
        return cls(path, entries if isinstance(entries, dict) else {})

    def status(self, student: str, key: str) -> Status | None:
        """Return the status that a student's submission got, if it was graded from `key`."""
        entry = self.entries.get(student)
        if not isinstance(entry, dict) or entry.get("key") != key:
            return None
        return Status(entry["word"], tuple(entry["notes"]))

    def keep(self, student: str, key: str, status: Status) -> None:
        """Write down that a submission is graded and merged."""
        self.entries[student] = {"key": key, "word": status.word, "notes": list(status.notes)}
        self._write()

    def forget(self, student: str) -> None:
        """Have a submission graded again next time."""
        if self.entries.pop(student, None) is not None:
            self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.entries, indent=0), encoding="utf-8")
        new.replace(self.path)
