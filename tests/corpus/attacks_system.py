"""Attacks on the machine: files, processes, memory, network, the grader itself. All are bounded.

They aim at the test's own folder and at targets that the test puts up, so that they would do no
harm if the sandbox failed.
"""

from __future__ import annotations

import zlib

from corpus.describing import FULL, NOTHING, RIGHT, ROOT_MARK, Entry, code_before
from corpus.forging import everywhere

MARKER = "left-by-an-attack"  # in the command line of what is left running


def port_of(root: str) -> int:
    """Say where the test's server for a course folder listens."""
    return 20_000 + zlib.crc32(root.encode()) % 20_000


TOOLS = f"""
import ctypes, glob, json, os, signal, socket, sqlite3, subprocess, sys, threading, time, zlib
import numpy as np
ROOT = {ROOT_MARK!r}
ROOTS = [ROOT, *("../" * n or "." for n in range(6)), f"/proc/1/root{{ROOT}}",
         f"/proc/self/root{{ROOT}}", f"/proc/{{os.getppid()}}/cwd",
         f"/proc/{{os.getppid()}}/root{{ROOT}}", "/proc/1/cwd"]
def quietly(act, *given):
    try:
        return act(*given)
    except BaseException as error:
        return repr(error)[:100]
def daemon(act):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            quietly(act)
            code = "import time; time.sleep(120)"
            os.execv(sys.executable, [sys.executable, "-c", code, "{MARKER}"])
        os._exit(0)
"""
STEAL = """
def sources():
    for root in ROOTS:
        yield from glob.glob(f"{root}/solutions/*/*.ipynb") + glob.glob(f"{root}/solutions/*.ipynb")
        for kind in ("submitted", "autograded", ".staged-*", "feedback"):
            yield from glob.glob(f"{root}/{kind}/*neighbour*/*/*.ipynb")
def stolen(name):
    for path in sources():
        try:
            cells = json.loads(open(path).read())["cells"]
        except (OSError, ValueError):
            continue
        for cell in cells:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == name:
                exec("".join(cell["source"]), globals())
                return globals()[name]
    return lambda *_, **__: 0.0
"""
GRADEBOOK = """
def rob():
    for root in ROOTS:
        for path in (f"{root}/gradebook.db", f"{root}/.autograder-secret"):
            try:
                database = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=0.1)
                database.execute("UPDATE grade SET manual_score = 100, auto_score = 100")
                database.commit()
            except sqlite3.Error:
                pass
def rob_on():
    for _ in range(200):
        rob(); time.sleep(0.1)
"""
PLANT = """
for root in ROOTS:
    for name in ("planted.py", "numpy.py", "solutions/planted.py", "submitted/planted.txt",
                 "course/01_shapes/checks.json", "nbgrader_config.py", "gradebook.db"):
        for mode in ("r+", "x"):
            quietly(lambda: open(f"{root}/{name}", mode).write("raise SystemExit"))
for place in (sys.prefix, os.path.dirname(np.__file__), "/usr/lib", "/etc", "/"):
    quietly(lambda: open(f"{place}/planted.pth", "x").write("import os"))
"""
KILL = """
libc = ctypes.CDLL(None)
seen = map(int, filter(str.isdigit, os.listdir("/proc")))
for pid in {os.getppid(), 1, 2, 3, *seen} - {0, os.getpid()}:
    quietly(libc.ptrace, 16, pid, 0, 0)
    quietly(os.kill, pid, signal.SIGKILL)
    quietly(os.kill, pid, signal.SIGSTOP)
quietly(os.kill, -1, signal.SIGTERM)
for call in (("mount", b"none", b"/", None, 1 << 18, None), ("setns", 3, 0),
             ("unshare", 0x10000000), ("chroot", b"/proc/1/root"), ("setuid", 0), ("reboot", 0)):
    quietly(getattr(libc, call[0]), *call[1:])
"""
NETWORK = """
def reach():
    port = 20_000 + zlib.crc32(ROOT.encode()) % 20_000
    for family, place in ((socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port)),
                          (socket.AF_UNIX, f"\\0{ROOT}"),
                          (socket.AF_UNIX, f"{ROOT}/target-socket")):
        s = socket.socket(family); s.settimeout(0.3)
        print(quietly(s.connect, place))
    quietly(socket.getaddrinfo, "example.org", 80)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    quietly(s.sendto, b"leak", ("127.0.0.1", port))
"""
FILL = """
for folder in (".", "/tmp", "/dev/shm", "/sockets", "/home/student", "/var/tmp"):
    for number in range(2):
        quietly(lambda: open(f"{folder}/big{number}", "wb").write(bytes(30 * 2**20)))
for number in range(3000):
    quietly(lambda: open(f"small{number}", "w").close())
"""
MEMORY = """
import mmap
kept = []
for _ in range(20):
    quietly(lambda: kept.append(mmap.mmap(-1, 2**30)))
for number in range(8):
    descriptor = os.memfd_create("big")
    quietly(os.write, descriptor, bytes(8 * 2**20))
threads = []
for _ in range(400):
    quietly(lambda: threads.append(threading.Thread(target=time.sleep, args=(60,)).start()))
"""
FORKS = """
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
    except OSError:
        break
"""
TRAPS = """
here = os.getcwd()
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
os.chdir(here)
os.mkdir("locked"); open("locked/x", "w").close(); os.chmod("locked", 0)
for name in os.listdir("/sockets"):
    quietly(os.rename, f"/sockets/{name}", f"/sockets/{name}.old")
    quietly(os.symlink, f"{ROOT}/target-socket", f"/sockets/{name}")
quietly(os.symlink, ROOT, "/sockets/course"); quietly(os.symlink, ROOT, "course")
"""
TRACES = f"""
for place in ("/tmp", "/home/student", "/dev/shm", "/sockets", "/scratch", "/var/tmp"):
    quietly(lambda: open(f"{{place}}/trace-of-an-attack", "w").write("x"))
ctypes.CDLL(None).shmget(4711, 4096, 0o1666)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)", {MARKER!r}])
def answer_for_all():
    while True: time.sleep(1)
daemon(answer_for_all)
"""
SPY = """import ctypes, glob, os
traces = [path for depth in ("/*", "/*/*", ".") for path in glob.glob(f"{depth}/trace-of*")]
processes = [p for p in os.listdir("/proc") if p.isdigit()]
segment = ctypes.CDLL(None).shmget(4711, 4096, 0o666)
print("SPY", traces, len(processes), segment, os.path.exists("/sockets/course"))"""
SPY_SEES_NOTHING = "SPY [] 1 -1 False"


def system(student: str, about: str, code: str, body: str = "return 0.0", **changes) -> Entry:
    """Describe an attack on the machine that earns nothing."""
    given = {"earns": NOTHING, "only": True, **changes}
    return Entry(student, about, everywhere(TOOLS + code, body), **given)


def steal_all() -> dict[str, str]:
    answers = {name: f"{name} = stolen({name!r})" for name in RIGHT}
    return {**answers, "as_column": f"{TOOLS}{STEAL}\n{answers['as_column']}"}


SYSTEM_ATTACKS = (
    Entry("s-steals", "solutions and neighbours' answers by every path", steal_all(),
          earns=NOTHING, only=True, parts=4),
    system("s-gradebook", "the gradebook changed at once", GRADEBOOK + "rob()"),
    system("s-gradebook-later", "the gradebook changed by a process left running",
           GRADEBOOK + "daemon(rob_on)"),
    system("s-plants", "files planted in the course, the environment and the system", PLANT,
           parts=3),
    system("s-kills", "ptrace, kill, mount, setns, chroot on everything in sight", KILL, parts=6),
    system("s-network", "connections out, names looked up, abstract sockets",
           NETWORK + "reach()", parts=5),
    system("s-fills", "disk, temporary folders and inodes filled", FILL, parts=3),
    system("s-memory", "memory and threads without end", MEMORY, parts=3),
    system("s-forks", "processes without end", FORKS, status=None),
    system("s-traps", "deep, locked and linked folders for the grader to fall into", TRAPS,
           parts=3),
    system("s-traces", "traces and processes left for the next student", TRACES, parts=2),
    Entry("s-traces-spied", "right, and looks for the traces of the one before",
          edit=code_before("as_column", SPY), earns=FULL),
    system("s-signals", "signals and limits turned off, and a loop", "", parts=2,
           body="for s in range(1, 65): quietly(signal.signal, s, signal.SIG_IGN)\n"
                "threading.Timer = None\nwhile True:\n    try:\n        while True: pass\n"
                "    except BaseException: pass", status="timed out"),
    system("s-stops", "the kernel's threads stopped, the process frozen",
           "loop = __import__('IPython').get_ipython().kernel.io_loop\n"
           "def freeze(): time.sleep(10**6)\n"
           "threading.Timer(0.1, lambda: loop.add_callback(freeze)).start(); time.sleep(0.3)",
           status=None),  # timed out where cells run one by one; in one go there is no such loop
)  # fmt: skip
