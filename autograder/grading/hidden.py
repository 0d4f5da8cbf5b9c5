"""The seed of a submission's hidden cases: fresh for every submission, the same for a regrade."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

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


def submission_seed(secret: bytes, student: str, assignment: str, notebook: NotebookNode) -> int:
    """Derive the seed from secret, student, assignment and the submitted code.

    A changed resubmission gets other cases, so what an earlier run printed about them is no use.
    """
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for part in (student, assignment, *(cell.source for cell in notebook.cells)):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return int.from_bytes(digest.digest()[:8], "big") | 1  # never the public seed
