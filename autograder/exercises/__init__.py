"""The exercises, one module per chapter: `ch01_shapes` holds those of chapter `01_shapes`.

Each module has a list `EXERCISES`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from autograder.exercise import Exercise


@functools.cache
def of_chapter(chapter: str) -> dict[str, Exercise]:
    """Map one chapter's exercises by id, loading no other chapter; empty if there is none such.

    Raises ValueError for an id used twice.
    """
    name = f"ch{chapter}"
    if name not in {module.name for module in pkgutil.iter_modules(__path__)}:
        return {}
    module = importlib.import_module(f"{__name__}.{name}")
    found = {exercise.id: exercise for exercise in module.EXERCISES}
    if len(found) < len(module.EXERCISES):
        raise ValueError(f"{name} uses an exercise's id twice")
    return found


@functools.cache
def chapters() -> dict[str, dict[str, Exercise]]:
    """Map each chapter's name to its exercises by id. Raises ValueError for an id used twice."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = {
        name.removeprefix("ch"): of_chapter(name.removeprefix("ch"))
        for name in names
        if name.startswith("ch")
    }
    seen: dict[str, str] = {}
    for chapter, exercises in found.items():
        for exercise_id in exercises:
            if exercise_id in seen:
                raise ValueError(f"{exercise_id} is in {seen[exercise_id]} and in {chapter}")
            seen[exercise_id] = chapter
    return found


def find(exercise_id: str) -> tuple[str, Exercise]:
    """Return (chapter, exercise). Raises KeyError with the known ids."""
    for chapter, exercises in chapters().items():
        if exercise_id in exercises:
            return chapter, exercises[exercise_id]
    known = ", ".join(id for exercises in chapters().values() for id in exercises)
    raise KeyError(f"no exercise is called {exercise_id!r}; there are: {known}")
