"""Chapter 05: the MLP of a block, with ReLU and with both forms of GELU."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_linear

NAMES = ("relu", "gelu", "gelu_tanh")


def mlp_cases(rng):
    """Each activation with none to two leading axes; the hidden layer wider and narrower."""

    def inputs(lead, d_model, d_hidden, activation, size=1.5):
        w_in, b_in = draw_linear(rng, d_model, d_hidden)
        w_out, b_out = draw_linear(rng, d_hidden, d_model)
        x = size * rng.normal(size=(*lead, d_model))
        weights = {"w_in": w_in, "b_in": b_in, "w_out": w_out, "b_out": b_out}
        return {"x": x, **weights, "activation": activation}

    for activation in NAMES:
        s = draw_sizes(rng, "length", "d_model", "d_hidden", among=(3, 4, 5))
        one = inputs((s.length,), s.d_model, s.d_hidden + 6, activation)
        yield Case(activation, one, f"{activation}: one sequence")
        many = inputs((2, s.length), s.d_model, s.d_hidden, activation)
        yield Case(activation, many, f"{activation}: a batch")
    far = inputs((s.length,), s.d_model, s.d_hidden, "gelu_tanh", size=60.0)
    yield Case("gelu_tanh", far, "gelu_tanh: inputs far from 0")


def mlp_reference(x, w_in, b_in, w_out, b_out, activation):
    """PyTorch's own activations between two of its linear maps."""
    hidden = functional.linear(x, w_in, b_in)
    bent = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda values: functional.gelu(values, approximate="tanh"),
    }[activation](hidden)
    return functional.linear(bent, w_out, b_out)


def _exact(values):
    return 0.5 * values * (1 + torch.erf(values / math.sqrt(2)))


SCALE = math.sqrt(2 / math.pi)


def _tanh(values, cubic=0.044715, scale=SCALE):
    return 0.5 * values * (1 + torch.tanh(scale * (values + cubic * values**3)))


ACTIVATIONS = {"relu": torch.relu, "gelu": _exact, "gelu_tanh": _tanh}


def _apply(x, w_in, b_in, w_out, b_out, bend):
    return bend(x @ w_in.T + b_in) @ w_out.T + b_out


def _with(**others):
    """Make a wrong version that uses other activations for some of the names."""
    table = {**ACTIVATIONS, **others}

    def run(x, w_in, b_in, w_out, b_out, activation):
        return _apply(x, w_in, b_in, w_out, b_out, table[activation])

    return run


def always_relu(x, w_in, b_in, w_out, b_out, activation):
    """Takes ReLU whatever is asked."""
    return _apply(x, w_in, b_in, w_out, b_out, torch.relu)


def always_exact(x, w_in, b_in, w_out, b_out, activation):
    """Takes the exact GELU where its tanh form is asked."""
    return _with(gelu_tanh=_exact)(x, w_in, b_in, w_out, b_out, activation)


def always_tanh(x, w_in, b_in, w_out, b_out, activation):
    """Takes the tanh form where the exact GELU is asked."""
    return _with(gelu=_tanh)(x, w_in, b_in, w_out, b_out, activation)


def forms_exchanged(x, w_in, b_in, w_out, b_out, activation):
    """Exchanges the two forms of GELU."""
    return _with(gelu=_tanh, gelu_tanh=_exact)(x, w_in, b_in, w_out, b_out, activation)


def sigmoid_for_gelu(x, w_in, b_in, w_out, b_out, activation):
    """Takes x·σ(1.702x), a third and coarser form, for both."""
    coarse = {name: lambda v: v * torch.sigmoid(1.702 * v) for name in ("gelu", "gelu_tanh")}
    return _with(**coarse)(x, w_in, b_in, w_out, b_out, activation)


def silu_for_gelu(x, w_in, b_in, w_out, b_out, activation):
    """Takes x·σ(x), which is SiLU."""
    return _with(gelu=functional.silu, gelu_tanh=functional.silu)(
        x, w_in, b_in, w_out, b_out, activation
    )


def erf_of_x_itself(x, w_in, b_in, w_out, b_out, activation):
    """Forgets the √2 inside erf."""
    bend = {"gelu": lambda v: 0.5 * v * (1 + torch.erf(v))}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def erf_of_half_x(x, w_in, b_in, w_out, b_out, activation):
    """Divides by 2 inside erf, not by √2."""
    bend = {"gelu": lambda v: 0.5 * v * (1 + torch.erf(v / 2))}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def half_forgotten(x, w_in, b_in, w_out, b_out, activation):
    """Forgets the factor ½ of both forms."""
    bend = {"gelu": lambda v: 2 * _exact(v), "gelu_tanh": lambda v: 2 * _tanh(v)}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def density_for_probability(x, w_in, b_in, w_out, b_out, activation):
    """Multiplies by the density of the normal distribution, not by its distribution function."""
    bend = {"gelu": lambda v: v * torch.exp(-(v**2) / 2) / math.sqrt(2 * math.pi)}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def no_cubic_term(x, w_in, b_in, w_out, b_out, activation):
    """Leaves the cubic term out of the tanh form."""
    bend = {"gelu_tanh": lambda v: _tanh(v, cubic=0.0)}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def root_of_pi_over_two(x, w_in, b_in, w_out, b_out, activation):
    """Turns the fraction under the root upside down."""
    bend = {"gelu_tanh": lambda v: _tanh(v, scale=math.sqrt(math.pi / 2))}
    return _with(**bend)(x, w_in, b_in, w_out, b_out, activation)


def no_activation(x, w_in, b_in, w_out, b_out, activation):
    """Two linear maps, one after the other: a linear map."""
    return _apply(x, w_in, b_in, w_out, b_out, lambda values: values)


def activation_at_the_end(x, w_in, b_in, w_out, b_out, activation):
    """Bends the output and not the hidden layer."""
    return ACTIVATIONS[activation]((x @ w_in.T + b_in) @ w_out.T + b_out)


def activation_twice(x, w_in, b_in, w_out, b_out, activation):
    """Bends the hidden layer and the output."""
    bend = ACTIVATIONS[activation]
    return bend(_apply(x, w_in, b_in, w_out, b_out, bend))


def bias_after_activation(x, w_in, b_in, w_out, b_out, activation):
    """Adds the first bias after the activation."""
    return (ACTIVATIONS[activation](x @ w_in.T) + b_in) @ w_out.T + b_out


def no_biases(x, w_in, b_in, w_out, b_out, activation):
    """Ignores both biases."""
    return ACTIVATIONS[activation](x @ w_in.T) @ w_out.T


def no_second_bias(x, w_in, b_in, w_out, b_out, activation):
    """Ignores the second bias."""
    return ACTIVATIONS[activation](x @ w_in.T + b_in) @ w_out.T


def weights_not_transposed(x, w_in, b_in, w_out, b_out, activation):
    """Multiplies with (d_hidden, d_model) as it is: the axes do not fit."""
    return ACTIVATIONS[activation](x @ w_in + b_in) @ w_out + b_out


def mlp_by_einsum(x, w_in, b_in, w_out, b_out, activation):
    """Right: einsum, and the normal distribution's own function."""
    hidden = torch.einsum("...i,hi->...h", x, w_in) + b_in
    if activation == "relu":
        hidden = hidden.clamp(min=0)
    elif activation == "gelu":
        hidden = hidden * torch.distributions.Normal(0.0, 1.0).cdf(hidden)
    else:
        inner = math.sqrt(2 / math.pi) * hidden * (1 + 0.044715 * hidden * hidden)
        hidden = hidden * torch.sigmoid(2 * inner)
    return torch.einsum("...h,oh->...o", hidden, w_out) + b_out


def mlp_by_linear(x, w_in, b_in, w_out, b_out, activation):
    """Right: `F.linear`, `erfc` and `where`."""
    hidden = functional.linear(x, w_in, b_in)
    if activation == "relu":
        hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
    elif activation == "gelu":
        hidden = hidden * torch.erfc(-hidden / 2**0.5) / 2
    else:
        inner = (2 / torch.pi) ** 0.5 * (hidden + 0.044715 * hidden.pow(3))
        hidden = hidden / 2 * (torch.tanh(inner) + 1)
    return functional.linear(hidden, w_out, b_out)


def mlp_token_by_token(x, w_in, b_in, w_out, b_out, activation):
    """Right: a loop over tokens."""
    tokens = x.reshape(-1, x.shape[-1])
    hidden = [ACTIVATIONS[activation](w_in.mv(token) + b_in) for token in tokens]
    return torch.stack([w_out.mv(values) + b_out for values in hidden]).reshape(x.shape)


MLP = Exercise(
    id="mlp",
    title="The MLP of a block",
    asks="Widen each token's vector, bend it with the named activation, and narrow it again.",
    parameters=("x", "w_in", "b_in", "w_out", "b_out", "activation"),
    driver="tensor_function",
    seconds=10.0,
    forbidden=("*gelu*",),
    groups={
        "relu": Group(1, "ReLU"),
        "gelu": Group(1, "GELU, the exact form"),
        "gelu_tanh": Group(1, "GELU, the tanh form"),
    },
    cases=mlp_cases,
    reference=mlp_reference,
    misconceptions=(
        Misconception(
            always_relu,
            "ReLU is applied whatever `activation` says.",
            "Print `activation` in the failing case.",
        ),
        Misconception(
            always_exact,
            "For “gelu_tanh” the exact GELU is computed.",
            "The two forms differ in the fourth digit: point 3 of the contract has both.",
        ),
        Misconception(
            always_tanh,
            "For “gelu” the tanh form is computed; the exact one is asked.",
            "The two forms differ in the fourth digit: point 3 of the contract has both.",
        ),
        Misconception(
            forms_exchanged,
            "The two forms of GELU are exchanged.",
            "Which of them is called “gelu” in point 3 of the contract?",
        ),
        Misconception(
            sigmoid_for_gelu,
            "x·σ(1.702x) is a third form of GELU, and a coarser one.",
            "Point 3 of the contract has the two forms that are asked.",
        ),
        Misconception(
            silu_for_gelu,
            "x·σ(x) is another function: SiLU, or Swish.",
            "GELU multiplies x with the *normal* distribution function.",
        ),
        Misconception(
            erf_of_x_itself,
            "The argument of erf lacks its √2.",
            "The normal distribution function at x is ½(1 + erf(…)): of what?",
        ),
        Misconception(
            half_forgotten,
            "A factor ½ is missing: far to the right GELU should be x, not 2x.",
            "What does your activation give at x = 10?",
        ),
        Misconception(
            density_for_probability,
            "x is multiplied by the normal *density*; it should be the distribution function.",
            "What should GELU be at x = 10, and what does yours give?",
        ),
        Misconception(
            no_cubic_term,
            "The tanh form lacks its cubic term.",
            "Compare with point 3 of the contract, term by term.",
        ),
        Misconception(
            root_of_pi_over_two,
            "The fraction under the root is upside down.",
            "Compare with point 3 of the contract, term by term.",
        ),
        Misconception(
            no_activation,
            "There is no activation: two linear maps in a row are one linear map.",
            "Where is the bend?",
        ),
        Misconception(
            activation_at_the_end,
            "The activation is applied to the output and not to the hidden layer.",
            "Which of the three vectors is bent: x, hidden, or output?",
        ),
        Misconception(
            activation_twice,
            "The activation is applied to the hidden layer and to the output as well.",
            "How often does the contract name the activation?",
        ),
        Misconception(
            bias_after_activation,
            "The first bias is added after the activation.",
            "The bias shifts *where* the bend lies.",
        ),
        Misconception(
            no_biases,
            "The biases are not used.",
            "Where do `b_in` and `b_out` enter?",
        ),
        Misconception(
            no_second_bias,
            "The second bias is not used.",
            "Where does `b_out` enter?",
        ),
        Misconception(
            weights_not_transposed,
            "The weights are stored as (width out, width in), so this product does not fit.",
            "Write the shapes beside each product; `F.linear` knows the layout.",
        ),
        Misconception(
            erf_of_half_x,
            "The argument of erf is divided by 2; it lacks the root.",
            "Compare with point 3 of the contract, term by term.",
        ),
    ),
    accepted=(mlp_by_einsum, mlp_by_linear, mlp_token_by_token),
)
