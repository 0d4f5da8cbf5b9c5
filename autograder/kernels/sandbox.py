"""What students' code may see and use: the bubblewrap command line and its limits.

A student's code sees the Python environment, the student package and a private copy of its own
submission folder. It cannot see solutions, other submissions, the gradebook, the instructor's
home or environment, and has no network. `warm_kernel.py` and what it uses run inside,
`provisioner.py` outside.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import attention_course
import autograder
from attention_course.checking import HIDDEN_CASES_FILE
from autograder.kernels.locked_kernel import HOME, PROGRAMS, SCRATCH, SOCKETS

UNSANDBOXED_VARIABLE = "AUTOGRADER_UNSANDBOXED"
WARM_PROGRAM = "warm_kernel.py"
PROGRAM_FILES = (WARM_PROGRAM, "locked_kernel.py", "batch_kernel.py", "memory_watch.py")
MEMORY = 8 * 2**30  # bytes for a kernel and all that it started together
# As root, kernels run as user ids from here on, nobody's; those of one warm process differ.
FIRST_UID, UIDS_FOR_EACH = 200_000, 64
LARGEST_FOLDER = 100 * 2**20  # bytes of files beside a notebook that are copied in

# What each kernel is limited to (setrlimit(2)).
LIMITS = {
    "as": 6 * 2**30,  # bytes of address space for each process
    "fsize": 100 * 2**20,  # bytes of one file
    "nofile": 512,
    "nproc": 256,  # processes and threads
    "core": 0,
}
# The warm process needs these to lock up its kernels, which then lose them all.
CAPABILITIES = ["--cap-drop", "ALL"]
for _name in ("SYS_ADMIN", "SETPCAP", "SETUID", "SETGID", "CHOWN", "KILL"):
    CAPABILITIES += ["--cap-add", f"CAP_{_name}"]

ENVIRONMENT = {
    "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",
    "IPYTHONDIR": "/tmp/ipython",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NBGRADER_EXECUTION": "autograde",
}


class SandboxUnavailable(Exception):
    """Grading would have to run students' code without a sandbox, and nobody allowed that."""


ROOT_MODE = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
USER_MODE = ["--unshare-all"]


@dataclass(frozen=True)
class Possibility:
    """Whether and how bubblewrap can be used here. `reason` says why not, "" if it can."""

    mode: tuple[str, ...] = ()
    uid: int | None = None  # the first of those that kernels run as; None: as whoever grades does
    reason: str = ""


def _try_mode(bwrap: str, mode: list[str]) -> str:
    """Return "" if kernels can be locked up in this mode, else what bubblewrap said."""
    # What locked_kernel.py does for every kernel: new namespaces with their own /proc.
    inner = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "true"]
    outer = [bwrap, *mode, *CAPABILITIES, "--ro-bind", "/", "/", "--proc", "/proc"]
    try:
        trial = subprocess.run([*outer, *inner], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if trial.returncode == 0 else trial.stderr.strip() or "it failed without a word"


@functools.cache
def possibility() -> Possibility:
    """Find out how bubblewrap can be used here.

    As root, kernels get an unprivileged user id of their own, which also makes the limit on
    processes hold; as anyone else they live in a user namespace.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return Possibility(reason="bubblewrap is not installed (apt-get install bubblewrap)")
    if os.geteuid() == 0 and not _try_mode(bwrap, ROOT_MODE):
        return Possibility(tuple(ROOT_MODE), FIRST_UID + os.getpid() % 10_000 * UIDS_FOR_EACH)
    said = _try_mode(bwrap, USER_MODE)
    return Possibility(tuple(USER_MODE), None, f"bubblewrap cannot run here: {said}" * bool(said))


def use_sandbox() -> bool:
    """Tell whether kernels are to run in the sandbox.

    Raises SandboxUnavailable if they cannot, unless the instructor has knowingly set
    AUTOGRADER_UNSANDBOXED=1.
    """
    if os.environ.get(UNSANDBOXED_VARIABLE) == "1":
        return False
    reason = possibility().reason
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


def _open_parents(path: Path) -> list[str]:
    """Make the folders above `path` so that any user id can pass: bubblewrap makes them private."""
    parents = reversed(path.parents[:-1])
    return [word for parent in parents for word in ("--perms", "0755", "--dir", str(parent))]


def bwrap_command(scratch: Path, modules: tuple[str, ...], listener: int) -> list[str]:
    """Return the command line of the warm process, which may see and use `scratch` only.

    It imports `modules` and takes requests from the socket with the descriptor `listener`.
    """
    command = ["bwrap", *possibility().mode, *CAPABILITIES]
    command += ["--die-with-parent", "--new-session", "--clearenv"]
    # First what may be covered by a later line: the course itself may live below /tmp.
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/mnt"]
    visible = visible_folders()
    for folder in visible:
        command += [*_open_parents(folder), "--ro-bind", str(folder), str(folder)]
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
    for place in (HOME, SOCKETS, SCRATCH):
        command += [*_open_parents(Path(place, "x"))]
    command += ["--bind", str(scratch), SCRATCH]
    for program in PROGRAM_FILES:
        place = f"{PROGRAMS}/{program}"
        command += ["--ro-bind", str(Path(__file__).with_name(program)), place]
    package = Path(attention_course.__file__).resolve().parent
    for name, value in {**ENVIRONMENT, "PYTHONPATH": str(package.parent)}.items():
        command += ["--setenv", name, value]
    settings = {
        "limits": LIMITS,
        "memory": MEMORY,
        "uid": possibility().uid,
        "visible": [str(folder) for folder in visible],
        "modules": list(modules),
        "listener": listener,
    }
    return [*command, "--", sys.executable, f"{PROGRAMS}/{WARM_PROGRAM}", json.dumps(settings)]


def copy_submission_folder(folder: Path, home: Path) -> None:
    """Copy the plain files beside a notebook into the sandbox's home, up to a total size.

    Links, devices, notebooks and the hidden cases stay behind: code needs none of them there.
    """
    room = LARGEST_FOLDER
    for current, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not Path(current, name).is_symlink()]
        for name in files:
            source = Path(current, name)
            if source.is_symlink() or not source.is_file() or source.suffix == ".ipynb":
                continue
            if source == folder / HIDDEN_CASES_FILE:
                continue
            room -= source.stat().st_size
            if room >= 0:
                target = home / source.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
