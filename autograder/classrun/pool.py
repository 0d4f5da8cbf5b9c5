"""Run jobs on Dask: on this machine's cores, or on the cluster behind a scheduler's address.

Dask starts a new worker for one that dies and runs its job again. One code path for both serves
Slurm and Kubernetes too, whose clusters Dask knows how to start.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
from distributed import Client, Future, LocalCluster, as_completed
from distributed.scheduler import KilledWorker

from autograder.classrun.course import CannotGrade
from autograder.classrun.job import Job, Result, grade_submission

RETRIES = 2  # of a job whose worker died
CONNECT_SECONDS = 20
SETTINGS = {
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.worker.profile.enabled": False,
}


@contextlib.contextmanager
def local_client(workers: int, scratch: Path) -> Iterator[Client]:
    """Start workers on this machine, and end them at the end.

    The connections are encrypted with keys made for this run: otherwise whoever else has an
    account on this machine could send the workers code to run.
    """
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            security=True,
            dashboard_address="127.0.0.1:0",
            local_directory=str(scratch),
            env={"TMPDIR": str(scratch)},  # what a killed worker leaves goes with the run
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def remote_client(address: str) -> Iterator[Client]:
    """Connect to a running scheduler; raise CannotGrade if there is none."""
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise CannotGrade(f"No Dask scheduler answers at {address!r}: {error}") from error
    with client:
        yield client


def _threads(client: Client) -> int:
    return sum(client.nthreads().values())


def _outcome(future: Future) -> Result | str:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KilledWorker):
        return "The process that graded it was ended from outside or crashed, again and again."
    return f"Grading it ended in an error ({type(error).__name__}: {str(error)[:200]})."


def run_jobs(
    client: Client, todo: deque[Callable[[], Job]], at_least: int
) -> Iterator[tuple[Job, Result | str]]:
    """Run jobs and yield each with its result, or with the reason why there is none, as they end.

    There are never more jobs under way than threads to run them (or `at_least`): a job that
    waits in a worker would share the blame when that worker dies. `todo` may grow meanwhile.
    """
    running: dict[Future, Job] = {}
    finished = as_completed(loop=client.loop)

    def fill() -> None:
        while todo and len(running) < max(at_least, _threads(client)):
            job = todo.popleft()()
            future = client.submit(grade_submission, job, pure=False)
            running[future] = job
            finished.add(future)

    fill()
    while running:
        future = next(finished)
        job = running.pop(future)
        fill()  # before the result is worked on: the worker has something to do meanwhile
        yield job, _outcome(future)
        del future
        fill()
