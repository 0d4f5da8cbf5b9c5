"""`nbgrader …` with warm kernels but without locks: what the sandbox costs, measured.

For the benchmark only. The warm process runs outside bubblewrap, and its kernels get no namespaces,
no limits and no other rights.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from autograder.kernels import warm

KERNELS = str(Path(warm.__file__).parent)


def serve(scratch: str, settings: str) -> None:
    """Be the warm process: `warm_kernel.main` with its locks taken off."""
    sys.path.insert(0, KERNELS)
    import locked_kernel
    import warm_kernel

    def lock_up(folder: str, uid: int | None, settings: dict) -> None:
        place = Path(scratch, Path(folder).name)
        locked_kernel.HOME, locked_kernel.SOCKETS = str(place / "home"), str(place / "run")
        os.chdir(locked_kernel.HOME)
        checking = sys.modules["attention_course.checking"]
        checking.load_hidden_cases(place / "run" / checking.HIDDEN_CASES_FILE)

    def run(folder: str, uid: int | None, argv: list[str] | None, settings: dict) -> int:
        lock_up(folder, uid, settings)
        locked_kernel.run_batch()
        return 0

    locked_kernel.run_in_new_namespaces = run
    sys.argv = [sys.argv[0], settings]
    warm_kernel.main()


def main() -> None:
    """Run nbgrader in this process with the warm process replaced."""
    os.environ.update({"NBGRADER_EXECUTION": "autograde", "OMP_NUM_THREADS": "1"})
    os.environ.update({"IPYTHONDIR": "/tmp/ipython"})

    def command(scratch: Path, modules: tuple[str, ...], listener: int) -> list[str]:
        settings = {"uid": None, "memory": 2**40, "modules": modules, "listener": listener}
        return [sys.executable, __file__, "--serve", str(scratch), json.dumps(settings)]

    warm.bwrap_command = command
    popen = warm.subprocess.Popen

    def with_environment(*arguments, env=None, **options):
        return popen(*arguments, env=os.environ, **options)

    warm.subprocess.Popen = with_environment
    from nbgrader.apps.nbgraderapp import main as nbgrader

    sys.argv[0] = "nbgrader"
    nbgrader()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:4])
    else:
        main()
