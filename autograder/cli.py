"""The command line: `autograder list`, `try`, `build`, `audit`, `ledger`, `grade`, `late`,
`export`, `report`, `demo`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from autograder.exercises import chapters, find


def list_exercises(arguments: argparse.Namespace) -> int:
    """Print every exercise: id, chapter, points, signature, what is asked."""
    rows = [
        {
            "id": exercise.id,
            "chapter": chapter,
            "points": exercise.points,
            "signature": exercise.signature,
            "asks": exercise.asks,
        }
        for chapter, exercises in chapters().items()
        for exercise in exercises.values()
    ]
    if arguments.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    for row in rows:
        print(f"{row['chapter']}  {row['points']:>3g}  {row['signature']}\n    {row['asks']}")
    return 0


def try_file(arguments: argparse.Namespace) -> int:
    """Grade one file as a candidate for one exercise; exit 0 only if it earns full points."""
    from autograder.grading.trying import try_candidate, verdict_plain

    try:
        _, exercise = find(arguments.exercise)
        source = Path(arguments.file).read_text(encoding="utf-8")
    except KeyError as error:
        return _refuse(error.args[0])
    except (OSError, UnicodeDecodeError) as error:
        return _refuse(f"{arguments.file} cannot be read: {error}")
    verdicts = try_candidate(exercise, source, arguments.seed)
    hidden = verdicts["hidden"]
    if arguments.json:
        plain = {name: verdict_plain(verdict) for name, verdict in verdicts.items()}
        print(json.dumps({**plain["hidden"], "public": plain["public"]}, ensure_ascii=False))
    else:
        for name, plain in verdicts.items():
            print(f"--- {name} cases\n{verdict_plain(plain)['message']}")
    return 0 if hidden.points == hidden.out_of else 1


def _refuse(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


def run_build(arguments: argparse.Namespace) -> int:
    """Rebuild the chapters from their masters; exit 1 if one is broken."""
    from autograder.build import main

    return main()


def run_audit(arguments: argparse.Namespace) -> int:
    """Prove the checks; exit 1 if a threshold is missed."""
    from autograder.audit.run import main

    return main(arguments.exercises)


def run_ledger(arguments: argparse.Namespace) -> int:
    """Run chapters' solutions for the ledger of claims; exit 2 if there is no such chapter."""
    from autograder.ledger import update

    unknown = set(arguments.chapters) - set(chapters())
    if unknown:
        known = ", ".join(chapters())
        return _refuse(f"There is no chapter {', '.join(sorted(unknown))}; there are {known}.")
    update(arguments.chapters or chapters())
    return run_build(arguments)


def run_demo(arguments: argparse.Namespace) -> int:
    """Grade the bundled class; exit 1 if a mark is not the expected one."""
    from autograder.demo.run import main

    return main(Path(arguments.folder))


def run_grade(arguments: argparse.Namespace) -> int:
    """Grade a class; exit 1 if a submission could not be graded, 2 if nothing could be."""
    if not arguments.scheduler:
        from autograder.kernels.warm import warm_up

        course, name = Path(arguments.course_dir), arguments.assignment
        warm_up(course / "solutions" / name, (course / "submitted").glob(f"*/{name}"))
    from autograder.classrun.command import Options, main

    return main(
        Options(
            arguments.assignment,
            Path(arguments.course_dir),
            arguments.workers,
            arguments.scheduler,
            arguments.students,
            arguments.dry_run,
            arguments.force,
        )
    )


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _add_grade(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("grade", help="grade a class, a job for each submission")
    command.add_argument("assignment")
    command.add_argument("--course-dir", default=".", help="the course's folder (default: here)")
    command.add_argument(
        "--workers", type=_at_least_one, help="how many at a time (default: one for each core)"
    )
    command.add_argument("--scheduler", metavar="ADDRESS", help="of a running Dask scheduler")
    command.add_argument(
        "--students", metavar="PATTERN", default="*", help="ids to grade (default: all)"
    )
    command.add_argument(
        "--dry-run", action="store_true", help="write nothing; say whose marks would change"
    )
    command.add_argument("--force", action="store_true", help="grade unchanged submissions too")
    command.set_defaults(run=run_grade)


def run_reporting(arguments: argparse.Namespace) -> int:
    """Export marks, write a report or apply the late policy; exit 2 if there is nothing to do."""
    from autograder.reporting.commands import run

    return run(arguments)


def _add_reporting(commands: argparse._SubParsersAction) -> None:
    helps = {
        "export": "write marks.csv, canvas.csv and moodle.csv",
        "report": "write a page on how the class did",
        "late": "work the late penalties out again, without running anything",
    }
    made = {name: commands.add_parser(name, help=text) for name, text in helps.items()}
    for name, command in made.items():
        command.add_argument("assignment")
        command.add_argument(
            "--course-dir", default=".", help="the course's folder (default: here)"
        )
        command.set_defaults(run=run_reporting, command=name)
    export = made["export"]
    export.add_argument("--to", metavar="FOLDER", default="export", help="default: export/")
    export.add_argument(
        "--answers", metavar="FOLDER", help="write students' code too, for JPlag or Dolos"
    )
    export.add_argument(
        "--column", default="", help="the marks' name in the LMS (default: the assignment's)"
    )
    export.add_argument(
        "--partial", action="store_true", help="count answers that wait for a mark as 0"
    )
    made["report"].add_argument("--to", metavar="FILE", help="default: ASSIGNMENT-report.html")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="autograder", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("list", help="list the exercises")
    command.add_argument("--json", action="store_true")
    command.set_defaults(run=list_exercises)

    command = commands.add_parser("try", help="run a file through an exercise as grading does")
    command.add_argument("exercise")
    command.add_argument("file", help="a Python file that defines the exercise's function")
    command.add_argument("--json", action="store_true")
    command.add_argument("--seed", type=int, help="seed of the hidden cases (default: a fresh one)")
    command.set_defaults(run=try_file)

    command = commands.add_parser("build", help="rebuild every built file from the masters")
    command.set_defaults(run=run_build)

    command = commands.add_parser("audit", help="prove the checks")
    command.add_argument("exercises", nargs="*", help="ids (default: all)")
    command.set_defaults(run=run_audit)

    command = commands.add_parser("ledger", help="record what the experiments say of the claims")
    command.add_argument("chapters", nargs="*", help="such as 02_attention (default: all)")
    command.set_defaults(run=run_ledger)

    _add_grade(commands)

    _add_reporting(commands)

    command = commands.add_parser("demo", help="grade a bundled class of submissions")
    command.add_argument("--folder", default="build/demo")
    command.set_defaults(run=run_demo)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = parser().parse_args(argv)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
