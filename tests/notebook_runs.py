"""Run a chapter's notebook without a browser and read what it complained about."""

from __future__ import annotations

import shutil
import sys

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

from autograder.masters import ROOT


def errors_and_warnings(notebook):
    """(index of the cell, what it says) of every error and of all that went to stderr."""
    told = []
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                told.append((index, "\n".join(output.traceback)))
            elif output.output_type == "stream" and output.name == "stderr":
                told.append((index, "stderr: " + output.text))
    return told


def kernel_without_network(folder):
    """A kernel that reaches no network, not even this machine's; its sockets are in `folder`."""
    sockets = str(folder / "kernel")
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=sockets)
    cut = ["bwrap", "--unshare-net", "--die-with-parent", "--dev-bind", "/", "/"]
    manager.kernel_spec.argv = [*cut, sys.executable, *manager.kernel_spec.argv[1:]]
    return manager


def run_chapter(kind, chapter, folder, left_out=lambda cell: False, first="", kernel=None):
    """Runs a copy of a built notebook ("course" or "solutions"); cells left out stay unrun.

    `first` is code that runs before the notebook's own. `kernel`: the manager of another kernel
    than the usual.
    """
    copy = shutil.copytree(ROOT / kind / chapter, folder / chapter)
    notebook = nbformat.read(copy / f"{chapter}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and left_out(cell):
            cell.source = ""
    if first:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    resources = {"metadata": {"path": str(copy)}}
    client = NotebookClient(
        notebook, km=kernel, timeout=600, allow_errors=True, resources=resources
    )
    client.execute(cleanup_kc=True)
    return notebook
