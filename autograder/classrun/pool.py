"""Run jobs on the Dask cluster behind a scheduler's address.

Dask starts a new worker for one that dies and runs its job again. Slurm and Kubernetes are served
so too: Dask knows how to start clusters there.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator

from distributed import Client, Future, as_completed
from distributed.scheduler import KilledWorker

from autograder.classrun.course import CannotGrade
from autograder.classrun.job import Job, Result, grade_submission
from autograder.classrun.local import CRASHED, said

CONNECT_SECONDS = 20


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
        return CRASHED
    return said(error)


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
