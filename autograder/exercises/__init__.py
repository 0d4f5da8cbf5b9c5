"""The exercises, one module per chapter: `ch01_shapes` holds those of chapter `01_shapes`.

Each module has a list `EXERCISES`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from autograder.exercise import Exercise


@functools.cache
def chapters() -> dict[str, dict[str, Exercise]]:
    """Map each chapter's name to its exercises by id. Raises ValueError for an id used twice."""
    found: dict[str, dict[str, Exercise]] = {}
    seen: dict[str, str] = {}
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if not module_info.name.startswith("ch"):
            continue
        chapter = module_info.name.removeprefix("ch")
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for exercise in module.EXERCISES:
            if exercise.id in seen:
                raise ValueError(f"{exercise.id} is in {seen[exercise.id]} and in {chapter}")
            seen[exercise.id] = chapter
        found[chapter] = {exercise.id: exercise for exercise in module.EXERCISES}
    return found


def find(exercise_id: str) -> tuple[str, Exercise]:
    """Return (chapter, exercise). Raises KeyError with the known ids."""
    for chapter, exercises in chapters().items():
        if exercise_id in exercises:
            return chapter, exercises[exercise_id]
    known = ", ".join(id for exercises in chapters().values() for id in exercises)
    raise KeyError(f"no exercise is called {exercise_id!r}; there are: {known}")
