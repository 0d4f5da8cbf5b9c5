"""Run a submission's cells: bounded in time and output; a dead kernel costs one cell, not all."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient.client import NotebookClient, timestamp
from nbclient.exceptions import CellControlSignal, CellTimeoutError, DeadKernelError
from nbgrader.preprocessors import Execute
from traitlets import Integer

from autograder.grading.verdicts import METADATA_KEY
from autograder.intake.staging import clean_text
from autograder.kernels.batch import run_cells
from autograder.kernels.provisioner import SandboxKernelManager
from autograder.kernels.sandbox import use_sandbox
from autograder.masters import CHECK_PREFIX, KNOWN_TAGS, grade_id

TIMEOUTS = {"CellTimeoutError", "SubmissionTimeout"}
BROKEN = {
    DeadKernelError: (
        "KernelDied",
        "This cell ended Python itself (a crash, an exit, or too much memory).",
    ),
    CellTimeoutError: (
        "CellTimeoutError",
        "This cell ran out of time and ignored the interrupt.",
    ),
}
LONGEST_TEXT = 200_000  # characters of printed text that one cell may keep
LARGEST_DATA = 5_000_000  # characters of displayed data that one cell may keep


def is_skipped(cell: Any) -> bool:
    """Tell whether a cell is an experiment or explorer, which grading leaves out."""
    return grade_id(cell).startswith(tuple(f"{tag}-" for tag in KNOWN_TAGS))


def _is_check(cell: Any) -> bool:
    return grade_id(cell).startswith(CHECK_PREFIX)


def _writable(value: Any) -> Any:
    """Replace what cannot be written as UTF-8 anywhere in a cell's outputs."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, dict):
        return nbformat.from_dict({clean_text(k): _writable(v) for k, v in value.items()})
    return value


def note_timeouts(notebook: Any) -> None:
    """Write into the metadata where a submission ran out of time."""
    names = [
        grade_id(cell) or f"cell {number}"
        for number, cell in enumerate(notebook.cells, 1)
        if any(str(output.get("ename")) in TIMEOUTS for output in cell.get("outputs", []))
    ]
    notebook.metadata.setdefault(METADATA_KEY, {})["timed_out"] = names


class SandboxedExecute(Execute):
    """nbgrader's Execute with sandboxed kernels.

    All cells are tried in one go first, which is quick. Otherwise they are run one by one: when a
    cell kills the kernel or cannot be interrupted, that cell gets an error, a fresh kernel
    runs the answer cells again, and grading goes on with the next cell.
    """

    submission_seconds = Integer(
        300, help="Wall-clock limit for one submission; cells after it are not run."
    ).tag(config=True)

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs["kernel_manager_class"] = SandboxKernelManager
        kwargs.setdefault("shutdown_kernel", "immediate")  # there is nothing to save in it
        super().__init__(*args, **kwargs)

    batch_seconds = Integer(
        10,
        help="All cells are first tried in one go, as long as none takes longer than this many "
        "seconds; if one does, or anything else goes wrong, all begins again cell by cell. "
        "0: cell by cell at once.",
    ).tag(config=True)

    def preprocess(self, nb: Any, resources: Any, km: Any = None) -> tuple[Any, Any]:
        """Execute the notebook within the wall-clock limit."""
        self._deadline = time.monotonic() + self.submission_seconds
        self._harmful: set[int] = set()
        if not self._run_in_one_go(nb, resources):
            nb, resources = super().preprocess(nb, resources, km)
        note_timeouts(nb)
        for cell in nb.cells:
            if "outputs" in cell:
                cell.outputs = _writable(cell.outputs)
        return nb, resources

    def _run_in_one_go(self, nb: Any, resources: Any) -> bool:
        """Try to run all cells the quick way; tell whether that went well."""
        tolerant = self.allow_errors and not self.force_raise_errors
        if not (self.batch_seconds and tolerant and use_sandbox()):
            return False
        NotebookClient.__init__(self, nb)
        self.reset_execution_trackers()
        self._check_assign_resources(resources)
        self.clear_before_next_output = False
        cells = {
            index: cell
            for index, cell in enumerate(nb.cells)
            if cell.cell_type == "code" and cell.source.strip() and not is_skipped(cell)
        }
        for cell in cells.values():
            cell.outputs, cell.metadata["execution"] = [], {}
        sources = [(index, cell.source) for index, cell in cells.items()]
        folder = Path(resources["metadata"].get("path") or ".")
        seconds = min(self.batch_seconds, self.timeout or self.batch_seconds)
        try:
            for index, message in run_cells(folder, sources, seconds, self._deadline):
                self._take(message, cells[index], index)
        except Exception as error:  # what a student's code sends can break anything
            self.log.info("Not in one go (%r): cell by cell.", error)
            for cell in cells.values():
                cell.outputs, cell.execution_count = [], None
                cell.metadata.pop("execution", None)
            return False
        return True

    def _take(self, message: dict[str, Any], cell: Any, index: int) -> None:
        """Work on one message of a cell that runs with all others."""
        if message["msg_type"] == "reply":
            cell.metadata["execution"]["shell.execute_reply"] = timestamp(message)
            self.on_cell_executed(cell=cell, cell_index=index, execute_reply=message)
            self.clear_before_next_output = False
            return
        with contextlib.suppress(CellControlSignal):
            self.process_message(message, cell, index)

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Execute one cell, whatever happens to the kernel."""
        if cell.cell_type != "code" or is_skipped(cell):
            return cell, resources
        if time.monotonic() > self._deadline:
            self._record(cell, "SubmissionTimeout", "The whole notebook took too long.")
            return cell, resources
        try:
            return super().preprocess_cell(cell, resources, index)
        except Exception as error:
            name, message = next(
                (said for kind, said in BROKEN.items() if isinstance(error, kind)),
                ("KernelBroken", "What this cell's kernel sent could not be understood."),
            )
            self.log.warning("%s in cell %s: %s", name, index, error)
            self._record(cell, name, message)
        self._harmful.add(index)
        self._fresh_kernel(index)
        return cell, resources

    def _record(self, cell: Any, name: str, message: str) -> None:
        error = nbformat.v4.new_output(
            "error", ename=name, evalue=message, traceback=[f"{name}: {message}"]
        )
        cell.outputs = [*cell.get("outputs", []), error]

    def _fresh_kernel(self, index: int) -> None:
        """Start a new kernel and run again what stood before `index`, checks excepted.

        A cell that does harm only now is left out too, and all begins again.
        """
        while not self._replay(index):
            pass

    def _replay(self, index: int) -> bool:
        self._cleanup_kernel()
        self.km = self.create_kernel_manager()
        self.start_new_kernel()
        self.start_new_kernel_client()
        for earlier, cell in enumerate(self.nb.cells[:index]):
            if cell.cell_type != "code" or _is_check(cell) or is_skipped(cell):
                continue
            if earlier in self._harmful or time.monotonic() > self._deadline:
                continue
            copy = nbformat.from_dict({**cell, "outputs": []})
            try:
                self.execute_cell(copy, earlier, store_history=True)
            except Exception:
                self._harmful.add(earlier)
                return False
            finally:
                self.nb.cells[earlier] = cell
        return True

    def handle_comm_msg(self, *_: Any) -> None:
        """Leave widgets out: nobody moves them here."""

    @staticmethod
    def _has_room(kind: str, content: dict[str, Any], outputs: list[Any]) -> bool:
        """Tell whether a cell may keep another output; printed text is cut to what fits."""
        if kind == "stream":
            room = LONGEST_TEXT - sum(len(output.get("text", "")) for output in outputs)
            content["text"] = str(content["text"])[: max(room, 0)]
            return room > 0
        size = sum(len(str(output.get("data", ""))) for output in outputs)
        return size + len(str(content.get("data", ""))) <= LARGEST_DATA

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        """Keep outputs up to a size; what is beyond is dropped as it arrives."""
        try:
            if not self._has_room(msg["msg_type"], msg["content"], cell.get("outputs", [])):
                return None
            return super().process_message(msg, cell, cell_index)
        except CellControlSignal:
            raise
        except Exception as error:  # a kernel can send anything: what makes no sense is dropped
            self.log.warning("A message of cell %s was dropped: %r", cell_index, error)
            return None
