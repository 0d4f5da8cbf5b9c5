"""The seed of a submission's hidden cases: fresh for every submission, the same for a regrade."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nbformat.notebooknode import NotebookNode

SECRET_FILE = ".autograder-secret"


def course_secret(root: Path) -> bytes:
    """Read the course's secret, making it on first use (readable by its owner only).

    Without it, nobody can compute which hidden cases a submission will get. Keep it with the
    gradebook: with another secret a regrade draws other cases.
    """
    path = root / SECRET_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    return path.read_bytes()


def submission_seed(
    secret: bytes,
    student: str,
    assignment: str,
    notebook: NotebookNode,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> int:
    """Derive the seed from secret, student, assignment, the submitted code and files beside it.

    A changed resubmission gets other cases, so what an earlier run printed about them is no use.
    """
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    texts = (student, assignment, *(cell.source for cell in notebook.cells))
    for part in [text.encode("utf-8", "surrogatepass") for text in texts]:
        digest.update(part + b"\0")
    for name in sorted(files):
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(files[name]).digest())
    return int.from_bytes(digest.digest()[:8], "big") | 1  # never the public seed
