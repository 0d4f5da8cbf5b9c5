"""Run jobs on this machine: workers are forked from the main process, which has imported all.

A worker that dies is replaced and its job runs again. Dask would do the same, but its workers each
import everything anew, which takes longer than grading a small class.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from autograder.classrun.job import Job, Result, grade_submission
from autograder.forking import use_one_torch_thread

RETRIES = 2  # of a job whose worker died
CRASHED = "The process that graded it was ended from outside or crashed, again and again."
_FORK = multiprocessing.get_context("fork")


def said(error: BaseException) -> str:
    """Say why there is no result."""
    return f"Grading it ended in an error ({type(error).__name__}: {str(error)[:200]})."


def _work(pipe: Connection, others: list[Connection], folder: Path) -> None:
    """Be a worker: grade what comes through the pipe until it is closed."""
    for other in others:  # else a worker would not notice the end of the main process
        other.close()
    use_one_torch_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the main process
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    with contextlib.suppress(EOFError):
        while True:
            job = pipe.recv()
            try:
                outcome: Result | str = grade_submission(job)
            except Exception as error:
                outcome = said(error)
            pipe.send(outcome)


@dataclass(eq=False)
class Worker:
    """A process that grades, and the main process's end of the pipe to it."""

    process: multiprocessing.Process
    pipe: Connection
    job: Job | None = None
    tries: int = 0

    @classmethod
    def start(cls, others: list[Connection], folder: Path) -> Worker:
        """Fork a worker; its temporary files go into `folder`."""
        ours, theirs = _FORK.Pipe()
        arguments = (theirs, [*others, ours], folder)
        process = _FORK.Process(target=_work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def begin(self, job: Job, tries: int) -> None:
        """Give it a job."""
        self.job, self.tries = job, tries
        with contextlib.suppress(OSError):  # it is dead: `outcome` says so
            self.pipe.send(job)

    def outcome(self) -> Result | str | None:
        """Return what became of the job; None if the process has died of it."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_jobs(
    todo: deque[Callable[[], Job]], count: int, folder: Path
) -> Iterator[tuple[Job, Result | str]]:
    """Run jobs on `count` workers and yield each with its result, or the reason why there is none.

    They come as they end. `todo` may grow meanwhile.
    """
    workers: list[Worker] = []
    gc.freeze()  # workers need not look through, and so copy, what they inherit

    def begin(job: Job, tries: int) -> None:
        worker = next((worker for worker in workers if worker.job is None), None)
        if worker is None:
            worker = Worker.start([other.pipe for other in workers], folder)
            workers.append(worker)
        worker.begin(job, tries)

    def fill() -> None:
        while todo and sum(worker.job is not None for worker in workers) < count:
            begin(todo.popleft()(), 1)

    try:
        fill()
        while any(worker.job is not None for worker in workers):
            ready = wait([worker.pipe for worker in workers if worker.job is not None])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                job, outcome = worker.job, worker.outcome()
                worker.job = None
                if outcome is None:
                    worker.end()
                    workers.remove(worker)
                    if worker.tries <= RETRIES:
                        begin(job, worker.tries + 1)
                        continue
                fill()  # before the result is worked on: the worker has something to do meanwhile
                yield job, outcome or CRASHED
                fill()
    finally:
        for worker in workers:
            worker.end()
        gc.unfreeze()
