"""Kernels inside bubblewrap: no network, a read-only system, an empty home, limits.

A student's code sees the Python environment, the student package and a private copy of its own
submission folder. It cannot see solutions, other submissions, the gradebook, the instructor's
home or environment. Everything it started dies with the kernel.
"""

from __future__ import annotations

import copy
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

import attention_course
import autograder

UNSANDBOXED_VARIABLE = "AUTOGRADER_UNSANDBOXED"
HOME = "/home/student"  # the private copy of the submission folder, inside the sandbox
LARGEST_FOLDER = 100 * 2**20  # bytes of files beside a notebook that are copied in

# What `prlimit` sets before Python starts.
LIMITS = {
    "as": 8 * 2**30,  # address space; torch alone maps several GiB without using them
    "fsize": 100 * 2**20,
    "nofile": 512,
    "nproc": 512,
    "core": 0,
}


class SandboxUnavailable(Exception):
    """Grading would have to run students' code without a sandbox, and nobody allowed that."""


@functools.cache
def why_no_sandbox() -> str:
    """Return why bubblewrap cannot be used here, or "" if it works."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    try:
        trial = subprocess.run(
            [bwrap, "--unshare-all", "--ro-bind", "/", "/", "true"],
            capture_output=True,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return "" if trial.returncode == 0 else f"bubblewrap cannot run here: {trial.stderr.strip()}"


def use_sandbox() -> bool:
    """Tell whether kernels are to run in the sandbox.

    Raises SandboxUnavailable if they cannot, unless the instructor has knowingly set
    AUTOGRADER_UNSANDBOXED=1.
    """
    if os.environ.get(UNSANDBOXED_VARIABLE) == "1":
        return False
    reason = why_no_sandbox()
    if reason:
        raise SandboxUnavailable(
            f"Students' code is only run in a sandbox, and {reason}. Grade on a Linux machine "
            "with bubblewrap and user namespaces, or, if you trust every submission, set "
            f"{UNSANDBOXED_VARIABLE}=1 to run them with your own rights: they can then read and "
            "change every file that you can."
        )
    return True


def _inside(path: Path, folders: list[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)


def visible_folders() -> list[Path]:
    """List what a sandboxed kernel may read: the system, Python, the environment, the package."""
    package = Path(attention_course.__file__).resolve().parent
    wanted = [Path("/usr"), Path(sys.base_prefix), Path(sys.prefix), package]
    folders: list[Path] = []
    for folder in wanted:
        if folder.exists() and not _inside(folder, folders):
            folders.append(folder)
    return folders


def bwrap_command(scratch: Path) -> list[str]:
    """Return the bubblewrap command line up to the program, for a kernel that lives in `scratch`.

    `scratch/home` becomes the working folder, `scratch/run` (at its own path) holds the sockets.
    """
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    # First what may be hidden again by a later line: the course itself may live below /tmp.
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(64 * 2**20), "--tmpfs", "/tmp"]
    visible = visible_folders()
    for folder in visible:
        command += ["--ro-bind", str(folder), str(folder)]
    for name in ("bin", "sbin", "lib", "lib64"):
        link = Path("/", name)
        if link.is_symlink():
            command += ["--symlink", os.readlink(link), str(link)]
        elif link.exists():
            command += ["--ro-bind", str(link), str(link)]
    for name in ("ld.so.cache", "localtime", "fonts", "alternatives", "ssl/certs"):
        if Path("/etc", name).exists():
            command += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    graders_code = Path(autograder.__file__).resolve().parent
    if _inside(graders_code, visible):  # installed into the environment, not from a checkout
        command += ["--tmpfs", str(graders_code)]
    command += ["--bind", str(scratch / "home"), HOME]
    command += ["--bind", str(scratch / "run"), str(scratch / "run"), "--chdir", HOME]
    environment = {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "IPYTHONDIR": "/tmp/ipython",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "JUPYTER_RUNTIME_DIR": str(scratch / "run"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NBGRADER_EXECUTION": "autograde",
    }
    for name, value in environment.items():
        command += ["--setenv", name, value]
    return [*command, "--", "prlimit", *(f"--{name}={limit}" for name, limit in LIMITS.items())]


def copy_submission_folder(folder: Path, home: Path) -> None:
    """Copy the plain files beside a notebook into the sandbox's home, up to a total size.

    Links, devices and notebooks stay behind: code needs none of them.
    """
    room = LARGEST_FOLDER
    for current, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not Path(current, name).is_symlink()]
        for name in files:
            source = Path(current, name)
            if source.is_symlink() or not source.is_file() or source.suffix == ".ipynb":
                continue
            room -= source.stat().st_size
            if room >= 0:
                target = home / source.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


class SandboxProvisioner(LocalProvisioner):
    """Start a kernel inside bubblewrap; the host talks to it over Unix sockets."""

    scratch: Path | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Make the private folders, point the connection at them, wrap the command line."""
        if not use_sandbox():
            self.log.warning("NOT sandboxed: students' code runs with your own rights.")
            return await super().pre_launch(**kwargs)
        self._remove_scratch()
        self.scratch = Path(tempfile.mkdtemp(prefix="grade-"))
        (self.scratch / "home").mkdir()
        (self.scratch / "run").mkdir()
        manager = self.parent
        manager.transport = "ipc"
        manager.ip = str(self.scratch / "run" / "k")
        manager.connection_file = str(self.scratch / "run" / "kernel.json")
        copy_submission_folder(Path(kwargs.pop("cwd", None) or "."), self.scratch / "home")
        kwargs = await super().pre_launch(**kwargs)
        kwargs["cmd"] = [*bwrap_command(self.scratch), *kwargs["cmd"]]
        kwargs["cwd"] = "/"
        # bwrap's own environment can be read inside, as that of process 1: it gets none.
        kwargs["env"] = {"PATH": os.environ.get("PATH", os.defpath)}
        kwargs["stdout"] = kwargs["stderr"] = subprocess.DEVNULL
        return kwargs

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the private folders: nothing that the student's code wrote is kept."""
        self._remove_scratch()
        if not restart:
            self.ports_cached = False  # Unix sockets: there is no TCP port to hand back
        await super().cleanup(restart)

    def _remove_scratch(self) -> None:
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch = None


class SandboxKernelManager(AsyncKernelManager):
    """Starts every kernel through `SandboxProvisioner`, whatever the notebook's kernelspec says."""

    @property
    def kernel_spec(self) -> Any:
        """The kernelspec with the sandbox put in."""
        spec = copy.copy(super().kernel_spec)
        if spec is not None:
            spec.metadata = {"kernel_provisioner": {"provisioner_name": "autograder-sandbox"}}
            spec.interrupt_mode = "message"  # signals do not cross into the process namespace
        return spec
