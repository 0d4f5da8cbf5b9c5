"""The one Chromium of a test run: two at a time would get in each other's way."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "browser"))
from driver import CHROMIUM_FLAGS, find_chromium


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium. Missing is a failure, not a skip: an untested page is not a tested one."""
    program = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()
