"""Runs inside the sandbox: fork a kernel that is locked up, and watch over it.

`warm_kernel.py` calls `start` for every kernel. Each gets new process, mount and IPC namespaces,
fresh temporary folders, resource limits, no capabilities, and where the parent is root a user id of
its own. It can neither see nor signal its parent, another kernel or what an earlier one left; when
it ends, the system ends all that it started.
"""

from __future__ import annotations

import ctypes
import os
import resource
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

TMPFS_SIZE, HOME_SIZE = "64m", "256m"
# Places inside the sandbox; `autograder.kernels.sandbox` makes them.
BATCH_CELLS, BATCH_SOCKET = "cells.json", "batch"
SCRATCH, HOME, SOCKETS, PROGRAMS = "/scratch", "/home/student", "/sockets", "/programs"
WATCHED = (signal.SIGTERM, signal.SIGCHLD)  # a request to end the kernel, and its end


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


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory."""
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_away(folder: str, uid: int | None) -> None:
    """Make a user id the owner of a folder and all that is in it."""
    if uid is None:
        return
    for current, _, files in os.walk(folder):
        for path in (current, *(os.path.join(current, name) for name in files)):
            os.chown(path, uid, uid)


def new_rooms(folder: str, uid: int | None, visible: list[str]) -> None:
    """Give this process its own view: its own folder only, fresh /tmp and /dev/shm, own /proc."""
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    give_away(f"{folder}/run", uid)
    mount(f"{folder}/run", SOCKETS, None, MS_BIND, None)
    # The working folder lives in memory: whatever is written there is bounded, and gone at once.
    mount("tmpfs", HOME, "tmpfs", MS_NOSUID | MS_NODEV, f"size={HOME_SIZE},mode=1777")
    shutil.copytree(f"{folder}/home", HOME, dirs_exist_ok=True)
    give_away(HOME, uid)
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


def lock_up(folder: str, uid: int | None, settings: dict) -> None:
    """Lock this process up in its folder: from here on it is the student's."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    new_rooms(folder, uid, settings["visible"])
    set_limits(settings["limits"])
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # should memory run out, this process goes first
    drop_rights(uid)
    die_with_parent()  # only now: a change of user id takes this back
    os.chdir(HOME)
    os.environ["HOME"] = HOME
    sys.path = [path for path in sys.path if path != PROGRAMS]
    checking = sys.modules["attention_course.checking"]
    hidden = Path(SOCKETS, checking.HIDDEN_CASES_FILE)
    if hidden.exists():
        checking.load_hidden_cases(hidden)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.default_int_handler)


def run_batch() -> None:
    """Run all cells of the notebook in one go."""
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.closerange(3, 1024)
    sys.modules["batch_kernel"].run(f"{SOCKETS}/{BATCH_CELLS}", f"{SOCKETS}/{BATCH_SOCKET}")


def run_kernel(argv: list[str]) -> None:
    """Be an IPython kernel. Does not return."""
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


def run_in_new_namespaces(folder: str, uid: int | None, argv: list[str] | None, settings: dict):
    """Fork a kernel as first process of new namespaces, wait for it, return its exit status."""
    die_with_parent()
    call("unshare", CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID)
    # Both wait here until they are asked for: neither can come too early to be noticed.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            lock_up(folder, uid, settings)
            run_batch() if argv is None else run_kernel(argv)
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    while True:
        if signal.sigwait(WATCHED) == signal.SIGTERM:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) & 0xFF


def start(name: str, uid: int | None, argv: list[str] | None, settings: dict) -> int:
    """Fork the process that watches over one kernel; return its id.

    A request to kill it waits until there is a kernel to be killed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    watcher = os.fork()
    if watcher == 0:
        try:
            os._exit(run_in_new_namespaces(os.path.join(SCRATCH, name), uid, argv, settings))
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    return watcher
