"""The harness must notice what it is there to notice."""

from __future__ import annotations

import driver
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("address", ["https://example.org/x.js", "http://192.0.2.1/x.js"])
def test_requests_to_the_outside_are_recorded_and_fail(new_page, address):
    page = new_page()
    page.set_content("<p>hello</p>")
    failed = page.evaluate("(url) => fetch(url).then(() => false, () => true)", address)
    assert failed and page.outside == [address]
    page.outside.clear()


@pytest.mark.slow
def test_a_failing_cell_is_told(open_notebook):
    nb = open_notebook("1 / 0", "2")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        nb.run_all()


def test_a_missing_browser_is_told(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(AssertionError, match="apt-get install chromium"):
        driver.find_chromium()
