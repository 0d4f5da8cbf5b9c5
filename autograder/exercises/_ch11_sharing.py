"""Chapter 11: what generator and discriminator share, the second stage, and what is kept."""

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


def _pair(rng, width, generator_width, layers):
    words, places = (int(n) for n in rng.permutation([5, 6, 7])[:2])
    sizes = {"embedding": width, "layers": layers, "words": words, "places": places}
    return {
        "generator": _weights(rng, width=generator_width, outputs=words, **sizes),
        "discriminator": _weights(rng, width=width, outputs=1, **sizes),
    }


def _encoder_parts(generator, discriminator):
    """Pairs of modules that are shared if widths are equal; the first is always shared."""
    names = ("embeddings", "project", "layers")
    return [(getattr(generator, name), getattr(discriminator, name)) for name in names]


# --- share_weights -------------------------------------------------------------------------------


def share_weights_cases(rng):
    """A narrower generator, and one of the same width."""
    yield Case("narrow", _pair(rng, 4, 2, 2), "a generator of half the width")
    yield Case("narrow", _pair(rng, 4, 3, 1), "three quarters of the width")
    yield Case("equal", _pair(rng, 3, 3, 2), "equal widths")
    yield Case("equal", _pair(rng, 2, 2, 3), "equal widths, three layers")


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
    for mine, yours in _encoder_parts(generator, discriminator)[
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
    parts = _encoder_parts(generator, discriminator)
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

# --- start_second_stage --------------------------------------------------------------------------


def start_second_stage_cases(rng):
    """Two sizes."""
    yield Case("values", _pair(rng, 3, 3, 2), "two layers")
    yield Case("values", _pair(rng, 4, 4, 1), "one layer")


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
        for mine, yours in _encoder_parts(generator, discriminator):
            for a, b in zip(mine.parameters(), yours.parameters(), strict=True):
                b.copy_(a)
    generator.requires_grad_(False)


def stage_by_deepcopy(generator, discriminator):
    """Right: deep copies of modules, made before the generator is frozen."""
    import copy

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

# --- keep_discriminator --------------------------------------------------------------------------


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
