"""Processes forked from one in which PyTorch has computed with several threads do not hang."""

import subprocess
import sys

import pytest

PARALLEL = """
import torch
torch.set_num_threads(2)
def compute(*_, **__):
    return float(torch.rand(600, 600).softmax(1).sum())
compute()
"""
AUDIT = """
from autograder.audit import run
run.audit_by_id = compute
print(len(run.audit_all(["one", "two"])))
"""
CLASS_RUN = """
from collections import deque
from pathlib import Path
from autograder.classrun import local
local.grade_submission = compute
print(len(list(local.run_jobs(deque([lambda: "one", lambda: "two"]), 2, Path(".")))))
"""


@pytest.mark.parametrize("code", [AUDIT, CLASS_RUN], ids=["audit", "class run"])
def test_a_forked_process_computes(code, tmp_path):
    command = [sys.executable, "-c", PARALLEL + code]
    ended = subprocess.run(command, timeout=100, cwd=tmp_path, capture_output=True, text=True)
    assert ended.stdout == "2\n", ended.stderr
