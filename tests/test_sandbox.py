"""Each forbidden act fails inside a grading kernel, and works outside, so the test can fail."""

import os
import socket
import subprocess
import sys
import time

import pytest
from nbformat.v4 import new_code_cell, new_notebook

import attention_course
from autograder.grading.execution import SandboxedExecute
from autograder.kernels import sandbox
from autograder.kernels.warm import Shared
from autograder.masters import KERNELSPEC, ROOT

pytestmark = pytest.mark.slow

# Each act must end with `done = True` if and only if it succeeded.
ACTS = {
    "read the solutions": "open(f'{ROOT}/solutions/02_attention.py').read()",
    "read the graders' code": "open(f'{ROOT}/autograder/cli.py').read()",
    "import the exercises": "import autograder.exercises",
    "read a file of the instructor": "open(f'{OUTSIDE}/secret.txt').read()",
    "read it through /proc": "open(f'/proc/{VICTIM}/root{OUTSIDE}/secret.txt').read()",
    "write beside the course": "open(f'{OUTSIDE}/planted.txt', 'w').write('x')",
    "write into the environment": "open(f'{sys.prefix}/planted.txt', 'w').write('x')",
    "change the student package": "open(PACKAGE, 'a').close()",
    "read the grader's environment": "os.environ['GRADER_TOKEN']",
    "read another process's environment": (
        "assert b'GRADER_TOKEN' in open(f'/proc/{VICTIM}/environ', 'rb').read()"
    ),
    "reach a server on this machine": "socket.create_connection(('127.0.0.1', PORT), 2).close()",
    "reach an abstract socket": (
        "s = socket.socket(socket.AF_UNIX); s.connect(f'\\0course-test-{PORT}'); s.close()"
    ),
    "signal a process outside": "os.kill(VICTIM, 0)",
    "see a process outside": "assert b'VICTIM' in open(f'/proc/{VICTIM}/cmdline', 'rb').read()",
    "fill the disk": "open('big', 'wb').write(bytes(2**20) * 0 + bytes(120 * 2**20))",
    "take seven gigabytes": "import mmap; mmap.mmap(-1, 7 * 2**30).close()",
    "ask for a kernel": ("s = socket.socket(socket.AF_UNIX); s.connect(f'{WARM}/warm'); s.close()"),
    "start 400 processes": (
        "children = []\n"
        "try:\n"
        "    for _ in range(400):\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            time.sleep(20); os._exit(0)\n"
        "        children.append(child)\n"
        "finally:\n"
        "    for child in children:\n"
        "        os.kill(child, 9); os.waitpid(child, 0)"
    ),
}
PREAMBLE = "import os, socket, sys, time\nos.chdir(os.environ.get('WHERE', os.getcwd()))\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """What the acts are aimed at: a secret file, a process, two servers."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text("42")
    victim = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", "VICTIM"],
        env={**os.environ, "GRADER_TOKEN": "secret"},
    )
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as warm,
    ):
        warm.bind(str(outside / "warm"))
        warm.listen()
        port = server.getsockname()[1]
        local.bind(f"\0course-test-{port}")
        local.listen()
        yield {
            "ROOT": str(ROOT),
            "OUTSIDE": str(outside),
            "PACKAGE": attention_course.__file__,
            "PORT": port,
            "VICTIM": victim.pid,
            "WARM": str(outside),
        }
    victim.kill()


MODES = ["user"] + ["root"] * (os.geteuid() == 0)


@pytest.fixture(scope="module", params=MODES)
def mode(request):
    """Run the tests in every way in which kernels can be locked up on this machine."""
    Shared.close()
    if request.param == "user":
        forced = sandbox.Possibility(tuple(sandbox.USER_MODE))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sandbox, "possibility", lambda: forced)
            yield request.param
    else:
        assert sandbox.possibility().uid is not None
        yield request.param
    Shared.close()


@pytest.fixture(params=["in one go", "cell by cell"])
def way(request, monkeypatch):
    """Run the test in both ways in which cells are run."""
    if request.param == "cell by cell":
        monkeypatch.setattr(SandboxedExecute, "_run_in_one_go", lambda *_: False)
    else:
        monkeypatch.setattr(SandboxedExecute, "create_kernel_manager", None)
    return request.param


def run(folder, *sources, timeout=20):
    """Run cells in one kernel; return what each printed, or its error's name."""
    notebook = new_notebook(metadata={"kernelspec": KERNELSPEC})
    notebook.cells = [new_code_cell(source) for source in sources]
    execute = SandboxedExecute(timeout=timeout, batch_seconds=timeout)
    execute.preprocess(notebook, {"metadata": {"path": str(folder)}})
    texts = []
    for cell in notebook.cells:
        outputs = [o.get("text", "") or o.get("ename", "") for o in cell.outputs]
        texts.append("".join(outputs).strip())
    return texts


def assignments(world):
    return "".join(f"{name} = {value!r}\n" for name, value in world.items())


def attempt(act):
    body = "\n".join(f"    {line}" for line in act.splitlines())
    return (
        "done = False\ntry:\n" + body + "\n    done = True\n"
        "except BaseException as error:\n    print(repr(error)[:200])\n"
        "print('done' if done else 'no')"
    )


def test_every_forbidden_act_fails_inside(world, mode, way, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "secret")
    acts = (
        ACTS
        if mode == "root" or os.geteuid()
        else {
            # The system does not limit the processes of user 0, which kernels stay in this mode.
            name: act
            for name, act in ACTS.items()
            if name != "start 400 processes"
        }
    )
    world = {**world, "WARM": "/scratch"}
    cells = [PREAMBLE + assignments(world), *map(attempt, acts.values())]
    texts = run(tmp_path, *cells, timeout=120)[1:]
    pairs = list(zip(acts, texts, strict=True))
    succeeded = [name for name, text in pairs if text.endswith("done")]
    unclear = [name for name, text in pairs if not text.endswith(("done", "no"))]
    assert (succeeded, unclear) == ([], [])


@pytest.mark.parametrize("name", ACTS)
def test_the_same_act_works_outside(name, world, tmp_path):
    source = PREAMBLE + assignments(world) + attempt(ACTS[name])
    environment = {**os.environ, "GRADER_TOKEN": "secret", "WHERE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, env=environment
    )
    for planted in (sys.prefix, world["OUTSIDE"]):
        if os.path.exists(f"{planted}/planted.txt"):
            os.remove(f"{planted}/planted.txt")
    assert done.stdout.strip().endswith("done"), done.stdout + done.stderr


LEAVE_TRACES = """
import ctypes, os, subprocess, sys
for place in ('/tmp', '/home/student', '/dev/shm', '/sockets'):
    open(place + '/trace', 'w').write('x')
print(ctypes.CDLL(None).shmget(4711, 4096, 0o1666))  # a System V segment
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            wait = 'import time; time.sleep(300)'
            os.execvp(sys.executable, [sys.executable, '-c', wait, 'LEFT'])
        os._exit(0)
"""
FIND_TRACES = """
import ctypes, os
for place in ('/tmp', '/home/student', '/dev/shm', '/sockets'):
    print([name for name in os.listdir(place) if 'trace' in name], end=' ')
print(ctypes.CDLL(None).shmget(4711, 4096, 0o666), os.listdir('/scratch'))
"""


def processes_called(word):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    found += [name] * (word.encode() in file.read().split(b"\0"))
            except OSError:
                continue
    return found


def test_nothing_is_left_for_the_next_kernel(mode, way, tmp_path):
    (number,) = run(tmp_path, LEAVE_TRACES)
    assert int(number) >= 0
    for _ in range(50):
        if not processes_called("LEFT"):
            break
        time.sleep(0.1)
    assert processes_called("LEFT") == []
    (text,) = run(tmp_path, FIND_TRACES)
    assert text == "[] [] [] [] -1 []"


def test_kernels_have_no_rights_and_cannot_see_each_other(mode, way, tmp_path):
    (text,) = run(
        tmp_path,
        "import os\n"
        "status = open('/proc/self/status').read()\n"
        "fields = dict(line.split(':\\t') for line in status.splitlines() if ':\\t' in line)\n"
        "print(fields['CapEff'], fields['CapPrm'], fields['CapBnd'], fields['NoNewPrivs'])\n"
        "print(os.getpid(), sorted(p for p in os.listdir('/proc') if p.isdigit()))\n"
        "print([fd for fd in range(40, 512) if os.path.exists(f'/proc/self/fd/{fd}')])",
    )
    rights, seen, inherited = text.splitlines()
    assert inherited == "[]" or way == "cell by cell"  # whose own sockets are that many
    assert rights == "0000000000000000 " * 3 + "1"
    assert seen == "1 ['1']"


def test_cells_do_what_they_do_in_a_notebook(way, tmp_path):
    (tmp_path / "helper.py").write_text("answer = 42")
    cells = {
        "x = 1\n1/0": "ZeroDivisionError",
        "def f(:": "SyntaxError",
        "print(x)\nx": "1",
        "import helper": "ModuleNotFoundError",  # what lies beside a notebook shadows nothing
        "import asyncio\nawait asyncio.sleep(0.01)\nprint('slept')": "slept",
        "import subprocess\nsubprocess.run(['echo', 'hi']).returncode": "hi",
        "%%bash\necho from bash": "from bash",
        "input('?')": "StdinNotImplementedError",
        "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')": (
            "kept"
        ),
        "print(len(In), get_ipython().kernel is not None)": "11 True",
    }
    assert dict(zip(cells, run(tmp_path, *cells), strict=True)) == cells


def test_output_that_nobody_keeps_does_not_travel(way, tmp_path):
    texts = run(tmp_path, "for i in range(200_000): print(i)", "print('y' * 10**7)", "print(1)")
    assert [len(text) for text in texts] == [pytest.approx(200_000, abs=1), 200_000, 1]


def test_a_dead_kernel_costs_one_cell(mode, tmp_path):
    texts = run(
        tmp_path,
        "x = 1",
        "import os\nos._exit(3)",
        "print(x)",
        "import ctypes\nctypes.string_at(0)",
        "print(x + 1)",
    )
    assert texts == ["", "KernelDied", "1", "KernelDied", "2"]


def test_a_cell_that_cannot_be_interrupted_costs_one_cell(mode, tmp_path):
    stubborn = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    )
    texts = run(tmp_path, "x = 1", stubborn, "print(x)", timeout=3)
    assert texts[0] == ""
    assert texts[1].endswith("CellTimeoutError")
    assert texts[2] == "1"


def test_endless_output_is_cut(tmp_path):
    (text,) = run(tmp_path, "for _ in range(3000): print('x' * 1000)")
    assert len(text) <= 200_000


def test_only_plain_small_files_come_along(mode, way, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("1 2 3")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hidden_cases.json").write_text('{"dict":{}}')
    (text,) = run(
        tmp_path,
        "import os\nprint(sorted(os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs))",
    )
    assert text == "['./data/numbers.txt']"


def test_files_that_came_along_can_be_changed_in_there_only(mode, way, tmp_path):
    (tmp_path / "numbers.txt").write_text("1")
    (text,) = run(
        tmp_path, "open('numbers.txt', 'a').write('2')\nprint(open('numbers.txt').read())"
    )
    assert text == "12"
    assert (tmp_path / "numbers.txt").read_text() == "1"


def test_what_a_kernel_writes_is_bounded_in_total(mode, way, tmp_path):
    source = (
        "try:\n    for n in range(9):\n        open(f'big{n}', 'wb').write(bytes(60 * 2**20))\n"
        "except OSError as error:\n    print(error.strerror)"
    )
    assert run(tmp_path, source) == ["No space left on device"]


def test_a_conversation_that_makes_no_sense_costs_one_cell(mode, tmp_path):
    nonsense = (
        "k = get_ipython().kernel\n"
        "send = lambda kind, content: k.session.send(k.iopub_socket, kind, content, "
        "k.get_parent())\n"
        "send('stream', {'name': 5})\nsend('display_data', {})\nsend('error', {'ename': []})\n"
        "send('update_display_data', {'data': {}, 'metadata': {}, 'transient': {'display_id': 3}})"
    )
    patched = "import json\njson.dumps = lambda *a, **k: 'nonsense'"
    texts = run(tmp_path, "x = 1", nonsense, patched, "print(x + 1)", timeout=10)
    assert texts[0] == ""
    assert texts[-1] == "2"


MANY_THAT_TAKE_A_LITTLE = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        taken = bytearray(os.urandom(2**20)) * 100
        time.sleep(60)
        os._exit(0)
time.sleep(20)
print('got away with it')
"""


def test_processes_cannot_take_together_what_one_may_not(mode, tmp_path, monkeypatch):
    Shared.close()
    monkeypatch.setattr(sandbox, "MEMORY", 400 * 2**20)
    texts = run(tmp_path, "x = 1", MANY_THAT_TAKE_A_LITTLE, "print(x)", timeout=40)
    Shared.close()
    assert texts == ["", "KernelDied", "1"]


def test_widgets_are_left_out_and_their_output_is_kept(mode, way, tmp_path):
    source = "import ipywidgets\nwith ipywidgets.Output():\n    print('inside')\nprint('after')"
    (text,) = run(tmp_path, source)
    assert "after" in text


def test_cells_that_hang_only_the_second_time_do_not_hang_grading(mode, tmp_path):
    sly = "import os\nif os.path.exists('/sockets/again'): os._exit(1)"
    mark = "open('/sockets/again', 'w').close()\nx = 1"
    texts = run(tmp_path, sly, sly, mark, "import os\nos._exit(1)", "print(x)")
    assert texts[3] == "KernelDied"
    assert texts[4] == "1"


def test_without_a_sandbox_grading_stops_and_says_how_to_go_on(monkeypatch, tmp_path):
    monkeypatch.setattr(
        sandbox, "possibility", lambda: sandbox.Possibility(reason="bubblewrap is not installed")
    )
    monkeypatch.delenv(sandbox.UNSANDBOXED_VARIABLE, raising=False)
    with pytest.raises(sandbox.SandboxUnavailable, match="AUTOGRADER_UNSANDBOXED=1"):
        run(tmp_path, "print(1)")


def test_whoever_allows_it_knowingly_runs_without_a_sandbox(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv(sandbox.UNSANDBOXED_VARIABLE, "1")
    (text,) = run(tmp_path, "import os\nprint(os.path.exists('/scratch'))")
    assert text == "False"
    assert "NOT sandboxed" in caplog.text


def test_the_warm_process_is_started_again_after_its_death(mode, tmp_path):
    assert run(tmp_path, "print(1)") == ["1"]
    Shared.process._process.kill()
    Shared.process._process.wait()
    assert run(tmp_path, "print(2)") == ["2"]
