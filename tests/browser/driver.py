"""Drives a real JupyterLab in a real Chromium, with everything but the loopback cut off."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

import nbformat

REPOSITORY = Path(__file__).resolve().parents[2]
SCREENSHOTS = REPOSITORY / "build" / "screenshots"
OVERRIDES = REPOSITORY / "attention_course" / "jupyterlab" / "overrides.json"
CHROMIUM_FLAGS = [
    *(
        "--no-sandbox",
        "--disable-gpu",
        "--disable-component-update",
        "--disable-background-networking",
    ),
    # No name and no address but the loopback's leads anywhere. (Refusing requests one by one with
    # Playwright's routes would switch the HTTP cache off: JupyterLab then takes twice as long.)
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
TRACEBACK = '[data-mime-type="application/vnd.jupyter.stderr"]'


def find_chromium() -> str:
    """The path of the browser; AssertionError, saying what to install, if there is none."""
    asked = os.environ.get("CHROMIUM")
    path = asked or shutil.which("chromium") or shutil.which("chromium-browser")
    if not path or not os.access(path, os.X_OK):
        where = f" at CHROMIUM={asked}" if asked else ""
        raise AssertionError(
            f"The browser tests need Chromium and found none{where}."
            " Install it (apt-get install chromium), or set CHROMIUM to the program's full path."
        )
    return path


class Lab:
    """A JupyterLab server of our own: private settings, workspaces, runtime and token.

    It is started in the folder it serves: `root`, or a new one below `folder`.
    """

    def __init__(self, folder: Path, root: Path | None = None):
        self.root = root or folder / "notebooks"
        self.root.mkdir(parents=True, exist_ok=True)
        private = folder / "private"
        self.token = secrets.token_hex(12)
        config = private / "config" / "labconfig"
        config.mkdir(parents=True)
        # What the course ships, and: draw all cells, also those outside the window.
        settings = json.loads(OVERRIDES.read_text(encoding="utf-8"))
        settings["@jupyterlab/notebook-extension:tracker"] = {"windowingMode": "none"}
        (config / "default_setting_overrides.json").write_text(json.dumps(settings))
        environment = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(private / "config"),
            "JUPYTER_DATA_DIR": str(private / "data"),
            "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(private / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(private / "workspaces"),
            "IPYTHONDIR": str(private / "ipython"),
            "MPLCONFIGDIR": str(private / "matplotlib"),
        }
        for name in ("MPLBACKEND", "NBGRADER_EXECUTION"):
            environment.pop(name, None)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log_path = private / "server.log"
        self._log = self._log_path.open("wb")
        self._server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0"),
                f"--IdentityProvider.token={self.token}",
                f"--ServerApp.root_dir={self.root}",
            ],
            cwd=self.root,
            env=environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._server.poll() is None:
            with contextlib.suppress(OSError):
                self.rest("GET", "status")
                return
            time.sleep(0.2)
        self.close()
        log = self._log_path.read_text(errors="replace")
        raise RuntimeError(f"JupyterLab did not start:\n{log[-3000:]}")

    def rest(self, method: str, path: str):
        """One call of the server's REST interface; the decoded answer."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def shut_kernels_down(self) -> None:
        for session in self.rest("GET", "sessions"):
            with contextlib.suppress(urllib.error.HTTPError):
                self.rest("DELETE", f"sessions/{session['id']}")

    def close(self) -> None:
        """Ends the server and its kernels: the process group that was started here."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGTERM)
        try:
            self._server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._server.pid, signal.SIGKILL)
        self._log.close()


def guarded_page(context):
    """A page whose `outside` lists the requests that went beyond this machine; none gets there."""
    page = context.new_page()
    page.outside, page.complaints = [], []

    def note(request):
        address = urlsplit(request.url)
        inside = address.scheme in {"data", "blob", "file", "about"} or address.hostname in LOOPBACK
        if not inside:
            page.outside.append(request.url)

    page.on("request", note)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    return page


def write_notebook(path: Path, cells) -> None:
    """A notebook of code cells; a cell that starts with "md:" becomes Markdown."""
    v4 = nbformat.v4
    made = [
        v4.new_markdown_cell(cell[3:]) if cell.startswith("md:") else v4.new_code_cell(cell)
        for cell in cells
    ]
    # Without a kernel's name JupyterLab opens a dialog instead of running.
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(v4.new_notebook(cells=made, metadata={"kernelspec": kernel}), path)


class NotebookPage:
    """One notebook, open in JupyterLab."""

    def __init__(self, page, lab: Lab, path: str):
        self.page, self.lab, self.path = page, lab, path
        # A workspace of its own: the default one brings back the tabs of earlier tests.
        workspace = secrets.token_hex(5)
        page.goto(f"{lab.url}/lab/workspaces/{workspace}/tree/{quote(path)}?token={lab.token}")
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        self.panel.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        self._wait_for_kernel()

    def _wait_for_kernel(self, timeout: float = 60_000) -> None:
        # The indicator also says "idle" while there is no kernel yet, hence the name.
        self.page.wait_for_function(
            """() => {
              const panel = document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden)");
              const name = panel?.querySelector(".jp-Toolbar-kernelName")?.textContent;
              const light = panel?.querySelector(".jp-Notebook-ExecutionIndicator");
              return name && !name.includes("No Kernel") && light?.dataset.status === "idle";
            }""",
            timeout=timeout,
        )

    def menu(self, title: str, command: str) -> None:
        """A menu entry by its command id; keyboard shortcuts get lost in focused frames."""
        self.page.get_by_role("menuitem", name=title, exact=True).click()
        self.page.locator(f".lm-Menu-item[data-command='{command}']").click()

    def run_all(self, timeout: float = 90_000) -> None:
        """Runs every cell; AssertionError with the traceback if one fails."""
        self.menu("Run", "runmenu:run-all")
        self.page.wait_for_function(
            """(errors) => {
              const panel = document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden)");
              const prompts = [...panel.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
                .map((prompt) => prompt.textContent.trim());
              const failed = [...panel.querySelectorAll(errors)]
                .some((output) => output.textContent.includes("Traceback"));
              return failed || prompts.every((prompt) => /^\\[\\d+\\]:$/.test(prompt));
            }""",
            arg=TRACEBACK,
            timeout=timeout,
        )
        self._wait_for_kernel(timeout)
        errors = self.panel.locator(TRACEBACK).filter(has_text="Traceback").all_inner_texts()
        if errors:
            raise AssertionError(f"a cell of {self.path} failed:\n{errors[0][-2000:]}")

    def run_past_errors(self, timeout: float = 90_000) -> None:
        """Runs every cell, going on below each that fails, as a reader does."""
        self.menu("Run", "runmenu:run-all")
        while True:
            self._wait_for_kernel(timeout)
            # Prompts lag behind the kernel's light; "[*]" is a cell that still waits.
            self.page.wait_for_function(
                """() => ![...document.querySelectorAll(
                  ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell .jp-InputPrompt")]
                  .some((prompt) => prompt.textContent.includes("*"))""",
                timeout=timeout,
            )
            left = self.panel.locator(
                ".jp-CodeCell:has(.jp-InputPrompt:text-matches('^\\\\[ *\\\\]:$'))"
            )
            if left.count() == 0:
                return
            left.first.locator(".jp-InputPrompt").click()
            self.menu("Run", "notebook:run-all-below")

    def type_into(self, index: int, text: str) -> None:
        """Replaces what stands in a cell's editor."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def index_of(self, text: str) -> int:
        """The index of the one cell whose source contains `text`."""
        sources = [cell.source for cell in self.saved().cells]
        (index,) = (i for i, source in enumerate(sources) if text in source)
        return index

    def saved(self) -> nbformat.NotebookNode:
        """The notebook as it is on disk."""
        return nbformat.read(self.lab.root / self.path, as_version=4)

    def save(self) -> None:
        self.menu("File", "docmanager:save")
        self.page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")

    def cell(self, index: int):
        """The cell at `index`, Markdown cells counted too."""
        return self.panel.locator(".jp-Cell").nth(index)

    def run_cell(self, index: int) -> str:
        """Runs one cell again and gives the text of its output."""
        prompt = self.cell(index).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "([p, old]) => /\\d/.test(p.textContent) && p.textContent.trim() !== old",
            arg=[prompt.element_handle(), before.strip()],
        )
        self._wait_for_kernel()
        return self.cell(index).locator(".jp-Cell-outputArea").inner_text()


def picture(locator) -> bytes:
    """What can be seen of `locator`, once two pictures in a row agree."""
    last = None
    for _ in range(25):
        seen = locator.screenshot(animations="disabled")
        if seen == last:
            return seen
        last = seen
        locator.page.wait_for_timeout(60)
    raise AssertionError("the picture does not come to rest")


@contextlib.contextmanager
def picture_changes(locator):
    """Fails unless the picture of `locator` after the block differs from the one before it."""
    before = picture(locator)
    yield
    for _ in range(10):
        if picture(locator) != before:
            return
        locator.page.wait_for_timeout(100)
    raise AssertionError("the picture did not change")


def keep(locator, name: str) -> None:
    """Saves a screenshot as build/screenshots/`name`.png."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    locator.screenshot(path=str(SCREENSHOTS / f"{name}.png"), animations="disabled")


def keep_cells(notebook: NotebookPage, first: int, last: int, name: str) -> None:
    """Saves a screenshot of the cells `first` to `last`, which must fit into the window."""
    notebook.cell(first).evaluate("cell => cell.scrollIntoView({block: 'start'})")
    top, bottom = (notebook.cell(index).bounding_box() for index in (first, last))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    notebook.page.screenshot(
        path=str(SCREENSHOTS / f"{name}.png"),
        animations="disabled",
        clip={
            **{key: top[key] for key in ("x", "y", "width")},
            "height": bottom["y"] + bottom["height"] - top["y"],
        },
    )


def leave(frame) -> None:
    """Walks the mouse out of an iframe; if it jumps, the page inside never hears that it left."""
    box = frame.bounding_box()
    x = box["x"] + box["width"] - 6
    frame.page.mouse.move(x, box["y"] + box["height"] / 2, steps=12)
    frame.page.mouse.move(x, box["y"] - 25, steps=20)
