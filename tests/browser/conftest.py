"""Fixtures of the browser tests: one JupyterLab and one Chromium for the whole run."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from driver import Lab, NotebookPage, guarded_page, write_notebook


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A private JupyterLab; `lab.root` is the folder it serves."""
    server = Lab(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def context(browser):
    """One browser profile for all pages, so that JupyterLab's scripts are loaded once."""
    shared = browser.new_context(viewport={"width": 1280, "height": 1100})
    yield shared
    shared.close()


@contextlib.contextmanager
def pages_without_network(context):
    """Gives a function that opens an empty page; at the end no page may have asked outside."""
    pages = []

    def make():
        pages.append(guarded_page(context))
        return pages[-1]

    yield make
    outside = [address for page in pages for address in page.outside]
    complaints = [text for page in pages for text in page.complaints]
    for page in pages:
        page.close()
    assert not outside, f"the page asked for something outside this machine: {outside}"
    assert not complaints, f"JavaScript errors in the page: {complaints}"


@pytest.fixture
def new_page(context):
    """new_page() gives an empty page; the test fails if it asks for something outside."""
    with pages_without_network(context) as make:
        yield make


@pytest.fixture(scope="module")
def module_notebook(context, lab, request):
    """One notebook for all tests of a module: its constant CELLS, already run."""
    path = f"{request.module.__name__}.ipynb"
    write_notebook(lab.root / path, request.module.CELLS)
    with pages_without_network(context) as make:
        notebook = NotebookPage(make(), lab, path)
        notebook.run_all()
        yield notebook
        lab.shut_kernels_down()


@pytest.fixture
def open_notebook(lab, new_page, request):
    """open_notebook("first cell", "md:some text", "third cell") writes a notebook and opens it.

    open_notebook(path="01_shapes/01_shapes.ipynb") opens one that is already below `lab.root`,
    for example after `open_folder`. Kernels are shut down after the test.
    """

    def make(*cells, path=None):
        if path is None:
            path = re.sub(r"\W+", "_", request.node.name) + ".ipynb"
            write_notebook(lab.root / path, cells)
        return NotebookPage(new_page(), lab, path)

    yield make
    lab.shut_kernels_down()


@pytest.fixture
def open_folder(lab, open_notebook):
    """open_folder(folder, "01_shapes.ipynb") opens a notebook of an existing folder.

    The folder (for example `REPOSITORY / "course" / "01_shapes"`, with `REPOSITORY` from
    `driver`) is copied below `lab.root` first, files beside the notebook included, so the test
    can change and save what it likes. Returns a `NotebookPage`: `run_all()`, `cell(i)`,
    `save()`, `run_cell(i)`; its `path` is relative to `lab.root`.
    """

    def make(folder, notebook):
        folder = Path(folder)
        shutil.copytree(folder, lab.root / folder.name, dirs_exist_ok=True)
        return open_notebook(path=f"{folder.name}/{notebook}")

    return make
