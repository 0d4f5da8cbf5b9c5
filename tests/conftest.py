"""What all tests share: one Chromium, and an order in which no worker waits at the end."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "browser"))
from driver import CHROMIUM_FLAGS, find_chromium

# They take minutes: begun last, one of them would keep a single worker busy at the end.
LONGEST_FIRST = ("test_solutions", "test_audit", "test_accidents", "test_attacks", "test_releases")


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest; the workers take files in this order."""
    order = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="module")
def one_torch_thread():
    """Compute in one thread: several would wait for each other on a busy machine."""
    import torch  # here, so that tests which do without torch start without it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium. Missing is a failure, not a skip: an untested page is not a tested one."""
    program = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()
