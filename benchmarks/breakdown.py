"""Where the time of a submission goes, in a process that is warm already; beside it the floor.

Started in a course folder; prints JSON. Seconds for each submission: wall-clock and processor time
of every step in the grading process, processor time of the kernel in the sandbox, and the same
cells and verdicts by the plain loop of `floor.py`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import floor
import nbformat
import psutil
from nbconvert.preprocessors import Preprocessor

from autograder.classrun.course import Course
from autograder.classrun.job import grade_submission
from autograder.kernels.warm import warm_up


class Clock:
    """Adds up wall-clock and processor seconds by name; what is inside another counts for both."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)

    def measure(self, name, function, *arguments):
        wall, cpu = time.perf_counter(), time.process_time()
        result = function(*arguments)
        self.wall[name] += time.perf_counter() - wall
        self.cpu[name] += time.process_time() - cpu
        return result


def kernels_seconds() -> float:
    """Return the processor time of all processes that this one has started, ended ones too."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        times = process.cpu_times()
        total += sum((times.user, times.system, times.children_user, times.children_system))
    return total


def each(numbers: dict[str, float], count: int) -> dict[str, float]:
    return {name: round(number / count, 4) for name, number in sorted(numbers.items())}


def main() -> None:
    """Grade the submissions of the course folder twice: as ours does, and by the floor."""
    chapter, clock = sys.argv[1], Clock()
    warm_up(Path("solutions", chapter), Path("submitted").glob(f"*/{chapter}"))
    course = Course(Path("."), chapter)
    folders = course.submissions("*")
    with course.open_gradebook() as gradebook:
        shared = course.shared(gradebook, course.secret(make=True))
    first, *others = folders.items()
    grade_submission(course.job(*first, shared))

    really_call = Preprocessor.__call__
    Preprocessor.__call__ = lambda self, nb, resources: clock.measure(
        type(self).__name__, really_call, self, nb, resources
    )
    before = kernels_seconds()
    for student, folder in others:
        job = clock.measure("(clean copy)", course.job, student, folder, shared)
        clock.measure("(all of a job)", grade_submission, job)
    time.sleep(0.5)  # until the last kernel's time is known
    kernel = kernels_seconds() - before
    floor_clock = Clock()
    folders = {student: folder.resolve() for student, folder in folders.items()}
    os.chdir(Path("solutions", chapter))  # where the public examples lie
    for seed, (_, folder) in enumerate(folders.items(), 1):
        notebook = nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
        arguments = floor.grade, notebook, chapter, seed
        (floor_clock if seed > 1 else Clock()).measure("floor", *arguments)
    count = len(others)
    grader = clock.cpu["(clean copy)"] + clock.cpu["(all of a job)"]
    found = {
        "wall": each(clock.wall, count),
        "cpu": each(clock.cpu, count),
        "kernel_cpu": kernel / count,
        "floor_wall": floor_clock.wall["floor"] / count,
        "floor_cpu": floor_clock.cpu["floor"] / count,
        "floor_ratio_warm": (grader + kernel) / floor_clock.cpu["floor"],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
