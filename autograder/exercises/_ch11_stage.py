"""Chapter 11: the second of two stages starts from the first one's weights."""

from __future__ import annotations

import copy

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_sharing import PAIR, draw_pair, encoder_parts


def start_second_stage_cases(rng):
    """Two sizes."""
    yield Case("values", draw_pair(rng, 3, 3, 2), "two layers")
    yield Case("values", draw_pair(rng, 4, 4, 1), "one layer")


def start_second_stage_reference(generator, discriminator):
    """Copies number by number through NumPy; then freezes."""
    mine = dict(discriminator.named_parameters())
    for name, parameter in generator.named_parameters():
        if not name.startswith("head."):
            mine[name].data = torch.from_numpy(parameter.detach().numpy().copy())
        parameter.requires_grad = False


def _copy(source, target, names=("embeddings", "project", "layers")):
    for name in names:
        getattr(target, name).load_state_dict(getattr(source, name).state_dict())


def encoder_shared(generator, discriminator):
    """Shares instead of copying, then freezes both."""
    discriminator.embeddings, discriminator.layers = generator.embeddings, generator.layers
    discriminator.project = generator.project
    generator.requires_grad_(False)


def generator_still_trained(generator, discriminator):
    """Freezes nothing."""
    _copy(generator, discriminator)


def both_frozen(generator, discriminator):
    """Freezes both."""
    _copy(generator, discriminator)
    generator.requires_grad_(False)
    discriminator.requires_grad_(False)


def discriminator_frozen(generator, discriminator):
    """Freezes the wrong one."""
    _copy(generator, discriminator)
    discriminator.requires_grad_(False)


def copied_backwards(generator, discriminator):
    """From the discriminator to the generator."""
    _copy(discriminator, generator)
    generator.requires_grad_(False)


def embeddings_left_out(generator, discriminator):
    """Copies layers only."""
    _copy(generator, discriminator, ("project", "layers"))
    generator.requires_grad_(False)


def layers_left_out(generator, discriminator):
    """Copies embeddings only."""
    _copy(generator, discriminator, ("embeddings",))
    generator.requires_grad_(False)


def nothing_copied(generator, discriminator):
    """Freezes only."""
    generator.requires_grad_(False)


def one_memory(generator, discriminator):
    """Assigns `.data`."""
    for name, parameter in generator.named_parameters():
        if not name.startswith("head"):
            discriminator.get_parameter(name).data = parameter.data
    generator.requires_grad_(False)


def copies_of_the_frozen(generator, discriminator):
    """Freezes first; a deep copy of what is frozen is frozen."""
    generator.requires_grad_(False)
    for name in ("embeddings", "project", "layers"):
        setattr(discriminator, name, copy.deepcopy(getattr(generator, name)))


def head_not_frozen(generator, discriminator):
    """Freezes all but the generator's head."""
    _copy(generator, discriminator)
    for name in ("embeddings", "project", "layers"):
        getattr(generator, name).requires_grad_(False)


def stage_by_state_dict(generator, discriminator):
    """Right: one state dict without the head."""
    state = {name: v for name, v in generator.state_dict().items() if "head" not in name}
    discriminator.load_state_dict(state, strict=False)
    for parameter in generator.parameters():
        parameter.requires_grad_(False)


def stage_by_copy(generator, discriminator):
    """Right: copy_ under no_grad."""
    with torch.no_grad():
        for mine, yours in encoder_parts(generator, discriminator):
            for a, b in zip(mine.parameters(), yours.parameters(), strict=True):
                b.copy_(a)
    generator.requires_grad_(False)


def stage_by_deepcopy(generator, discriminator):
    """Right: deep copies of modules, made before the generator is frozen."""
    for name in ("embeddings", "project", "layers"):
        setattr(discriminator, name, copy.deepcopy(getattr(generator, name)))
    generator.requires_grad_(False)


START_SECOND_STAGE = Exercise(
    id="start_second_stage",
    title="Two stages instead of one",
    asks="Start the discriminator from the trained generator, and freeze the generator.",
    parameters=("generator", "discriminator"),
    outputs=PAIR,
    driver="encoder_pair",
    seconds=5.0,
    groups={"values": Group(2, "copied and frozen")},
    cases=start_second_stage_cases,
    reference=start_second_stage_reference,
    misconceptions=(
        Misconception(
            encoder_shared,
            "The two share their parameters: freezing the generator freezes both.",
            "Copied means: the same numbers, but parameters of its own.",
        ),
        Misconception(
            generator_still_trained,
            "The generator is not frozen.",
            "How does a parameter say that it needs no gradient?",
        ),
        Misconception(
            both_frozen,
            "Both are frozen: nothing would be trained in the second stage.",
            "Which of the two is trained now?",
        ),
        Misconception(
            discriminator_frozen,
            "The discriminator is frozen, and the generator is not.",
            "Which of the two is trained now?",
        ),
        Misconception(
            copied_backwards,
            "The weights are copied from the discriminator to the generator.",
            "Which of the two has been trained?",
        ),
        Misconception(
            embeddings_left_out,
            "The embeddings are not copied.",
            "Which parts does the contract list?",
        ),
        Misconception(
            layers_left_out,
            "Only embeddings are copied.",
            "Which parts does the contract list?",
        ),
        Misconception(
            nothing_copied,
            "Nothing is copied: the discriminator starts from its random weights.",
            "What does the discriminator start from?",
        ),
        Misconception(
            one_memory,
            "The numbers lie in the same memory: training the discriminator changes the frozen "
            "generator.",
            "Don't assign to `.data`: copy the numbers.",
        ),
        Misconception(
            copies_of_the_frozen,
            "The copies are frozen like the parts that they were made from.",
            "Does a copy of a frozen parameter need a gradient?",
        ),
        Misconception(
            head_not_frozen,
            "The generator's head is still trained.",
            "Which parameters of the generator are to be frozen?",
        ),
    ),
    accepted=(stage_by_state_dict, stage_by_copy, stage_by_deepcopy),
    equivalent_mutants={
        f"`('embeddings', 'project', 'layers')` → `{order}`": "the order of copying is free"
        for order in (
            ("project", "embeddings", "layers"),
            ("embeddings", "layers", "project"),
        )
    },
)
