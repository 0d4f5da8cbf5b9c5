"""`nbgrader …` with warm kernels but without locks: what the sandbox costs, measured.

For the benchmark only. The warm process runs outside bubblewrap, and its kernels get no namespaces,
no limits and no other rights.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from autograder.kernels import provisioner, warm_kernel


def serve(scratch: str) -> None:
    """Be the warm process: `warm_kernel.main` with its locks taken off."""

    def run(folder: str, argv: list[str], settings: dict) -> int:
        place = Path(scratch, Path(folder).name)
        own = place / "run" / "kernel.json"
        connection = json.loads(own.read_text())
        connection["ip"] = connection["ip"].replace(warm_kernel.SOCKETS, str(place / "run"))
        own.write_text(json.dumps(connection))
        warm_kernel.HOME, warm_kernel.SOCKETS = str(place / "home"), str(place / "run")
        warm_kernel.become_kernel(folder, ["-f", str(own), *argv[2:]], settings)
        return 0

    for name in ("new_rooms", "set_limits", "drop_rights", "die_with_parent"):
        setattr(warm_kernel, name, lambda *_: None)
    warm_kernel.run_in_new_namespaces = run
    warm_kernel.main()


def main() -> None:
    """Run nbgrader in this process with the warm process replaced."""
    environment = {"NBGRADER_EXECUTION": "autograde", "OMP_NUM_THREADS": "1"}
    os.environ.update(environment)

    def command(scratch: Path) -> list[str]:
        settings = json.dumps({"limits": {}, "uid": None, "visible": []})
        return [sys.executable, __file__, "--serve", str(scratch), settings]

    provisioner.bwrap_command = command
    from nbgrader.apps.nbgraderapp import main as nbgrader

    sys.argv[0] = "nbgrader"
    nbgrader()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        scratch = sys.argv[2]
        sys.argv = [sys.argv[0], sys.argv[3]]
        serve(scratch)
    else:
        main()
