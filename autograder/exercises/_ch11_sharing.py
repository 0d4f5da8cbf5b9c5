"""Chapter 11: what generator and discriminator share."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

PAIR = ("shared", "same memory", "trainable", "generator's values", "discriminator's values")


def _weights(rng, embedding, width, layers, words, places, outputs):
    shapes = {
        "embeddings.words.weight": (words, embedding),
        "embeddings.places.weight": (places, embedding),
        "project.weight": (width, embedding),
        **{f"layers.{layer}.weight": (width, width) for layer in range(layers)},
        "head.weight": (outputs, width),
    }
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def draw_pair(rng, width, generator_width, layers):
    words, places = (int(n) for n in rng.permutation([5, 6, 7])[:2])
    sizes = {"embedding": width, "layers": layers, "words": words, "places": places}
    return {
        "generator": _weights(rng, width=generator_width, outputs=words, **sizes),
        "discriminator": _weights(rng, width=width, outputs=1, **sizes),
    }


def encoder_parts(generator, discriminator):
    """Pairs of modules that are shared if widths are equal; the first is always shared."""
    names = ("embeddings", "project", "layers")
    return [(getattr(generator, name), getattr(discriminator, name)) for name in names]


def share_weights_cases(rng):
    """A narrower generator, and one of the same width."""
    yield Case("narrow", draw_pair(rng, 4, 2, 2), "a generator of half the width")
    yield Case("narrow", draw_pair(rng, 4, 3, 1), "three quarters of the width")
    yield Case("equal", draw_pair(rng, 3, 3, 2), "equal widths")
    yield Case("equal", draw_pair(rng, 2, 2, 3), "equal widths, three layers")


def _same_width(generator, discriminator):
    return generator.width == discriminator.width


def share_weights_reference(generator, discriminator):
    """Goes through the parameters by name and puts the discriminator's into the generator."""
    for name, parameter in list(discriminator.named_parameters()):
        part = name.split(".")[0]
        if part == "embeddings" or (part != "head" and _same_width(generator, discriminator)):
            owner, _, last = name.rpartition(".")
            setattr(generator.get_submodule(owner), last, parameter)


def weights_copied(generator, discriminator):
    """Copies the values."""
    for mine, yours in encoder_parts(generator, discriminator)[
        : 3 if _same_width(generator, discriminator) else 1
    ]:
        mine.load_state_dict(yours.state_dict())


def only_embeddings(generator, discriminator):
    """Never more than the embeddings."""
    generator.embeddings = discriminator.embeddings


def always_everything(generator, discriminator):
    """Shares the layers of another width."""
    generator.embeddings, generator.layers = discriminator.embeddings, discriminator.layers
    generator.project = discriminator.project


def words_only(generator, discriminator):
    """Forgets the places."""
    generator.embeddings.words = discriminator.embeddings.words
    if _same_width(generator, discriminator):
        generator.project, generator.layers = discriminator.project, discriminator.layers


def heads_too(generator, discriminator):
    """Shares the heads."""
    share_weights_reference(generator, discriminator)
    generator.head = discriminator.head


def generator_kept(generator, discriminator):
    """Puts the generator's into the discriminator."""
    share_weights_reference(discriminator, generator)


def memory_shared(generator, discriminator):
    """Two parameters on one memory."""
    names = [name for name, _ in discriminator.named_parameters() if not name.startswith("head")]
    for name in names:
        if name.startswith("embeddings") or _same_width(generator, discriminator):
            generator.get_parameter(name).data = discriminator.get_parameter(name).data


def layers_only_if_equal(generator, discriminator):
    """Shares embeddings only if all is shared."""
    if _same_width(generator, discriminator):
        share_weights_reference(generator, discriminator)


def projection_apart(generator, discriminator):
    """Forgets the projection."""
    generator.embeddings = discriminator.embeddings
    if _same_width(generator, discriminator):
        generator.layers = discriminator.layers


def first_layer_only(generator, discriminator):
    """Shares the first layer."""
    generator.embeddings = discriminator.embeddings
    if _same_width(generator, discriminator):
        generator.project = discriminator.project
        generator.layers[0] = discriminator.layers[0]


def share_by_modules(generator, discriminator):
    """Right: whole modules."""
    generator.embeddings = discriminator.embeddings
    if generator.project.out_features == discriminator.project.out_features:
        generator.project, generator.layers = discriminator.project, discriminator.layers


def share_by_tables(generator, discriminator):
    """Right: parameters one by one."""
    for name in ("words", "places"):
        table = getattr(discriminator.embeddings, name).weight
        getattr(generator.embeddings, name).weight = table
    if discriminator.width == generator.width:
        generator.project.weight = discriminator.project.weight
        for mine, yours in zip(generator.layers, discriminator.layers, strict=True):
            mine.weight = yours.weight


def share_from_the_discriminator(generator, discriminator):
    """Right: the other way round, after the values were copied."""
    parts = encoder_parts(generator, discriminator)
    if not _same_width(generator, discriminator):
        parts = parts[:1]
    with torch.no_grad():
        for mine, yours in parts:
            for a, b in zip(mine.parameters(), yours.parameters(), strict=True):
                a.copy_(b)
    for name in ("embeddings", "project", "layers")[: len(parts)]:
        setattr(discriminator, name, getattr(generator, name))


SHARE_WEIGHTS = Exercise(
    id="share_weights",
    title="What the two share",
    asks="Let the generator use the discriminator's embeddings, or all but its head.",
    parameters=("generator", "discriminator"),
    outputs=PAIR,
    driver="encoder_pair",
    seconds=5.0,
    groups={"narrow": Group(1.5, "a narrower generator"), "equal": Group(1.5, "equal widths")},
    cases=share_weights_cases,
    reference=share_weights_reference,
    misconceptions=(
        Misconception(
            weights_copied,
            "The values are copied: after the first step of training they would differ.",
            "Sharing means *the same* parameter, not one with the same numbers.",
        ),
        Misconception(
            only_embeddings,
            "Only embeddings are shared, also if both have the same width.",
            "What does the contract say about equal widths?",
        ),
        Misconception(
            always_everything,
            "Layers are shared though the widths differ: the generator cannot run any more.",
            "Which parts fit if the generator is narrower?",
        ),
        Misconception(
            words_only,
            "The table of places is not shared.",
            "How many tables are there in `embeddings`?",
        ),
        Misconception(
            heads_too,
            "The heads are shared: one says words, the other one original or replaced.",
            "Which part is never shared?",
        ),
        Misconception(
            generator_kept,
            "The discriminator lost its own weights; it uses the generator's now.",
            "Whose numbers are to be kept?",
        ),
        Misconception(
            memory_shared,
            "Two parameters use the same memory; each gets only its own part of the gradient, and "
            "the optimiser moves the memory twice.",
            "Don't assign to `.data`: let both modules hold the same object.",
        ),
        Misconception(
            layers_only_if_equal,
            "If the widths differ nothing is shared at all.",
            "Which part fits even then?",
        ),
        Misconception(
            projection_apart,
            "With equal widths the projection is left unshared.",
            "Which parts does the contract list?",
        ),
        Misconception(
            first_layer_only,
            "Only the first layer is shared.",
            "Which parts does the contract list?",
        ),
    ),
    accepted=(share_by_modules, share_by_tables, share_from_the_discriminator),
)
