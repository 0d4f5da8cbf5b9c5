"""What the audit asks of one exercise: right answers pass, each kind of wrong one loses points.

Every question is a function `(report, trials, answer)` that adds facts and failures to the report;
`QUESTIONS` lists them. A trial is the cases of one seed with what the reference and the
misconceptions do on them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from attention_course.comparing import compare, same_outcome
from attention_course.judging import Verdict
from autograder.audit.answers import Answer
from autograder.audit.lazy import lazy_functions, lazy_outcomes
from autograder.audit.mutants import make_mutants
from autograder.audit.trials import Report, Trial, make_trial, margin, watched_run
from autograder.exercise import PUBLIC_SEED, Exercise

STUB_POINTS = 0
LAZY_POINTS = 0
# The solution, all accepted answers and all misconceptions: no share, every single one.
NAMED_SHARE = 0.9
KILLED_SHARE = 0.95  # of the mutants that are not listed as equivalent
SMALLEST_MARGIN = 100.0  # difference over tolerance, of the misconception that is hardest to see
SLOW_SECONDS = 1.0  # noted, never a failure: clocks are unfair on busy machines

HIDDEN_SEEDS = tuple(range(1, 11))
MUTANT_SEEDS = (PUBLIC_SEED, *HIDDEN_SEEDS[:2])  # a mutant must lose points on each of them
MUTANT_SECONDS = 0.5


def _seen(trial: Trial, verdict: Verdict) -> str:
    sentence = f"earns {verdict.points:g} of {verdict.out_of:g} points {trial.where}"
    if verdict.difference:
        sentence += f" ({verdict.case_about}: {verdict.difference.sentence})"
    return sentence


def check_reference(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """The reference returns, or raises what is to be raised, and leaves its inputs alone."""
    for trial in trials:
        for case, want in zip(trial.cases, trial.expected, strict=True):
            if want.status not in ("returned", "raised") or want.changed_inputs:
                what = want.message or f"it {want.status}, and changes its input"
                report.fail("reference", f"the reference cannot be used ({case.about}): {what}.")


def check_stub(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """The untouched stub earns nothing and is called "not attempted"."""
    stub = answer.candidate(answer.stub) if answer else _no_answer
    report.facts["stub"] = 0
    for trial in trials:
        verdict = trial.verdict(watched_run(report, trial.exercise, "the stub", stub, trial.cases))
        report.facts["stub"] = max(report.facts["stub"], verdict.points)
        if verdict.points > STUB_POINTS or verdict.status != "not attempted":
            seen = f"{_seen(trial, verdict)} and counts as “{verdict.status}”"
            report.fail("stub", f"the untouched stub {seen}.")


def _no_answer(**inputs: Any) -> None:
    raise NotImplementedError


def check_lazy(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """Answers without thought earn nothing."""
    report.facts["lazy"] = 0
    for trial in trials:
        exercise = trial.exercise
        tries = [
            (name, exercise.run(function, trial.cases))
            for name, function in lazy_functions(exercise.parameters, exercise.outputs)
        ]
        for name, outcomes in [*tries, *lazy_outcomes(trial.expected)]:
            points = trial.verdict(outcomes).points
            report.facts["lazy"] = max(report.facts["lazy"], points)
            if points > LAZY_POINTS:
                seen = f"{points:g} of {exercise.points:g} points {trial.where}"
                report.fail("lazy", f"a lazy answer ({name}) earns {seen}.")


def _is_full(report: Report, trials: list[Trial], kind: str, name: str, candidate: Any) -> bool:
    """Tell whether a right answer earns everything in every trial; report the first that fails."""
    for trial in trials:
        outcomes = watched_run(report, trial.exercise, name, candidate, trial.cases)
        verdict = trial.verdict(outcomes)
        if verdict.status != "passed":
            report.fail(kind, f"{name} should be right, but {_seen(trial, verdict)}.")
            return False
    return True


def check_solution(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """The master's solution agrees with the reference, so it earns everything."""
    if not answer:
        return
    candidate, public = answer.candidate(), trials[0]
    start = perf_counter()
    report.facts["solution"] = public.verdict(public.exercise.run(candidate, public.cases)).points
    seconds = perf_counter() - start
    report.facts["seconds"] = round(seconds, 3)
    if seconds > SLOW_SECONDS:
        report.notes.append(f"{report.exercise}: checking the solution takes {seconds:.1f} s.")
    _is_full(report, trials, "solution", "the master's solution", candidate)


def check_accepted(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """Right answers in other styles earn everything."""
    functions = trials[0].exercise.accepted
    passed = [
        _is_full(report, trials, "accepted", f"the accepted answer `{f.__name__}`", f)
        for f in functions
    ]
    report.facts["accepted"] = {"passed": sum(passed), "total": len(passed)}


def check_misconceptions(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """Every misconception loses points, by a clear margin, and is recognised by its name."""
    names = [m.name for m in trials[0].mistakes]
    unnamed: dict[str, str] = {}
    smallest, uncaught = math.inf, set()
    for trial, (place, name) in itertools.product(trials, enumerate(names)):
        outcomes = list(trial.mistakes[place].outcomes)
        verdict = trial.verdict(outcomes)
        if verdict.status == "passed" or verdict.points >= verdict.out_of:
            uncaught.add(name)
            report.fail("caught", f"the misconception `{name}` {_seen(trial, verdict)}.")
            continue
        if verdict.misconception != name:
            other = f"`{verdict.misconception}`" if verdict.misconception else "nothing"
            unnamed.setdefault(name, f"`{name}` as {other} {trial.where}")
        clear = max(
            margin(got, want, trial.exercise.tolerance)
            for got, want in zip(outcomes, trial.expected, strict=True)
        )
        smallest = min(smallest, clear)
        if clear < SMALLEST_MARGIN:
            seen = f"{clear:.3g} times the tolerance {trial.where}"
            report.fail("margin", f"the misconception `{name}` differs by only {seen}.")
    total, named = len(names), len(set(names) - uncaught - set(unnamed))
    caught = total - len(uncaught)
    report.facts["misconceptions"] = {"caught": caught, "named": named, "total": total}
    report.facts["smallest_margin"] = smallest if math.isfinite(smallest) else None
    report.notes += [f"{report.exercise}: recognised {text}." for text in unnamed.values()]
    if total and named / total < NAMED_SHARE:
        others = ", ".join(unnamed.values()) or "the others are not even caught"
        report.fail("named", f"{named} of {total} misconceptions are named; recognised {others}.")


def check_twins(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """No two misconceptions do the same on every case."""
    for a, b in itertools.combinations(range(len(trials[0].mistakes)), 2):
        pairs = (
            zip(trial.mistakes[a].outcomes, trial.mistakes[b].outcomes, strict=True)
            for trial in trials
        )
        if all(same_outcome(one, other) for pair in pairs for one, other in pair):
            names = f"`{trials[0].mistakes[a].name}` and `{trials[0].mistakes[b].name}`"
            report.fail("twins", f"the misconceptions {names} do the same on every case.")


def _loses_points(exercise: Exercise, candidate: Any, trial: Trial) -> bool:
    """Tell whether a candidate fails a case that counts; stops at the first."""
    return any(
        compare(exercise.run(candidate, [case])[0], want, exercise.tolerance)
        for case, want in zip(trial.cases, trial.expected, strict=True)
        if exercise.groups[case.group].points
    )


def _is_killed(exercise: Exercise, answer: Answer, source: str, trials: Sequence[Trial]) -> bool:
    try:
        candidate = answer.candidate(source)
    except Exception:  # a mutant may raise anything while it is defined
        return True
    return all(_loses_points(exercise, candidate, trial) for trial in trials)


def check_mutants(report: Report, trials: list[Trial], answer: Answer | None) -> None:
    """Almost every change of the solution loses points; the list of harmless ones is up to date.

    An exercise whose answers take seconds says why it has no mutants.
    """
    if not answer:
        return
    if trials[0].exercise.without_mutants:
        report.notes.append(f"{report.exercise}: no mutants: {trials[0].exercise.without_mutants}.")
        return
    exercise = replace(trials[0].exercise, seconds=MUTANT_SECONDS)
    trials = [trial for trial in trials if trial.seed in MUTANT_SEEDS]
    mutants, listed = make_mutants(answer.source), exercise.equivalent_mutants
    alive = [m.description for m in mutants if not _is_killed(exercise, answer, m.source, trials)]
    known = {mutant.description for mutant in mutants}
    for description in sorted(set(listed) - set(alive)):
        what = "is killed" if description in known else "does not exist"
        report.fail("stale", f"listed as equivalent, but the mutant {what}: {description}")
    for description in (text for text, reason in listed.items() if not reason.strip()):
        report.fail("stale", f"listed as equivalent without a reason: {description}")
    survivors = [description for description in alive if description not in listed]
    equivalent = len(alive) - len(survivors)
    killed, wrong = len(mutants) - len(alive), len(mutants) - equivalent
    report.facts["mutants"] = {
        "killed": killed,
        "total": len(mutants),
        "equivalent": equivalent,
        "survivors": survivors,
    }
    report.notes += [f"{report.exercise}: this mutant survives: {text}" for text in survivors]
    if wrong and killed / wrong < KILLED_SHARE:
        needed = f"at least {KILLED_SHARE:.0%} must be"
        report.fail("mutants", f"only {killed} of {wrong} mutants are killed, {needed}; see notes.")


QUESTIONS = (
    check_reference,
    check_stub,
    check_lazy,
    check_solution,
    check_accepted,
    check_misconceptions,
    check_twins,
    check_mutants,
)


def audit_exercise(
    exercise: Exercise, answer: Answer | None, hidden_seeds: Sequence[int] = HIDDEN_SEEDS
) -> Report:
    """Ask every question about one exercise. Without an answer, nothing is asked about it."""
    report = Report(exercise.id, {"points": exercise.points})
    trials = [make_trial(report, exercise, seed) for seed in (PUBLIC_SEED, *hidden_seeds)]
    for question in QUESTIONS:
        question(report, trials, answer)
    return report
