"""Runs inside the sandbox: import once, then fork one locked-up kernel after another.

`provisioner.py` starts it inside bubblewrap as a plain file: the `autograder` package is not
visible there. It holds nothing secret. Requests come as JSON lines on standard input, one answer
line each on standard output:

    {"start": NAME, "argv": […]}   fork a kernel in the private folder NAME
    {"kill": NAME}                 end it and everything that it started
    → {"ready": true}, {"started": NAME}, {"ended": NAME, "status": N}

Each kernel gets new process, mount and IPC namespaces, fresh temporary folders, resource limits,
no capabilities, and where the parent is root a user id of its own. It can neither see nor signal
this process or what an earlier kernel left; when it ends, the system ends all that it started.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import traceback
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)

# From <sched.h>, <sys/mount.h> and <sys/prctl.h>.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID = 0x00020000, 0x08000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LAST_CAPABILITY = 63

# The packages of the course, then what a kernel would otherwise import while it starts.
WARM_MODULES = (
    "numpy",
    "torch",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "attention_course.checking",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "IPython.extensions.storemagic",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "sqlite3",
    "tornado.platform.asyncio",
)

TMPFS_SIZE, HOME_SIZE = "64m", "256m"
HIDDEN_CASES = "hidden_cases.json"
# Places inside the sandbox; `autograder.kernels.sandbox` makes them.
SCRATCH, HOME, SOCKETS = "/scratch", "/home/student", "/sockets"


def call(name: str, *arguments: object) -> None:
    """Call a C library function that returns 0; raise OSError with its name otherwise."""
    if getattr(LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system; see mount(2)."""

    def text(value: str | None) -> bytes | None:
        return None if value is None else value.encode()

    call("mount", text(source), text(target), text(kind), flags, text(options))


def die_with_parent() -> None:
    """Have the system kill this process when its parent ends."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def new_rooms(folder: str, uid: int | None, visible: list[str]) -> None:
    """Give this process its own view: its own folder only, fresh /tmp and /dev/shm, own /proc."""
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    mount(f"{folder}/run", SOCKETS, None, MS_BIND, None)
    # The working folder lives in memory: whatever is written there is bounded, and gone at once.
    mount("tmpfs", HOME, "tmpfs", MS_NOSUID | MS_NODEV, f"size={HOME_SIZE},mode=1777")
    shutil.copytree(f"{folder}/home", HOME, dirs_exist_ok=True)
    if uid is not None:
        for current, _, files in os.walk(HOME):
            for path in (current, *(os.path.join(current, name) for name in files)):
                os.chown(path, uid, uid)
    # The course itself may live below /tmp: hold on to it while a fresh /tmp is put over it.
    kept = {
        path: os.open(path, os.O_PATH | os.O_CLOEXEC)
        for path in visible
        if path.startswith("/tmp/")
    }
    for place in (SCRATCH, "/tmp", "/dev/shm"):  # the first hides the folders of others
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, f"size={TMPFS_SIZE},mode=1777")
    for path, descriptor in kept.items():
        os.makedirs(path)
        mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND, None)
        os.close(descriptor)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV, None)


def drop_rights(uid: int | None) -> None:
    """Give up every capability and, where this process is root, the user id too."""
    for capability in range(LAST_CAPABILITY + 1):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the system's last one
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of capset(2), this process
    call("capset", header, (ctypes.c_uint32 * 6)())
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def set_limits(limits: dict[str, int]) -> None:
    """Set resource limits, soft and hard."""
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))


def become_kernel(folder: str, argv: list[str], settings: dict) -> None:
    """Turn this process into an IPython kernel. Does not return."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    new_rooms(folder, settings["uid"], settings["visible"])
    set_limits(settings["limits"])
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # should memory run out, this process goes first
    drop_rights(settings["uid"])
    die_with_parent()  # only now: a change of user id takes this back
    os.chdir(HOME)
    os.environ["HOME"] = HOME
    if os.path.exists(f"{SOCKETS}/{HIDDEN_CASES}"):
        sys.modules["attention_course.checking"].load_hidden_cases(Path(SOCKETS, HIDDEN_CASES))
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.default_int_handler)
    quiet = os.open(os.devnull, os.O_RDWR)
    errors = os.dup(2)  # for words on a failed start; closed before the student's code runs
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    os.closerange(3, errors)
    os.closerange(errors + 1, 1024)
    from ipykernel.kernelapp import IPKernelApp

    try:
        app = IPKernelApp.instance()
        app.initialize(argv)
    except BaseException:
        os.write(errors, traceback.format_exc().encode())
        raise
    os.close(errors)
    app.start()


def run_in_new_namespaces(folder: str, argv: list[str], settings: dict) -> int:
    """Fork a kernel as first process of new namespaces, wait for it, return its exit status."""
    die_with_parent()
    call("unshare", CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            become_kernel(folder, argv, settings)
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


def start(name: str, argv: list[str], settings: dict) -> int:
    """Fork the process that watches over one kernel; return a descriptor that tells its end."""
    watcher = os.fork()
    if watcher == 0:
        try:
            os._exit(run_in_new_namespaces(os.path.join(SCRATCH, name), argv, settings))
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(1)
    return watcher


def say(**message: object) -> None:
    """Answer the host."""
    os.write(1, json.dumps(message).encode() + b"\n")


def import_what_notebooks_need() -> None:
    """Import the slow packages once; every kernel inherits them."""
    for name in WARM_MODULES:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)


def main() -> None:
    """Serve requests until standard input is closed."""
    settings = json.loads(sys.argv[1])
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
    import_what_notebooks_need()
    say(ready=True)
    running: dict[int, tuple[str, int]] = {}  # descriptor of its end → name, process id
    unread = b""
    while True:
        ready, _, _ = select.select([0, *running], [], [])
        for descriptor in set(ready) - {0}:
            name, watcher = running.pop(descriptor)
            os.close(descriptor)
            _, status = os.waitpid(watcher, 0)
            say(ended=name, status=os.waitstatus_to_exitcode(status))
        if 0 not in ready:
            continue
        received = os.read(0, 65536)
        if not received:
            return
        *lines, unread = (unread + received).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "start" in request:
                watcher = start(request["start"], request["argv"], settings)
                running[os.pidfd_open(watcher)] = (request["start"], watcher)
                say(started=request["start"])
            else:
                for name, watcher in running.values():
                    if name == request["kill"]:
                        os.kill(watcher, signal.SIGTERM)


if __name__ == "__main__":
    main()
