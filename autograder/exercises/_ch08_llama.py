"""Chapter 08: one layer as in Llama, into which the weights of a published model fit."""

from __future__ import annotations

import numpy as np

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises import _ch08_llama_layers as layers

SAME_EXCHANGE = "two axes are exchanged, in whatever order they are named"


def draw_weights(rng, build) -> dict[str, np.ndarray]:
    """Draw every parameter, gains too; queries and keys large enough for clear preferences."""
    drawn = {}
    for name, parameter in layers.Parts(**build).named_parameters():
        shape = tuple(parameter.shape)
        scale = 0.3 if len(shape) == 1 else 1.5 * shape[-1] ** -0.5
        drawn[name] = ("norm" in name) + scale * rng.normal(size=shape)
    return drawn


def llama_layer_cases(rng):
    """As many key heads as heads; two, then all heads to a key head; one token; another base."""

    def case(group, about, batch, length, heads, key_heads, base, size=1.0, d_head=4):
        d_model = d_head * heads
        build = {
            "d_model": d_model,
            "heads": heads,
            "key_heads": key_heads,
            "d_hidden": 5,
            "base": base,
        }
        x = size * rng.normal(size=(batch, length, d_model))
        inputs = {"build": build, "weights": draw_weights(rng, build), "inputs": {"x": x}}
        return Case(group, inputs, about)

    yield case("values", "as many key heads as heads", 1, 4, 2, 2, 10_000.0, d_head=6)
    yield case("values", "another base", 1, 5, 2, 2, 30.0)
    yield case("grouped", "each key head serves two heads", 2, 3, 4, 2, 100.0, d_head=2)
    yield case("grouped", "one key head serves all heads", 1, 3, 3, 1, 100.0)
    yield case("small", "vectors of a thousandth", 1, 3, 2, 1, 10_000.0, size=1e-3)
    yield case("small", "one token", 2, 1, 2, 2, 10_000.0)


LLAMA_LAYER = Exercise(
    id="llama_layer",
    title="A layer as in Llama",
    asks="Run causal attention with rotary positions and shared key heads, then a gated MLP.",
    parameters=("build", "weights", "inputs"),
    driver="module",
    seconds=5.0,
    groups={
        "values": Group(3, "as many key heads as heads"),
        "grouped": Group(1, "key heads that serve several heads"),
        "small": Group(1, "tiny vectors, one token"),
    },
    cases=llama_layer_cases,
    reference=layers.LlamaLayerReference,
    misconceptions=(
        Misconception(
            layers.NeighboursTurned,
            "Neighbours 2i and 2i + 1 are turned; here component i pairs with i + d_head / 2.",
            "Which two components make a pair in these weights?",
        ),
        Misconception(
            layers.NothingTurned,
            "Nothing is turned: the layer does not know where tokens stand.",
            "How would it tell “dog bites man” from “man bites dog”?",
        ),
        Misconception(
            layers.QueriesTurned,
            "Only the queries are turned.",
            "If both are turned, what does their product depend on?",
        ),
        Misconception(
            layers.ValuesTurned,
            "The values are turned as well.",
            "What should be read must not depend on where it stands.",
        ),
        Misconception(
            layers.KeysTurnedBack,
            "Keys are turned the other way than queries: scores depend on the sum of two places.",
            "Use one function for both.",
        ),
        Misconception(
            layers.BothTurnedBack,
            "Queries and keys are turned backwards: a sign of the sine is exchanged.",
            "Turn (1, 0) by a small angle: is the second component positive?",
        ),
        Misconception(
            layers.RatesTooFast,
            "The rates fall too slowly from pair to pair.",
            "What is the exponent of `base` for pair i?",
        ),
        Misconception(
            layers.RatesOfTheWholeWidth,
            "The rates are those of a vector as wide as d_model; each head has them anew.",
            "Which width stands in the exponent?",
        ),
        Misconception(
            layers.BaseIgnored,
            "The base is 10000 whatever the argument says.",
            "Is `self.base` used?",
        ),
        Misconception(
            layers.KeyHeadsInTurn,
            "The key heads are dealt out in turn; heads side by side share one.",
            "Compare `repeat` and `repeat_interleave`.",
        ),
        Misconception(
            layers.FirstKeyHeadForAll,
            "All heads use the first key head.",
            "Which key head serves the last head?",
        ),
        Misconception(
            layers.NoCausalMask,
            "There is no causal mask: each place sees the token that it should predict.",
            "Which keys may place t see?",
        ),
        Misconception(
            layers.NextTokenSeen,
            "The mask is off by one: each place sees the token that it should predict.",
            "Which diagonal does your triangle begin with?",
        ),
        Misconception(
            layers.ScaledByTheWholeWidth,
            "The scores are divided by √d_model; one head is narrower.",
            "How many numbers are multiplied and summed for one score?",
        ),
        Misconception(
            layers.NotScaled,
            "The scores are not scaled.",
            "What does the formula of attention divide by?",
        ),
        Misconception(
            layers.GateAndUpExchanged,
            "SiLU is applied to `up_proj`; it belongs to the gate.",
            "Which of the two is the gate?",
        ),
        Misconception(
            layers.SiluOfTheProduct,
            "SiLU is applied to the product of gate and up.",
            "Bend the gate first, then multiply.",
        ),
        Misconception(
            layers.SigmoidGate,
            "The gate is a sigmoid; SiLU is the sigmoid of z times z.",
            "What does `F.silu` compute?",
        ),
        Misconception(
            layers.GeluGate,
            "The gate's activation is GELU; here it is SiLU.",
            "Read the point on the MLP again.",
        ),
        Misconception(
            layers.NoUp,
            "`up_proj` is not used.",
            "What is the bent gate multiplied by?",
        ),
        Misconception(
            layers.NoFirstNorm,
            "The attention reads x without a norm.",
            "What is `input_layernorm` for?",
        ),
        Misconception(
            layers.NoSecondNorm,
            "The MLP reads x without a norm.",
            "What is `post_attention_layernorm` for?",
        ),
        Misconception(
            layers.NormsExchanged,
            "The two norms are exchanged.",
            "Their names say where they stand.",
        ),
        Misconception(
            layers.NormsAfter,
            "The norms come after the links (post-norm).",
            "What exactly goes into each norm?",
        ),
        Misconception(
            layers.NoFirstLink,
            "The link around the attention is missing.",
            "What is added to the output of the attention?",
        ),
        Misconception(
            layers.NoSecondLink,
            "The link around the MLP is missing.",
            "What is added to the output of the MLP?",
        ),
        Misconception(
            layers.LinkFromTheNormed,
            "The attention's output is added to the normalised vectors instead of x.",
            "Where does the link start?",
        ),
    ),
    tolerance=Tolerance(1e-5, 1e-5),  # angles in float32, torch.arange's way, are right
    accepted=(layers.ThroughLibraryAttention, layers.HeadsInGroups, layers.OneHeadAtATime),
    equivalent_mutants={
        "`first * cos - second * sin` → `second * sin - first * cos`": (
            "the first components of queries and keys both change sign: their products do not"
        ),
        "`project(normed).unflatten(-1, (-1, d_head)).transpose(1, 2)` → "
        "`project(normed).unflatten(-1, (-1, d_head)).transpose(2, 1)`": SAME_EXCHANGE,
        "`(weights @ values).transpose(1, 2)` → `(weights @ values).transpose(2, 1)`": (
            SAME_EXCHANGE
        ),
    },
)
