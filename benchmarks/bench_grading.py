"""`make bench`: stock nbgrader against this course's grading, as ratios within one run.

The same 24 submissions are graded, cell for cell the same code, by stock nbgrader (fresh kernels,
no sandbox, the public checks), by ours through `nbgrader autograde`, by `autograder grade` with one
and two workers, by our warm kernels without the locks (what the sandbox costs), and by a plain loop
in one process (the floor). Once as chapter 02 is, once with PyTorch imported in its first cell.
Modes take turns, so that a busy machine is busy for all; medians over the rounds go into
`build/bench.json`. README.md says what the numbers mean.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil

from autograder.build import put_tools_on_path, write_source
from autograder.masters import KNOWN_TAGS, ROOT, grade_id

CHAPTER = "02_attention"
HERE = Path(__file__).resolve().parent
OURS = f"""import os
c = get_config()
load_subconfig("nbgrader_config.py", path={str(ROOT / "autograder")!r})
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
"""
STOCK = """import os
c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
"""
NBGRADER = [str(Path(sys.executable).with_name("nbgrader")), "autograde", CHAPTER]
GRADE = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--course-dir", "."]
MODES = {
    "stock": (STOCK, NBGRADER),
    "plain": (OURS, NBGRADER),
    "unlocked": (OURS, [sys.executable, str(HERE / "unlocked.py"), *NBGRADER[1:]]),
    "workers1": (OURS, [*GRADE, "--workers", "1"]),
    "workers2": (OURS, [*GRADE, "--workers", "2"]),
    "floor": (OURS, [sys.executable, str(HERE / "floor.py"), CHAPTER]),
}


def make_source(folder: Path, with_torch: bool) -> nbformat.NotebookNode:
    """Write the chapter's source without cells that grading skips; return the notebook."""
    write_source(CHAPTER, folder, ROOT / "solutions")
    path = folder / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    skipped = tuple(f"{tag}-" for tag in KNOWN_TAGS)
    notebook.cells = [cell for cell in notebook.cells if not grade_id(cell).startswith(skipped)]
    if with_torch:
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        first.source = "import torch\n" + first.source
    nbformat.write(notebook, path)
    return notebook


def make_submission(solution: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    """Make a submission in which one exercise, another one each time, is not answered."""
    notebook = copy.deepcopy(solution)
    answers = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    ]
    # Later answers call the first two: leave those in.
    blank = answers[2 + number % (len(answers) - 2)]
    blank.source = f"def {grade_id(blank)}(*args, **kwargs):\n    raise NotImplementedError"
    return notebook


def make_course(folder: Path, count: int, with_torch: bool) -> None:
    """Make a course folder with `count` submissions, ready to be graded by any mode."""
    solution = make_source(folder / "solutions" / CHAPTER, with_torch)
    for number in range(count):
        target = folder / "submitted" / f"student{number:04d}" / CHAPTER
        target.mkdir(parents=True)
        nbformat.write(make_submission(solution, number), target / f"{CHAPTER}.ipynb")
    (folder / "nbgrader_config.py").write_text(STOCK)
    command = [NBGRADER[0], "generate_assignment", CHAPTER]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def usage(process: psutil.Process, seen: dict[int, float]) -> float:
    """Update the CPU seconds of every process of a tree; return the tree's memory in MB."""
    memory = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
            seen[one.pid] = times.user + times.system
            memory += one.memory_full_info().pss / 2**20
        except psutil.Error:
            continue
    return memory


def timed(mode: str, course: Path) -> dict[str, float]:
    """Grade a fresh copy of a course in one mode; return wall, CPU and peak memory."""
    config, command = MODES[mode]
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder, log = Path(scratch, "course"), Path(scratch, "log")
        shutil.copytree(course, folder)
        (folder / "nbgrader_config.py").write_text(config)
        start, peak = time.monotonic(), 0.0
        seen: dict[int, float] = {}
        with log.open("w") as output:
            process = psutil.Popen(command, cwd=folder, stdout=output, stderr=output)
            while process.poll() is None:
                peak = max(peak, usage(process, seen))
                time.sleep(0.25)
        wall = time.monotonic() - start
        if process.returncode:
            raise SystemExit(f"{mode} failed:\n{log.read_text()[-3000:]}")
    return {"wall": wall, "cpu": sum(seen.values()), "peak_mb": peak}


def compare(count: int, rounds: int, with_torch: bool) -> dict[str, list[dict[str, float]]]:
    """Run all modes in turn, `rounds` times."""
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="bench-course-") as folder:
        make_course(Path(folder), count, with_torch)
        for number in range(rounds):
            for mode in MODES:
                run = timed(mode, Path(folder))
                runs[mode].append(run)
                name = "torch" if with_torch else "numpy"
                print(f"{name} round {number + 1} {mode:9} {run['wall']:6.1f} s wall", flush=True)
    return runs


def breakdown(count: int) -> dict[str, float]:
    """Say where the time of a submission goes once all is warm."""
    with tempfile.TemporaryDirectory(prefix="bench-course-") as folder:
        make_course(Path(folder), count, with_torch=False)
        (Path(folder) / "nbgrader_config.py").write_text(OURS)
        command = [sys.executable, str(HERE / "breakdown.py"), CHAPTER]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print("\nA submission, once all is warm (ms):    processor   wall-clock")
    for name, seconds in found["cpu"].items():
        print(f"  {name:<36} {seconds * 1000:9.1f} {found['wall'][name] * 1000:12.1f}")
    print(f"  {'kernel in the sandbox':<36} {found['kernel_cpu'] * 1000:9.1f}")
    print(f"  {'floor':<36} {found['floor_cpu'] * 1000:9.1f} {found['floor_wall'] * 1000:12.1f}\n")
    return found


def growth(sizes: list[int]) -> list[dict[str, float]]:
    """Grade classes of several sizes with two workers: time and memory per submission."""
    results = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="bench-course-") as folder:
            make_course(Path(folder), size, with_torch=False)
            run = {"submissions": size, **timed("workers2", Path(folder))}
        results.append(run)
        print(f"{size:5} submissions {run['wall']:7.1f} s {run['peak_mb']:6.0f} MB", flush=True)
    return results


def median(runs: list[dict[str, float]], key: str = "wall") -> float:
    """Return the median of one measure over the rounds."""
    return statistics.median(run[key] for run in runs)


def summarise(all_runs: dict[str, dict], count: int) -> dict:
    """Turn runs into the ratios that the targets speak of, the worse chapter of each."""
    ratios: dict[str, dict[str, float]] = {}
    for name, runs in all_runs.items():
        stock, floor = median(runs["stock"]), median(runs["floor"])
        ratios[name] = {
            "throughput_ratio_workers2": stock / median(runs["workers2"]),
            "throughput_ratio_plain": stock / median(runs["plain"]),
            "floor_ratio": median(runs["workers1"]) / floor,
            "sandbox_cost": median(runs["plain"]) / median(runs["unlocked"]) - 1,
        }
    worse = {"floor_ratio": max, "sandbox_cost": max}
    summary = {
        key: worse.get(key, min)(ratios[name][key] for name in ratios)
        for key in next(iter(ratios.values()))
    }
    cpu = {
        mode: {name: median(runs[mode], "cpu") for name, runs in all_runs.items()} for mode in MODES
    }
    return {
        **summary,
        "by_chapter": ratios,
        "cpu_seconds": cpu,  # what a busy machine distorts less than wall-clock times
        "submissions": count,
        "runs": all_runs,
    }


def main() -> None:
    """Run the benchmark and write `build/bench.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", type=int, nargs="*", default=[10, 100, 1000])
    arguments = parser.parse_args()
    put_tools_on_path()
    all_runs = {
        name: compare(arguments.submissions, arguments.rounds, with_torch)
        for name, with_torch in (("numpy", False), ("torch", True))
    }
    summary = summarise(all_runs, arguments.submissions)
    summary["breakdown"] = breakdown(min(arguments.submissions, 12))
    summary["floor_ratio_warm"] = summary["breakdown"]["floor_ratio_warm"]
    summary["growth"] = growth(arguments.growth)
    summary["cores"] = os.cpu_count()
    path = ROOT / "build" / "bench.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(summary, indent=1))
    for key, value in summary.items():
        if isinstance(value, float):
            print(f"{key}: {value:.2f}")
    print(f"All runs: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
