"""Chapter 11: the part of a state dict that is kept."""

from __future__ import annotations

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def keep_discriminator_cases(rng):
    """Names with the prefix inside, names that begin with its letters, shared tables."""

    def state(names):
        return {name: rng.normal(size=(2, int(rng.integers(2, 5)))) for name in names}

    table = rng.normal(size=(3, 2))
    first = state(
        (
            "generator.layers.0.weight",
            "generator.head.weight",
            "discriminator.layers.0.weight",
            "discriminator.layers.0.bias",
            "discriminator.inner.weight",
            "discriminator.head.weight",
        )
    )
    first["discriminator.embeddings.words.weight"] = table
    first["generator.embeddings.words.weight"] = table.copy()
    yield Case("values", {"state": first}, "a small checkpoint")
    second = state(
        (
            "discriminator.discriminator.weight",
            "discriminator.norm.weight",
            "discriminator.layers.1.generator.weight",
            "discriminator.head.dense.weight",
            "discriminator.heads.weight",
            "discriminator.attention.head.weight",
            "generator.discriminator.norm.weight",
            "generator.norm.weight",
            "step.count",
        )
    )
    yield Case("values", {"state": second}, "names that look alike")


PREFIX, HEAD = "discriminator.", "head."


def keep_discriminator_reference(state):
    """Splits each name at its dots."""
    kept = {}
    for name, value in state.items():
        first, *rest = name.split(".")
        if first == "discriminator" and rest[0] != "head":
            kept[".".join(rest)] = value
    return kept


def prefix_left(state):
    """Keeps whole names."""
    return {PREFIX + name: v for name, v in keep_discriminator_reference(state).items()}


def stripped_letters(state):
    """lstrip takes letters, not a prefix."""
    return {
        name.lstrip(PREFIX): value
        for name, value in state.items()
        if name.startswith(PREFIX) and not name.startswith(PREFIX + HEAD)
    }


def replaced_everywhere(state):
    """Removes the prefix wherever it is."""
    return {
        name.replace(PREFIX, ""): value
        for name, value in state.items()
        if name.startswith(PREFIX) and not name.startswith(PREFIX + HEAD)
    }


def prefix_anywhere(state):
    """Looks for the prefix inside names."""
    return {
        name.split(PREFIX, 1)[1]: value
        for name, value in state.items()
        if PREFIX in name and not name.startswith(PREFIX + HEAD)
    }


def head_kept(state):
    """Keeps the head."""
    return {name.removeprefix(PREFIX): v for name, v in state.items() if name.startswith(PREFIX)}


def dot_of_the_head_forgotten(state):
    """Drops names that merely begin like the head's."""
    return {k: v for k, v in keep_discriminator_reference(state).items() if k[:4] != "head"}


def head_anywhere(state):
    """Drops every name with "head" in it."""
    return {k: v for k, v in keep_discriminator_reference(state).items() if "head" not in k}


def generator_kept_instead(state):
    """The wrong one."""
    renamed = {
        name.replace("generator.", PREFIX, 1): value
        for name, value in state.items()
        if name.startswith("generator.")
    }
    return keep_discriminator_reference(renamed)


def all_but_the_generator(state):
    """Throws the generator away and keeps all the rest."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in state.items()
        if not name.startswith(("generator.", PREFIX + HEAD))
    }


def everything_with_generator_dropped(state):
    """Drops names that contain "generator"."""
    return {k: v for k, v in keep_discriminator_reference(state).items() if "generator" not in k}


def keep_by_prefix(state):
    """Right: startswith and removeprefix."""
    kept = {k.removeprefix(PREFIX): v for k, v in state.items() if k.startswith(PREFIX)}
    return {name: value for name, value in kept.items() if not name.startswith(HEAD)}


def keep_by_slice(state):
    """Right: slices of names; clones of values."""
    kept = {}
    for name in state:
        rest = name[len(PREFIX) :]
        if name[: len(PREFIX)] == PREFIX and rest[:5] != HEAD:
            kept[rest] = state[name].clone()
    return kept


def keep_by_pattern(state):
    """Right: a regular expression."""
    import re

    found = {name: re.fullmatch(r"discriminator\.((?!head\.).+)", name) for name in state}
    return {match[1]: state[name] for name, match in found.items() if match}


KEEP_DISCRIMINATOR = Exercise(
    id="keep_discriminator",
    title="Throw the generator away",
    asks="Give a state dict of the discriminator's encoder, with names as it has them itself.",
    parameters=("state",),
    outputs=("names", "values"),
    driver="state_dict",
    groups={"values": Group(2, "names and values")},
    cases=keep_discriminator_cases,
    reference=keep_discriminator_reference,
    misconceptions=(
        Misconception(
            prefix_left,
            "The names still begin with `discriminator.`; an encoder would not know them.",
            "What does the encoder call its own parameters?",
        ),
        Misconception(
            stripped_letters,
            "`lstrip` takes away letters, not a prefix: “inner” has lost its beginning.",
            "Which method of strings removes a prefix?",
        ),
        Misconception(
            replaced_everywhere,
            "The prefix is removed wherever it occurs; it goes only at the beginning.",
            "What becomes of `discriminator.discriminator.weight`?",
        ),
        Misconception(
            prefix_anywhere,
            "A name that has `discriminator.` inside is kept, though it belongs to the generator.",
            "Where has the prefix to stand?",
        ),
        Misconception(
            head_kept,
            "The discriminator's head is kept; a new task brings its own.",
            "Which names does the contract leave out?",
        ),
        Misconception(
            dot_of_the_head_forgotten,
            "Names that begin with the letters of `head`, such as `heads`, are dropped, too.",
            "Where does a part of a name end?",
        ),
        Misconception(
            head_anywhere,
            "Every name with “head” in it is left out; only the discriminator's own `head` goes.",
            "What becomes of `discriminator.attention.head.weight`?",
        ),
        Misconception(
            generator_kept_instead,
            "The generator is kept.",
            "Which of the two is thrown away?",
        ),
        Misconception(
            all_but_the_generator,
            "Names that belong to neither of the two are kept.",
            "Which names does the contract keep?",
        ),
        Misconception(
            everything_with_generator_dropped,
            "A part of the discriminator is left out because its name has “generator” in it.",
            "Where does a name say whose it is?",
        ),
    ),
    accepted=(keep_by_prefix, keep_by_slice, keep_by_pattern),
)
