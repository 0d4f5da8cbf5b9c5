"""What a forked process must do before it computes."""

from __future__ import annotations

import sys


def use_one_torch_thread() -> None:
    """Let PyTorch compute without helper threads, if it is loaded.

    Threads do not survive a fork: OpenMP would wait for those of the parent for ever.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
