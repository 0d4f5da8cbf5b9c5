"""Small trained models in two files: `NAME.safetensors`, and `NAME.json`, which says how it came.

Weights, sizes and vocabulary lie in the safetensors file, whose SHA-256 stands in the JSON file
together with seed, steps, losses, date, machine and versions. A safetensors file holds no code. The
hash finds files that were damaged, swapped or only half copied; it is no signature.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attention_course.data.runs import origin
from attention_course.pretrained import sha256

if TYPE_CHECKING:
    import torch

CHECKPOINTS = Path(__file__).parent / "data" / "checkpoints"


class CheckpointError(Exception):
    """A checkpoint's files are missing, damaged or do not belong together."""


@dataclass(frozen=True)
class Checkpoint:
    """A model that was read.

    `weights` maps parameter names to tensors, floating ones as float32. `about` is what its maker
    stored with them (sizes, vocabulary and the like). `made` is the JSON file: how it was made.
    """

    weights: dict[str, torch.Tensor]
    about: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


def save(
    path: Path,
    weights: Mapping[str, torch.Tensor],
    *,
    about: Mapping[str, Any],
    command: str,
    seed: int,
    steps: int,
    seconds: float,
    losses: Sequence[Mapping[str, float]],
    half: bool = True,
) -> str:
    """Write a checkpoint and give its SHA-256. The same weights give the same hash.

    Args:
        path: where the weights go; ends in ".safetensors". The JSON file is written beside it.
        weights: parameter name → tensor, for example a module's `state_dict()`.
        about: what is needed to build the model again; anything that JSON can hold.
        command: what was run to make it.
        seed: where its random numbers start.
        steps: updates of the weights.
        seconds: computing time of its training.
        losses: its log, one mapping for each entry, such as `{"step": 100, "loss": 2.5}`.
        half: whether floating tensors are stored as float16. Measure the model *after* that.

    Raises:
        ValueError: the path has another ending, or a weight is not finite in its stored form.
    """
    import torch
    from safetensors.torch import save as to_bytes

    if path.suffix != ".safetensors":
        raise ValueError(f"a checkpoint's file ends in .safetensors; got {path.name}.")
    stored = {}
    for name, tensor in weights.items():
        small = half and tensor.is_floating_point()
        kept = tensor.detach().to("cpu", torch.float16 if small else None, copy=True).contiguous()
        if not kept.isfinite().all():
            raise ValueError(f"{name} is not finite as {kept.dtype}: train again, or half=False.")
        stored[name] = kept
    # One entry only: safetensors writes several in any order, and the hash would change.
    data = to_bytes(stored, metadata={"about": json.dumps(about, ensure_ascii=False)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    made = {
        "sha256": sha256(path),
        "bytes": len(data),
        "command": command,
        **origin(),
        "seed": seed,
        "steps": steps,
        "seconds": round(seconds),
        "losses": list(losses),
    }
    _sidecar(path).write_text(_readable(made), encoding="utf-8")
    return made["sha256"]


def load(path: Path) -> Checkpoint:
    """Read a checkpoint after comparing its size and hash with the JSON file beside it.

    Raises CheckpointError with what to do if one of the files is missing, damaged or another one.
    """
    made = _read_sidecar(path)
    if not path.is_file():
        raise CheckpointError(f"there is no {path.name} in {path.parent}. {_remedy(made)}")
    found = path.stat().st_size
    if found < made["bytes"]:
        raise CheckpointError(
            f"{path.name} is cut short: {found:,} of {made['bytes']:,} bytes. {_remedy(made)}"
        )
    if (actual := sha256(path)) != made["sha256"]:
        raise CheckpointError(
            f"{path.name} is not the file that {_sidecar(path).name} describes: its SHA-256 is "
            f"{actual}, {made['sha256']} is expected. {_remedy(made)}"
        )
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(file.metadata()["about"])
    wide = {name: w.float() if w.is_floating_point() else w for name, w in weights.items()}
    return Checkpoint(wide, about, made)


def _sidecar(path: Path) -> Path:
    return path.with_suffix(".json")


def _remedy(made: Mapping[str, Any]) -> str:
    return f"Install the course again, or make the file anew: {made['command']}"


def _read_sidecar(path: Path) -> dict[str, Any]:
    sidecar = _sidecar(path)
    if not sidecar.is_file():
        raise CheckpointError(
            f"there is no {sidecar.name} in {path.parent}, so nobody can tell whether {path.name} "
            "is the right file. Install the course again."
        )
    try:
        made = json.loads(sidecar.read_text(encoding="utf-8"))
        missing = {"sha256", "bytes", "command"} - made.keys()
    except (ValueError, AttributeError) as problem:
        raise CheckpointError(
            f"{sidecar.name} is damaged ({problem}). Install the course again."
        ) from problem
    if missing:
        raise CheckpointError(
            f"{sidecar.name} lacks {', '.join(sorted(missing))}. Install the course again."
        )
    return made


def _readable(made: Mapping[str, Any]) -> str:
    """JSON with one line for each entry, and for each line of the log."""
    entries = []
    for name, value in made.items():
        text = json.dumps(value, ensure_ascii=False)
        if name == "losses" and value:
            lines = ",\n  ".join(json.dumps(entry) for entry in value)
            text = f"[\n  {lines}\n ]"
        entries.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"
