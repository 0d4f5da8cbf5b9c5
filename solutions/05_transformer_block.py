# %% [markdown]
# # 05 The transformer block
#
# Attention mixes tokens. On its own it mixes them until nothing is left to tell them apart. What
# makes a deep network of it are four plain parts: an MLP (a small network of two layers that every
# token goes through by itself), residual links, layer norms and dropout. You write each of them,
# put them together to a block that agrees with PyTorch's to the last digits, stack blocks, and
# count the parameters of BERT to the unit.
#
# **You will be able to**
#
# - say what attention without the other parts can and cannot do, and show it;
# - write layer norm, residual links in both orders, MLP and dropout, with their usual traps;
# - build a block and a stack of blocks that take PyTorch's weights;
# - keep padding from mattering, and count parameters from a model's shape.
#
# | section | minutes | points |
# |---|---|---|
# | 1 What attention alone cannot do | 20 | |
# | 2 The MLP: up, bend, down | 50 | 6 |
# | 3 Residual links: remember | 25 | 3 |
# | 4 Layer norm, first or last | 40 | 8 |
# | 5 Dropout | 12 | 2 |
# | 6 The block, and a stack of them | 65 | 10 |
# | 7 How large is BERT? | 15 | 3 |
# | Recap | 3 | |
# | **in all** | **230** | **32** |
#
# That is two sittings; after section 4 is a good place to stop.

# %% [markdown]
# **To read**, before or after: A. Vaswani et al. (2017), *Attention Is All You Need*, Sections 3.1,
# 3.3 and 5.4; J. L. Ba, J. R. Kiros and G. Hinton (2016), *Layer Normalization*, Section 3; R.
# Xiong et al. (2020), *On Layer Normalization in the Transformer Architecture*, Section 3; Y. Dong,
# J.-B. Cordonnier and A. Loukas (2021), *Attention is Not All You Need: Pure Attention Loses Rank
# Doubly Exponentially with Depth*.

# %% [markdown]
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `x` | (..., length, d_model) | the tokens' vectors, on their way through the layers |
# | `hidden` | (..., length, d_hidden) | the wide vectors inside the MLP |
# | `w_in`, `w_out` | (d_hidden, d_model), (d_model, d_hidden) | weights as in `nn.Linear` |
# | `gain`, `bias` | (d_model,) | what a layer norm learns |
# | `real` | (batch, length), bool | **True = there is a token**, False = padding |
# | `norm_first` | bool | True: pre-LN, False: post-LN |
#
# All checks run in float64 on the CPU. No exercise needs your answer to another one, except where
# its text says so.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, example
from attention_course.plots import spread

torch.set_num_threads(1)

# %% [markdown]
# ## 1 What attention alone cannot do
#
# An output of attention is a weighted average of values. For *given* weights, averages are linear:
# the average of a sum is the sum of the averages. So two attention layers in a row, with their
# weights held fixed, are one linear map, as two matrices in a row are one matrix.
#
# A function f is linear if f(a·x + b·y) = a·f(x) + b·f(y). We measure how far three small networks
# are from that, relative to the size of the result. Predict: which of them are exactly linear?
#
# - two attention layers with weights held fixed;
# - the same, with an MLP between them;
# - the same two layers, with weights computed anew for every input, as usual.


# %% tags=["experiment"]
def linearity_gap(seed, mlp_between, weights_fixed, length=6, width=8):
    """How far two attention layers are from linear: 0 is linear."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, y, first = draw(length, width), draw(length, width), draw(length, width)
    layers = [[draw(width, width) / width**0.5 for _ in range(3)] for _ in range(2)]
    wide, narrow = draw(width, 4 * width) / width**0.5, draw(4 * width, width) / (4 * width) ** 0.5

    def network(tokens, judged):  # weights are computed from `judged`
        for number, (to_query, to_key, to_value) in enumerate(layers):
            queries, keys = judged @ to_query, judged @ to_key
            weights = torch.softmax(queries @ keys.T / width**0.5, dim=-1)
            tokens = weights @ tokens @ to_value
            judged = weights @ judged @ to_value
            if mlp_between and number == 0:
                tokens = F.gelu(tokens @ wide) @ narrow
                judged = F.gelu(judged @ wide) @ narrow
        return tokens

    def f(tokens):
        return network(tokens, judged=first if weights_fixed else tokens)

    together = f(2 * x - 3 * y)
    return float((together - 2 * f(x) + 3 * f(y)).norm() / together.norm())


networks = {
    "attention, weights fixed": (False, True),
    "attention, weights fixed, MLP between": (True, True),
    "attention, weights computed": (False, False),
}
gaps = {
    name: [linearity_gap(seed, *options) for seed in range(10)]
    for name, options in networks.items()
}
for name, values in gaps.items():
    print(f"{name:<38} gap from {min(values):.1e} to {max(values):.1e} (10 seeds)")
linear = max(gaps["attention, weights fixed"]) < 1e-12
bent = min(gaps["attention, weights fixed, MLP between"]) > 1e-2
print(
    "“For fixed weights attention is linear, and an MLP ends that”:",
    "supported" if linear and bent else "NOT supported",
    "by this run.",
)

# %% [markdown]
# With fixed weights the gap is rounding. The third row is not linear: there is *one* non-linearity
# in attention, the softmax that makes the weights. But it only decides what is mixed with what.
# What comes out is still an average of values; nothing new is made of a token by itself.
#
# So what do many such layers do? We stack 12, untrained and with random weights, and watch how
# different the tokens still are: the share of the vectors' size that is *not* common to all tokens.
# 1 means that tokens have nothing in common, 0 that they are all the same vector.
#
# Predict: after 12 layers of attention alone, what is left? And which one part would you add to
# prevent it: norm, MLP, or a residual link (adding a layer's input to its output)?


# %% tags=["experiment"]
from attention_course.claims import report


def random_layers(seeds, layers, width, hidden, dtype=torch.float32, size=1.0):
    """Weights of one stack for each seed: a list of dicts of tensors (seeds, in, out)."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def draw(rows, columns):
        matrices = [torch.randn(rows, columns, generator=g, dtype=dtype) for g in generators]
        return torch.stack(matrices) / rows**0.5

    return [
        {
            "qkv": size * draw(width, 3 * width),
            "out": draw(width, width),
            "w_in": draw(width, hidden),
            "w_out": draw(hidden, width),
        }
        for _ in range(layers)
    ]


def plain_norm(x):
    """Layer norm with gain 1 and bias 0."""
    return F.layer_norm(x, x.shape[-1:])


def run_block(x, weights, heads, *, residual, mlp, norm):
    """One pre-LN block whose parts can be left out. x: (seeds, batch, length, width)."""
    norm = plain_norm if norm else (lambda tokens: tokens)
    qkv = (norm(x) @ weights["qkv"][:, None]).unflatten(-1, (3, heads, -1))
    mixed = F.scaled_dot_product_attention(*qkv.permute(3, 0, 1, 4, 2, 5))
    mixed = mixed.transpose(2, 3).flatten(-2) @ weights["out"][:, None]
    x = x + mixed if residual else mixed
    if mlp:
        bent = F.gelu(norm(x) @ weights["w_in"][:, None]) @ weights["w_out"][:, None]
        x = x + bent if residual else bent
    return x


def own_share(x):
    """Size of what differs between tokens, over the whole size: (seeds,)."""
    different = x - x.mean(dim=-2, keepdim=True)
    return different.flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)


seeds, depth = range(10), 12
drawn = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
start = torch.stack([torch.randn(1, 16, 64, generator=g, dtype=torch.float64) for g in drawn])
settings = {
    "attention only": {"residual": False, "mlp": False, "norm": False},
    "+ norm": {"residual": False, "mlp": False, "norm": True},
    "+ MLP": {"residual": False, "mlp": True, "norm": False},
    "+ residual": {"residual": True, "mlp": False, "norm": False},
    "+ residual, MLP, norm": {"residual": True, "mlp": True, "norm": True},
}
shares = {}
with torch.no_grad():
    for name, parts in settings.items():
        x, rows = start, [own_share(start)]
        for weights in random_layers(seeds, depth, 64, 256, torch.float64):
            x = run_block(x, weights, heads=4, **parts)
            rows.append(own_share(x))
        shares[name] = torch.stack(rows, dim=1).clamp(min=1e-17).numpy()
fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, runs in shares.items():
    spread(ax, range(depth + 1), runs, name)
ax.set_yscale("log")
ax.set_xlabel("layers passed")
ax.set_ylabel("share that differs between tokens")
ax.legend(fontsize=8)
plt.show()

for name, runs in shares.items():
    row = ", ".join(f"{runs[:, layer].mean():.1e}" for layer in (1, 2, 4, 8, 12))
    print(f"{name:<22} after 1, 2, 4, 8, 12 layers: {row}")
collapsed = shares["attention only"][:, -1].max() < 1e-6
left = {name: runs[:, -1].mean() for name, runs in shares.items()}
effect = ", ".join(f"{name}: {share:.0e}" for name, share in left.items())
apart = (shares["+ residual"][:, -1] > 0.01).all()
report(
    "C3", collapsed and apart, f"share that differs between tokens after {depth} layers: {effect}"
)
for name in ["+ norm", "+ MLP", "+ residual"]:
    kept = int((shares[name][:, -1] > 0.01).sum())
    print(f"“{name[2:]} alone prevents it” (more than 1 % left): {kept} of 10 seeds")

# %% [markdown]
# Attention alone loses everything that distinguishes tokens, and the line *bends down*: each layer
# takes a larger factor than the one before. (At 1e-16 rounding is all there is.) Dong et al. (2021)
# prove such a fall for attention without the other parts. They name two remedies, residual links
# and MLPs; in this run, with random weights, only the link helps. An MLP treats every token alike,
# so where tokens have become the same, it cannot set them apart again.
#
# This was an untrained network. Perhaps training finds a way round? Four layers learn the simplest
# task that needs attention: output the token before. Predict the accuracy of the four variants;
# guessing gives 6 %.


# %% tags=["experiment"]
def train_stacks(seeds, task, width, factor, layers, heads, steps, batch, rate, **parts):
    """Train one stack for each seed, side by side. Returns loss and accuracy, and parameters each.

    task(generators, batch) gives tokens and targets (seeds, batch, length) and the vocabulary.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def draw(*shape):
        return torch.stack([torch.randn(*shape, generator=g) for g in generators])

    tokens, _, vocabulary = task(generators, batch)
    length = tokens.shape[-1]
    words, places = 0.5 * draw(vocabulary, width), 0.3 * draw(length, width)
    reader = draw(width, vocabulary) / width**0.5
    blocks = random_layers(seeds, layers, width, factor * width)
    used = [p for block in blocks for n, p in block.items() if parts["mlp"] or n in ("qkv", "out")]
    parameters = [words, places, reader, *used]
    for parameter in parameters:
        parameter.requires_grad_()
    optimiser = torch.optim.Adam(parameters, lr=rate, fused=True)
    each = torch.arange(len(seeds))[:, None, None]

    def measure(batch):
        tokens, targets, _ = task(generators, batch)
        x = words[each, tokens] + places[:, None]
        for block in blocks:
            x = run_block(x, block, heads, norm=True, **parts)
        logits = (plain_norm(x) @ reader[:, None])[:, :, 1:]  # nothing stands before the first
        loss = F.cross_entropy(logits.flatten(0, 2), targets[:, :, 1:].flatten(), reduction="none")
        right = logits.argmax(dim=-1) == targets[:, :, 1:]
        return loss.view(len(seeds), -1).mean(dim=1), right.double().mean(dim=(1, 2))

    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimiser.zero_grad()
        measure(batch)[0].sum().backward()
        optimiser.step()
    with torch.no_grad():
        loss, accuracy = measure(256)
    return loss.numpy(), accuracy.numpy(), sum(p[0].numel() for p in parameters)


def previous_token(generators, batch, vocabulary=16, length=10):
    """Targets are the tokens before."""
    tokens = [torch.randint(vocabulary, (batch, length), generator=g) for g in generators]
    tokens = torch.stack(tokens)
    return tokens, tokens.roll(1, dims=-1), vocabulary


variants = {
    "attention only": {"residual": False, "mlp": False},
    "+ MLP": {"residual": False, "mlp": True},
    "+ residual": {"residual": True, "mlp": False},
    "+ residual, MLP": {"residual": True, "mlp": True},
}
accuracies = {}
for name, parts in variants.items():
    options = {"width": 32, "factor": 2, "layers": 4, "heads": 4, "steps": 250, "batch": 16}
    _, accuracies[name], _ = train_stacks(range(3), previous_token, rate=4e-3, **options, **parts)
    shown = ", ".join(f"{value:.0%}" for value in accuracies[name])
    print(f"{name:<16} accuracy of three seeds: {shown}")
without = max(accuracies[name].max() for name in ["attention only", "+ MLP"])
with_link = min(accuracies[name].min() for name in ["+ residual", "+ residual, MLP"])
print(
    "“Four layers learn this with residual links and not without”:",
    "supported" if with_link > 0.95 and without < 0.5 else "NOT supported",
    f"by this run (worst with {with_link:.0%}, best without {without:.0%}).",
)

# %% [markdown]
# All four have layer norms. The link is what makes the difference here; the MLP is needed for other
# things, and we come to them now.

# %% [markdown]
# ## 2 The MLP: up, bend, down
#
# After attention, each token's vector goes through a small network of two layers: widen it (Vaswani
# et al. take four times the width), apply a non-linear function to every number, narrow it again.
# Why widen? What is tangled in few dimensions may be simple in more.
#
# A ring inside a ring: no straight line separates them. Predict: how many hidden units must there
# be before a *plane* does? Raise the lift, turn the picture. Then switch ReLU off.

# %% tags=["explorer"]
from attention_course.explorers import ring_lift

ring_lift(units=1)

# %% [markdown]
# Each hidden unit measures how far a point lies in one direction; ReLU keeps what is positive.
# Their sum is a bowl, low in the middle and high outside, and a plane cuts it at one height. Seen
# from above again, the cut is a closed line around the inner ring: the boundary, brought back down.
# Without ReLU the units cancel and the sheet stays flat, however many there are.
#
# That bowl was made by hand. Does training find one? Predict: how many hidden units does it need?
# More than the smallest possible number, or just that?


# %% tags=["experiment"]
def ring_accuracy(hidden, bend, seeds, points=200, steps=300):
    """Train width 2 → hidden → 1 on two rings, one network for each seed; accuracies (seeds,)."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    labels = (torch.arange(points) >= points // 2).float()

    def draw(*shape):
        return torch.stack([torch.randn(*shape, generator=g) for g in generators])

    angle = 2 * math.pi * torch.stack([torch.rand(points, generator=g) for g in generators])
    radius = 1 + labels + 0.15 * draw(points)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
    weights = [draw(2, hidden), draw(1, hidden), draw(hidden, 1), draw(1, 1)]
    w_in, b_in, w_out, b_out = (weight.requires_grad_() for weight in weights)
    optimiser = torch.optim.Adam(weights, lr=0.05, fused=True)
    targets = labels.expand(len(seeds), -1)
    for _ in range(steps):
        logits = (bend(x @ w_in + b_in) @ w_out + b_out)[..., 0]
        loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        optimiser.zero_grad()
        loss.mean(dim=1).sum().backward()
        optimiser.step()
    return ((logits > 0) == (targets > 0)).double().mean(dim=1).numpy()


widths = [1, 2, 3, 4, 8, 16]
bends = {"ReLU": torch.relu, "no activation": lambda values: values}
found = {
    name: [ring_accuracy(width, bend, range(10)) for width in widths]
    for name, bend in bends.items()
}
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, rows in found.items():
    spread(ax, range(len(widths)), [list(run) for run in zip(*rows, strict=True)], name)
ax.set_xticks(range(len(widths)), widths)
ax.set_xlabel("hidden units")
ax.set_ylabel("accuracy on the rings")
ax.legend(fontsize=8)
plt.show()
for name, rows in found.items():
    solved = [int((row > 0.98).sum()) for row in rows]
    print(f"{name:<14} seeds of 10 above 98 % with {widths} units: {solved}")
straight = max(row.max() for row in found["no activation"])
supported = (found["ReLU"][-1] > 0.98).all() and straight < 0.8
print(
    "“Wide enough and bent, the rings come apart; unbent they never do”:",
    "supported" if supported else "NOT supported",
    f"by this run (best unbent: {straight:.0%}).",
)

# %% [markdown]
# Three units *can* do it, as the picture shows. How often training finds that is another matter:
# see the count for 3 units, and for wider layers. Width is not only room, it also makes learning
# easier. (Two inputs and 200 points are a toy; what a hidden unit of a language model measures is
# not as easily drawn.)

# %% [markdown]
# ### Exercise 1: the MLP
# *12 minutes, medium, 3 points*
#
# 1. `hidden` = x times w_in plus b_in; bend every number of it; times w_out plus b_out.
# 2. The weights are stored as `nn.Linear` does: `w_in` is (d_hidden, d_model), `w_out` (d_model,
#    d_hidden).
# 3. `activation` is one of three, and the two forms of GELU are told apart:
#    - `"relu"`: max(h, 0);
#    - `"gelu"`, the exact form: $\frac h2\left(1 + \mathrm{erf}\frac{h}{\sqrt 2}\right)$, that is h
#      times the probability that a standard normal number is below h;
#    - `"gelu_tanh"`: $\frac h2\left(1 + \tanh\left(\sqrt{2/\pi}\,(h +
#      0.044715\,h^3)\right)\right)$.
# 4. Any number of leading axes. Hidden values may be large.
# 5. Do without a library's GELU. (`torch.erf`, `torch.tanh` and `torch.relu` are yours.)
#
# Example: x `[2.]`, w_in `[[1.], [-1.]]`, b_in `[0., 0.]`, w_out `[[3., 5.]]`, b_out `[1.]` and
# `"relu"`: hidden is `[2., -2.]`, bent `[2., 0.]`, the result `[7.]`.
#
# GELU is from D. Hendrycks and K. Gimpel (2016), *Gaussian Error Linear Units*, Section 2.


# %% nbgrader={"grade_id": "mlp", "solution": true}
def mlp(x, w_in, b_in, w_out, b_out, activation):
    """Widen every token's vector, bend it, narrow it again.

    x: float tensor (..., d_model). w_in: (d_hidden, d_model). b_in: (d_hidden,).
    w_out: (d_model, d_hidden). b_out: (d_model,). activation: "relu", "gelu" or "gelu_tanh".
    Returns a float tensor (..., d_model).
    """
    ### BEGIN SOLUTION
    hidden = x @ w_in.T + b_in
    if activation == "relu":
        bent = torch.relu(hidden)
    elif activation == "gelu":
        bent = hidden / 2 * (1 + torch.erf(hidden / math.sqrt(2)))
    else:
        inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
        bent = hidden / 2 * (1 + torch.tanh(inner))
    return bent @ w_out.T + b_out
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-mlp", "grade": true, "points": 3}
check("mlp", mlp)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Three lines: up, bend, down. Only the middle one depends on `activation`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Write the shapes beside each product: (..., d_model) with (d_hidden, d_model) does not fit as it
# stands. Each form of GELU has the shape h/2 · (1 + something between −1 and 1).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The two forms differ in the fourth digit only. Mind the √2 inside erf, and which way up the
# fraction under the other root stands.
# </details>

# %% [markdown]
# ### The same for every position
#
# The MLP reads one token at a time and has *the same* weights at every position. (One sometimes
# reads that each position has weights of its own. It is the *layers* that have.) Three ways to say
# this in code: an `nn.Linear` on the whole batch; a loop over tokens; a convolution of width 1
# along the sentence. Vaswani et al. (Section 3.3) mention the last one.
#
# Predict: how far apart are the three? And if we shuffle the tokens first?


# %% tags=["experiment"]
def position_gaps(seed, batch=3, length=7, width=8, hidden=20):
    """Largest differences from the MLP on a whole batch: loop, convolution, shuffled tokens."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, length, width, generator=generator, dtype=torch.float64)
    order = torch.randperm(length, generator=generator)
    up, down = nn.Linear(width, hidden).double(), nn.Linear(hidden, width).double()
    for parameter in [*up.parameters(), *down.parameters()]:
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)

    def network(tokens):
        return down(F.gelu(up(tokens)))

    whole = network(x)
    loop = torch.stack([torch.stack([network(token) for token in sentence]) for sentence in x])
    convolved = F.conv1d(x.mT, up.weight[..., None], up.bias)
    convolved = F.conv1d(F.gelu(convolved), down.weight[..., None], down.bias).mT
    shuffled = network(x[:, order]) - whole[:, order]
    differences = [loop - whole, convolved - whole, shuffled]
    return torch.stack([part.detach().abs().max() / whole.abs().max() for part in differences])


gaps = torch.stack([position_gaps(seed) for seed in range(10)])
for name, values in zip(["loop", "convolution of width 1", "shuffled"], gaps.T, strict=True):
    print(f"{name:<23} differs by at most {values.max():.1e} (10 seeds)")
same = bool(gaps.max() < 1e-12)
report("C8", same, f"three ways to share it differ by at most {gaps.max():.0e} (10 seeds)")

# %% [markdown]
# Only rounding. So it does not matter *where* a token stands when it goes through the MLP, and in a
# padded batch the padding need not go through at all.

# %% [markdown]
# ### Exercise 2: only real tokens
# *12 minutes, medium, 3 points*
#
# 1. `packed`, of shape (tokens, d_model): the vectors of the real tokens of the batch, one after
#    the other, in the order of reading: first sequence first, and from its first place to its last.
#    Padding may stand anywhere.
# 2. Send `packed` through the MLP with the exact GELU (`F.gelu` and `F.linear` may be used).
# 3. `output`, of the shape of x: each result at the place its token came from, and **0 where there
#    is padding**.
# 4. Return `(output, packed)`. Gradients reach x through the real tokens; x is left unchanged.
#
# Example: x `[[[1.], [9.], [2.]]]` and real `[[T, F, T]]`: packed is `[[1.], [2.]]`; if the MLP
# made `[[5.], [6.]]` of it, the output would be `[[[5.], [0.], [6.]]]`.


# %% nbgrader={"grade_id": "packed_mlp", "solution": true}
def packed_mlp(x, real, w_in, b_in, w_out, b_out):
    """Send only the real tokens of a padded batch through the MLP.

    x: float tensor (batch, length, d_model). real: bool tensor (batch, length), True = a token.
    Weights as in exercise 1.
    Returns (output, packed) of shapes (batch, length, d_model) and (tokens, d_model).
    """
    ### BEGIN SOLUTION
    packed = x[real]
    output = torch.zeros_like(x)
    output[real] = F.linear(F.gelu(F.linear(packed, w_in, b_in)), w_out, b_out)
    return output, packed
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-packed_mlp", "grade": true, "points": 3}
check("packed_mlp", packed_mlp)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A boolean tensor can be an index: on the right of `=` it fetches, on the left it writes.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Fetch, MLP, and write into a tensor of zeros at the same places.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Counting the tokens of each row is not enough: padding may stand in between. And what is packed
# must keep its graph: no `.data`, no NumPy.
# </details>

# %% [markdown]
# ### How wide?
#
# Four times the width is a habit: nobody has derived it. We sweep it on a small task that asks for
# both attention and memory: a random table says what follows each *pair* of tokens, so a model must
# fetch the previous token and know 144 facts by heart. One block, 250 steps each.
#
# The sweep is run twice, and they ask different things:
#
# - **same width**: only the MLP grows, and with it the number of parameters;
# - **equal parameters**: the wider the MLP, the narrower everything else.
#
# Predict both lines.


# %% tags=["experiment"]
def pair_table(generators, batch, vocabulary=12, length=10):
    """Targets are looked up by previous and present token, in each seed's own random table."""
    tokens, targets = [], []
    for generator in generators:
        table_seed = torch.Generator().manual_seed(generator.initial_seed() + 10_000)
        facts = torch.randint(vocabulary, (vocabulary, vocabulary), generator=table_seed)
        drawn = torch.randint(vocabulary, (batch, length), generator=generator)
        tokens.append(drawn)
        targets.append(facts[drawn.roll(1, dims=-1), drawn])
    return torch.stack(tokens), torch.stack(targets), vocabulary


factors = [1, 2, 4, 8]
sweeps = {"same width": [20] * 4, "equal parameters": [28, 24, 20, 16]}
losses, sizes = {}, {}
for name, widths_of_sweep in sweeps.items():
    runs = [
        train_stacks(
            range(5), pair_table, width=width, factor=factor, layers=1, heads=2, steps=250,
            batch=32, rate=5e-3, residual=True, mlp=True,
        )
        for width, factor in zip(widths_of_sweep, factors, strict=True)
    ]  # fmt: skip
    losses[name] = [list(row) for row in zip(*(run[0] for run in runs), strict=True)]
    sizes[name] = [run[2] for run in runs]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, (name, rows) in zip(axes, losses.items(), strict=True):
    spread(ax, range(4), rows, "loss")
    labels = [f"{factor}\n{size:,}" for factor, size in zip(factors, sizes[name], strict=True)]
    ax.set_xticks(range(4), labels)
    ax.set_xlabel("d_hidden / d_model, and parameters")
    ax.set_title(name, fontsize=10)
axes[0].axhline(math.log(12), color="0.5", ls=":", label="guessing")
axes[0].set_ylabel("loss after 250 steps (nats)")
axes[0].legend(fontsize=8)
plt.show()

for name, rows in losses.items():
    means = [sum(column) / len(column) for column in zip(*rows, strict=True)]
    best = [factors[row.index(min(row))] for row in rows]
    shown = ", ".join(f"{mean:.2f}" for mean in means)
    print(f"{name:<17} mean losses {shown}; best factor of each seed: {best}")
    claims = {
        "wider is better": means == sorted(means, reverse=True),
        "4 is the best factor": best.count(4) > len(best) / 2,
    }
    for claim, holds in claims.items():
        print(f"{'':<17} “{claim}”: {'supported' if holds else 'NOT supported'} by this run.")
report("C4", claims["4 is the best factor"], f"best factor at equal parameters, 5 seeds: {best}")

# %% [markdown]
# Read it with care. In the left panel a wider MLP also has more parameters and takes longer, so
# "wider is better" is half of an answer. In the right panel width of the MLP is bought with width
# of the stream, and here the stream was worth more. One task, one depth, one learning rate, 250
# steps: this says nothing about the best factor of a large language model. It shows that "4" is a
# choice, and that the answer depends on what is held equal.

# %% [markdown]
# ## 3 Residual links: remember
#
# A residual link adds a layer's input to its output: $x + f(x)$ (K. He et al., 2016, *Deep Residual
# Learning for Image Recognition*, Section 3). Forwards, a layer need not remember what it does not
# change. Backwards, the gradient has a way that goes past the layer: the derivative of $x + f(x)$
# is 1 plus that of f.
#
# Predict: 20 random layers tanh(x·W), with weights of three sizes. How large is the gradient at the
# first layer, compared with the last output, without and with links?


# %% tags=["experiment"]
def gradient_sizes(seed, residual, size, layers=20, width=32, length=8):
    """Norm of the loss's gradient at the input of every layer, over that at the last output."""
    generator = torch.Generator().manual_seed(seed)
    state = torch.randn(length, width, generator=generator).requires_grad_()
    states = [state]
    for _ in range(layers):
        weight = size * torch.randn(width, width, generator=generator) / width**0.5
        bent = torch.tanh(state @ weight)
        state = state + bent if residual else bent
        states.append(state)
    probe = torch.randn(length, width, generator=generator)
    gradients = torch.autograd.grad((state * probe).sum(), states)
    return [float(gradient.norm() / gradients[-1].norm()) for gradient in gradients]


kinds = {"without links": False, "with links": True}
sizes_of_weights = [0.5, 1.0, 2.0]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
at_first = {}
for ax, (name, residual) in zip(axes, kinds.items(), strict=True):
    for size in sizes_of_weights:
        runs = [gradient_sizes(seed, residual, size) for seed in range(10)]
        spread(ax, range(21), runs, f"weights of size {size:g}")
        at_first[name, size] = [run[0] for run in runs]
    ax.set(yscale="log", xlabel="layers passed on the way forward", title=name)
    ax.set_xticks(range(0, 21, 5))
    ax.legend(fontsize=8)
axes[0].set_ylabel("size of the gradient (output: 1)")
plt.show()
for (name, size), values in at_first.items():
    print(f"{name:<14} size {size:<4g} first layer: {min(values):.1e} to {max(values):.1e}")
fades = max(at_first["without links", 0.5]) < 1e-3
arrives = min(min(at_first["with links", size]) for size in sizes_of_weights) > 0.5
print(
    "“Without links a gradient may fade away; with links it arrives, whatever the size”:",
    "supported" if fades and arrives else "NOT supported",
    "by this run.",
)

# %% [markdown]
# Without links every layer multiplies the gradient by some factor, and 20 factors in a row are tiny
# or large unless the weights have just the right size. With links it arrives at all three sizes; it
# even *grows* on the way, since each layer adds to it. Growth has its own remedy: the norms of
# section 4.

# %% [markdown]
# ### Exercise 3: how far the gradient gets
# *12 minutes, medium, 3 points*
#
# 1. Layer l computes $\tanh(x W_l)$; with `residual` it computes $x + \tanh(x W_l)$. `weights` has
#    shape (layers, d, d); layer 0 comes first.
# 2. The loss is the sum of all entries of (output of the last layer) · `probe`, entry by entry.
# 3. Entry l of the result is the norm (root of the sum of squares, over *all* entries) of the
#    loss's gradient at the **input of layer l**. So entry 0 belongs to x itself.
# 4. x may have leading axes. Return a tensor of shape (layers,).
#
# Example: for d = 1, one layer, x `[[0.]]`, weights `[[[2.]]]`, probe `[[3.]]`: tanh has slope 1 at
# 0, so the gradient is 3 · 2 = 6 without the link, and 3 · (1 + 2) = 9 with it.


# %% nbgrader={"grade_id": "gradient_norms", "solution": true}
def gradient_norms(x, weights, probe, residual):
    """Give the norm of the loss's gradient at the input of every layer.

    x, probe: float tensors (..., d). weights: float tensor (layers, d, d). residual: bool.
    Returns a float tensor (layers,).
    """
    ### BEGIN SOLUTION
    states = [x.detach().requires_grad_()]
    for weight in weights:
        bent = torch.tanh(states[-1] @ weight)
        states.append(states[-1] + bent if residual else bent)
    loss = (states[-1] * probe).sum()
    gradients = torch.autograd.grad(loss, states[:-1])
    return torch.stack([gradient.norm() for gradient in gradients])
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-gradient_norms", "grade": true, "points": 3}
check("gradient_norms", gradient_norms)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Keep every layer's input in a list; one backward pass serves them all.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.autograd.grad(loss, list_of_tensors)` gives one gradient for each. The first input must ask
# for gradients before the loop starts.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# After `backward`, only leaves have a `.grad` (unless you call `retain_grad`). There are as many
# inputs as layers: the last output is none of them.
# </details>

# %% [markdown]
# ## 4 Layer norm, first or last
#
# Layer norm gives every token's vector mean 0 and variance 1, each token by itself, and then lets
# the network choose another size and mean for each feature:
#
# $$\text{norm}(x) = \text{gain}\cdot\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \text{bias},$$
#
# with $\mu$ and $\sigma^2$ the mean and variance of this token's numbers (Ba, Kiros and Hinton,
# 2016, Section 3). Predict: if all numbers of a token are multiplied by 10, what changes in the
# result? And if 10 is added to all of them?

# %% tags=["experiment"]
token = torch.tensor([1.0, 2.0, 3.0, 6.0])
for name, changed in {"token": token, "times 10": 10 * token, "plus 10": token + 10}.items():
    result = ", ".join(f"{value:+.4f}" for value in plain_norm(changed[None])[0])
    print(f"{name:<9} {result}")
tiny = torch.tensor([1.0, 2.0, 3.0, 6.0]) * 1e-3
print("times 0.001", ", ".join(f"{value:+.4f}" for value in plain_norm(tiny[None])[0]))

# %% [markdown]
# Size and mean of the input do not matter, until the variance comes down to epsilon: there the
# result gets smaller. That is what epsilon is for: a token with no variance at all gives 0 and not
# 0/0.

# %% [markdown]
# ### Exercise 4: layer norm
# *10 minutes, medium, 3 points*
#
# 1. Mean and variance are those of **one token's vector**: over the last axis. Any number of
#    leading axes, also none.
# 2. The variance divides by d, the number of entries (not by d − 1).
# 3. Epsilon is added to the variance, **inside the root**. It is an argument: use it.
# 4. Then multiply by `gain` and add `bias`, both of shape (d,).
# 5. Gradients flow through mean and variance too. Do without a library's layer, batch, group,
#    instance or RMS norm; `x.mean`, `x.var` and the like are fine.
#
# Example: x `[[1., 3.]]`, gain `[2., 2.]`, bias `[0., 1.]`, epsilon 0: mean 2, variance 1, so the
# result is `[[-2., 3.]]`.


# %% nbgrader={"grade_id": "layer_norm", "solution": true}
def layer_norm(x, gain, bias, epsilon):
    """Normalise every token's vector, then apply gain and bias.

    x: float tensor (..., d). gain, bias: float tensors (d,). epsilon: float.
    Returns a float tensor of the shape of x.
    """
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + epsilon) + bias
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-layer_norm", "grade": true, "points": 3}
check("layer_norm", layer_norm)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The formula above, with every mean over the last axis.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `keepdim=True` keeps the axis, so that mean and variance of each token line up with its numbers.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `x.var(-1)` and `x.std(-1)` divide by d − 1; `correction=0` makes it d. And `std + epsilon` is not
# `sqrt(variance + epsilon)`: see a row of tiny numbers.
# </details>

# %% [markdown]
# ### Two orders
#
# Every sublayer (attention, MLP) gets a residual link and a norm. The original puts the norm
# *after* the sum (**post-LN**); most models since put it *before* the sublayer (**pre-LN**).
# Predict from the picture: in which of the two does a straight way lead from bottom to top with no
# norm on it?


# %% tags=["experiment"]
def draw_sublayer(ax, title, boxes, plus, joins):
    """Draw boxes on the main line at given heights, and the link from `joins` to the plus sign."""
    ax.annotate("", (0, 4.6), (0, -0.4), arrowprops={"arrowstyle": "->", "color": "0.3"})
    for height, name, colour in boxes:
        box = {"boxstyle": "round,pad=0.4", "fc": colour, "ec": "0.3"}
        ax.text(0, height, f"{name:^9}", ha="center", va="center", bbox=box)
    ax.plot([0, 1.3, 1.3, 0.15], [joins, joins, plus, plus], color="C0", lw=2)
    ax.text(0, plus, "+", ha="center", va="center", fontsize=13,
            bbox={"boxstyle": "circle,pad=0.1", "fc": "white", "ec": "C0"})  # fmt: skip
    ax.text(1.4, (joins + plus) / 2, "residual link", color="C0", rotation=90, va="center")
    ax.text(0.1, -0.35, "x", ha="left")
    ax.set_xlim(-1.5, 2.2)
    ax.set_ylim(-0.6, 4.8)
    ax.set_title(title, fontsize=10)
    ax.axis("off")


fig, axes = plt.subplots(1, 2, figsize=(6.5, 3.6), layout="constrained")
norm_colour, sublayer_colour = "#fde3c8", "#dbe9f6"
pre = [(1, "norm", norm_colour), (2.2, "sublayer", sublayer_colour)]
post = [(1.2, "sublayer", sublayer_colour), (3.6, "norm", norm_colour)]
draw_sublayer(axes[0], "pre-LN: x + sublayer(norm(x))", pre, plus=3.4, joins=0.2)
draw_sublayer(axes[1], "post-LN: norm(x + sublayer(x))", post, plus=2.4, joins=0.2)
plt.show()

# %% [markdown]
# In pre-LN the blue way and the line above the plus sign carry x past everything. In post-LN every
# sublayer's norm stands in the way: what goes up is rescaled each time.
#
# A stand-in for attention and MLP, for the next exercise: any function of the tokens will do.


# %%
def sublayer(x, weight):
    """Stand for attention or MLP. x: (..., d). weight: (d, d). Returns (..., d)."""
    return torch.tanh(x @ weight)


# %% [markdown]
# ### Exercise 5: add and norm
# *8 minutes, easy, 3 points*
#
# 1. With `norm_first`: x plus the sublayer of the normalised x. The link starts **before** the
#    norm.
# 2. Without: the norm of x plus the sublayer of x.
# 3. The sublayer is `sublayer(x, weight)` from the cell above, called once. The norm has `gain`,
#    `bias` and epsilon 1e-5; `F.layer_norm` may be used (your own `layer_norm` too).
# 4. Gradients reach x by both ways. x is left unchanged.
#
# Example: if the weight is all zeros, the sublayer gives 0; then pre-LN returns x itself and
# post-LN the norm of x.


# %% nbgrader={"grade_id": "add_and_norm", "solution": true}
def add_and_norm(x, weight, gain, bias, norm_first):
    """Put a residual link and a norm around `sublayer`.

    x: float tensor (..., d). weight: (d, d). gain, bias: (d,). norm_first: bool.
    Returns a float tensor (..., d).
    """
    ### BEGIN SOLUTION
    if norm_first:
        return x + sublayer(F.layer_norm(x, x.shape[-1:], gain, bias), weight)
    return F.layer_norm(x + sublayer(x, weight), x.shape[-1:], gain, bias)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-add_and_norm", "grade": true, "points": 3}
check("add_and_norm", add_and_norm)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Follow the two pictures from bottom to top and write down what you pass.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `F.layer_norm(tokens, tokens.shape[-1:], gain, bias)` is the norm. Each order uses it once: on
# what?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `x = norm(x)` followed by `x + sublayer(x)` adds the *normalised* x. And `x += …` writes into the
# caller's tensor.
# </details>

# %% [markdown]
# ### Which order?
#
# Xiong et al. (2020) ask how large gradients are *before the first step*. For the MLP of the last
# layer their Theorem 1 says: in post-LN the size does not depend on the number of layers L; in
# pre-LN it falls like $1/\sqrt L$. Large gradients at the start are, in their account, why post-LN
# needs a warm-up of the learning rate: small steps first (chapter 07 has the formula).
#
# We measure it on PyTorch's own layers. Predict the two slopes in a log-log plot against L.


# %% tags=["experiment"]
def mlp_gradients(seed, norm_first, layers, width=48, hidden=192, words=256):
    """Gradient norm of each layer's second MLP matrix, for a fresh stack and random targets."""
    generator = torch.Generator().manual_seed(seed)

    def refill(matrix):
        rows, columns = matrix.shape
        drawn = torch.randn(rows, columns, generator=generator)
        matrix.data = drawn * (2 / (rows + columns)) ** 0.5  # Xavier, as in the paper

    x = torch.randn(4, 16, width, generator=generator)
    targets = torch.randint(words, (4 * 16,), generator=generator)
    matrices = []
    for _ in range(layers):
        layer = nn.TransformerEncoderLayer(
            width, 4, hidden, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        attention = layer.self_attn
        for matrix in (attention.in_proj_weight, attention.out_proj.weight):
            refill(matrix)
        for linear in (layer.linear1, layer.linear2):
            refill(linear.weight)
            nn.init.zeros_(linear.bias)
        x = layer(x)
        matrices.append(layer.linear2.weight)
    x = plain_norm(x) if norm_first else x
    reader = torch.randn(width, words, generator=generator) / width**0.5
    loss = F.cross_entropy((x @ reader).flatten(0, 1), targets)
    return [float(gradient.norm()) for gradient in torch.autograd.grad(loss, matrices)]


depths = [2, 4, 8, 16]
orders = {"post-LN": False, "pre-LN": True}
measured = {
    name: [[mlp_gradients(seed, first, layers) for layers in depths] for seed in range(5)]
    for name, first in orders.items()
}
fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.3), layout="constrained", sharey=True)
for name, runs in measured.items():
    spread(axes[0], depths, [[row[-1] for row in run] for run in runs], name)
    spread(axes[1], range(1, depths[-1] + 1), [run[-1] for run in runs], name)
axes[0].set(xscale="log", yscale="log", xlabel="layers L", title="last layer")
axes[0].set_xticks(depths, depths)
axes[0].xaxis.minorticks_off()
axes[1].set(xlabel="layer", yscale="log", title=f"all layers of {depths[-1]}")
axes[0].set_ylabel("gradient norm, 2nd MLP matrix")
for ax in axes:
    ax.legend(fontsize=8)
plt.show()

logs = torch.tensor(depths).double().log()
slopes = {}
for name, runs in measured.items():
    last = torch.tensor([[row[-1] for row in run] for run in runs]).double().log()
    centred = logs - logs.mean()
    each_slope = (last * centred).sum(dim=1) / (centred**2).sum()
    slopes[name] = float(each_slope.mean())
    extremes = f"{each_slope.min():+.2f} to {each_slope.max():+.2f}"
    print(f"{name:<8} last layer ~ L^{slopes[name]:+.2f} ({extremes})")
holds = abs(slopes["post-LN"]) < 0.15 and abs(slopes["pre-LN"] + 0.5) < 0.15
verdict = "supported" if holds else "NOT supported"
print(f"Slopes 0 and −1/2 (±0.15) for the last layer: {verdict} by this run.")

# %% [markdown]
# Left, the last layer in stacks of 2 to 16: post-LN stays level, pre-LN falls. Here it falls a
# little more slowly than $1/\sqrt L$; the theorem speaks of very wide layers and leaves constants
# open.
#
# The panel on the right shows the whole stack: in pre-LN, later layers get smaller gradients, as
# the stream they add to has grown. What this does *not* show: that training fails without a
# warm-up. That is the paper's second step, and it needs longer runs than this.

# %% [markdown]
# ### In words: why a block needs more than attention
# *5 minutes, 2 points, marked by hand*
#
# In four to eight sentences: (a) What can attention alone not do, and which of the other parts
# supplies it? Name two things. (b) Why does the residual link in pre-LN start before the norm? Say
# what it would mean for a deep stack if it started after it.

# %% [markdown] nbgrader={"grade_id": "why-block", "grade": true, "solution": true, "points": 2}
# (a) Attention gives each token a weighted average of (linear images of) tokens. With its weights
# held fixed it is linear, so stacking it makes no richer function of a token: the MLP's activation
# supplies the non-linearity. And averaging makes tokens alike: without residual links, deep stacks
# of attention end with all tokens equal. The link keeps each token's own vector, and gives the
# gradient a way past the layer. (Dong et al. name the MLP as a second remedy against the collapse;
# in this notebook's run it did not help.)
#
# (b) If the link starts before the norm, the stream from input to output is only ever *added* to:
# the identity leads through the whole stack, forwards and backwards. If it started after the norm,
# every layer would replace x by norm(x): the original size and mean would be lost at once, and the
# gradient would have to pass one norm for each sublayer, as in post-LN.
#
# *Mark scheme.* (a) 1 point: linear for fixed weights / no non-linearity of a token by itself,
# cured by the MLP (½); tokens become alike, or gradient fades, cured by the residual link (½). (b)
# 1 point: unbroken identity path in pre-LN (½); what is lost otherwise: the raw stream is
# normalised at every sublayer, or the gradient passes all norms (½). "Because the paper does so":
# 0.

# %% [markdown]
# ## 5 Dropout
#
# In training, dropout sets each number to 0 with probability p, so that nothing can rely on one
# number alone (N. Srivastava et al., 2014, *Dropout*, Section 4). What stays is scaled up by 1/(1 −
# p), so that the mean is what it was; then evaluation has nothing to do. (In that paper p is the
# probability of *staying*, and it is evaluation that scales, down. Today's libraries do as here.)
# A transformer drops from what each sublayer gives, before the residual link adds it, and from the
# sum of word and position vectors (Vaswani et al., Section 5.4).
#
# Predict: how large are mean and spread of 10,000 ones after dropout with p = 0.25?

# %% tags=["experiment"]
ones = torch.ones(10_000)
generator = torch.Generator().manual_seed(0)
for p in (0.1, 0.25, 0.5):
    kept = (torch.rand(len(ones), generator=generator) >= p) * ones / (1 - p)
    expected = math.sqrt(p / (1 - p))
    print(f"p = {p:<4}  mean {kept.mean():.3f}  standard deviation {kept.std():.3f}", end="  ")
    print(f"(√(p/(1 − p)) = {expected:.3f})")

# %% [markdown]
# ### Exercise 6: dropout by hand
# *8 minutes, easy, 2 points*
#
# 1. In training, a number is dropped (set to 0) where `uniform < p`, and kept where `uniform >= p`.
#    `uniform` has the shape of x and holds random numbers from 0 to 1, drawn by the caller.
# 2. What is kept is divided by 1 − p.
# 3. With p = 1 everything is 0; no NaN.
# 4. If `training` is False, the result is x: not scaled, nothing dropped.
# 5. x is left unchanged; do without a library's dropout.
#
# Example: x `[3., 3., 3.]`, uniform `[0.2, 0.25, 0.9]`, p 0.25: `[0., 4., 4.]`.


# %% nbgrader={"grade_id": "dropout", "solution": true}
def dropout(x, p, uniform, training):
    """Drop numbers in training and scale up the rest.

    x, uniform: float tensors of the same shape. p: float from 0 to 1. training: bool.
    Returns a float tensor of the shape of x.
    """
    ### BEGIN SOLUTION
    if not training:
        return x
    if p == 1:
        return torch.zeros_like(x)
    return torch.where(uniform >= p, x / (1 - p), 0.0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-dropout", "grade": true, "points": 2}
check("dropout", dropout)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two questions come before the formula: training or not, and is there anything left to scale?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.where(condition, a, b)` takes a where the condition holds and b elsewhere.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `uniform > p` also drops what is exactly p. And 0 · (1/0) is NaN.
# </details>

# %% [markdown]
# A module knows which of the two it is in: `model.eval()` and `model.train()` set a flag that
# `nn.Dropout` reads. Two classic slips: forgetting `eval()` before measuring, and forgetting
# `train()` after it. In this chapter's modules nothing is dropped, so that results can be compared.

# %% [markdown]
# ## 6 The block, and a stack of them
#
# Now put the parts together and watch the tokens pass through. Top: how large their vectors are.
# Bottom: how alike they are. The weights are random, nothing is trained. Predict, before each
# click:
#
# - no residual link, no MLP, no norm: you know this one;
# - residual link and MLP with no norm: what happens to the size?
# - pre-LN against post-LN: in which does the size stay the same, in which does it grow?

# %% tags=["explorer"]
from attention_course.explorers import block_flow

block_flow()

# %% [markdown]
# Post-LN pins the size after every sublayer. Pre-LN lets the stream grow slowly, so that later
# layers change it less and less. Without a norm, links add up without limit. And tokens stay apart
# only with links; how long depends on the norm: set 24 layers and compare the two orders. (Random
# weights, one draw. Trained networks are another matter.)

# %% [markdown]
# ### Exercise 7: one encoder block
# *20 minutes, hard, 4 points*
#
# 1. `EncoderBlock(d_model, heads, d_hidden, norm_first)` has two halves: self-attention, then the
#    MLP. Each has its own residual link and its own norm, in the order of `norm_first` as in
#    exercise 5 (epsilon 1e-5).
# 2. **Names** of its parts, so that PyTorch's weights fit: `self_attn` (an
#    `nn.MultiheadAttention`), `linear1` (d_model → d_hidden), `linear2` (d_hidden → d_model),
#    `norm1` (belongs to the attention), `norm2` (belongs to the MLP). All with biases. No other
#    parameters.
# 3. x has shape (batch, length, d_model), and so has the result. Every token sees all tokens of its
#    own sequence; no mask here.
# 4. The MLP bends with the exact GELU. Nothing is dropped, also in training mode.
# 5. Build it from its parts: without `nn.TransformerEncoderLayer`.
#
# The checks load the weights of an `nn.TransformerEncoderLayer` into your block and compare
# results, gradients and the number of parameters.
#
# Example: with d_model 6, d_hidden 10 there are 4 · (36 + 6) + (60 + 10) + (60 + 6) + 2 · 12 = 328
# parameters, whatever the heads.


# %% nbgrader={"grade_id": "encoder_block", "solution": true}
class EncoderBlock(nn.Module):
    """Self-attention and MLP, each with a residual link and a norm."""

    def __init__(self, d_model, heads, d_hidden, norm_first):
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.linear1 = nn.Linear(d_model, d_hidden)
        self.linear2 = nn.Linear(d_hidden, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(self, x):
        """x: float tensor (batch, length, d_model). Returns the same shape."""
        ### BEGIN SOLUTION
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            return x + self.widen_and_narrow(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.widen_and_narrow(x))

    def attend(self, x):
        return self.self_attn(x, x, x, need_weights=False)[0]

    def widen_and_narrow(self, x):
        return self.linear2(F.gelu(self.linear1(x)))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-encoder_block", "grade": true, "points": 4}
check("encoder_block", EncoderBlock)

# %% [markdown]
# A case of a module has three parts: what it is built with, its weights, its inputs.

# %%
case = example("encoder_block")
print(case["build"])
print({name: tuple(tensor.shape) for name, tensor in case["weights"].items()})
print({name: tuple(tensor.shape) for name, tensor in case["inputs"].items()})

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Exercise 5, twice: once with the attention as sublayer, once with the MLP. The second half reads
# what the first half gave.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Two helper methods, `attend(x)` and one for the MLP, make `forward` four lines.
# `nn.MultiheadAttention` is called with queries, keys and values and returns a pair: output first.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `nn.MultiheadAttention` takes the *first* axis for the length unless told `batch_first=True`. In
# pre-LN all three of queries, keys and values are normalised. A fresh norm has gain 1 and bias 0,
# so exchanging the two norms shows only with loaded weights.
# </details>

# %% [markdown]
# ### Exercise 8: a stack
# *12 minutes, medium, 3 points*
#
# 1. `EncoderStack(d_model, heads, d_hidden, layers, norm_first, final_norm)` runs x through
#    `layers` layers, one after the other, each with **parameters of its own**.
# 2. The layers stand in `self.layers`, the first at index 0, so that PyTorch finds them. Each is
#    made as in the cell below (it must be `nn.TransformerEncoderLayer`, with these options).
# 3. With `final_norm` there is one more layer norm, `self.norm`, after the last layer. Without it
#    there is no `self.norm` (None is fine).
# 4. x and the result have shape (batch, length, d_model). Nothing is dropped, also in training
#    mode.
# 5. Write the loop yourself: do without running an `nn.TransformerEncoder`.
#
# Example: the parameters of the second layer are called `layers.1.self_attn.in_proj_weight` and so
# on.


# %%
def make_layer(d_model, heads, d_hidden, norm_first):
    """PyTorch's encoder layer as the exercises want it. Its input is (batch, length, d_model)."""
    return nn.TransformerEncoderLayer(
        d_model,
        heads,
        d_hidden,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=norm_first,
    )


# %% nbgrader={"grade_id": "encoder_stack", "solution": true}
class EncoderStack(nn.Module):
    """Encoder layers one after the other, with a final norm if asked for."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first, final_norm):
        super().__init__()
        ### BEGIN SOLUTION
        made = [make_layer(d_model, heads, d_hidden, norm_first) for _ in range(layers)]
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(d_model) if final_norm else None
        ### END SOLUTION

    def forward(self, x):
        """x: float tensor (batch, length, d_model). Returns the same shape."""
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x)
        return x if self.norm is None else self.norm(x)
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-encoder_stack", "grade": true, "points": 3}
check("encoder_stack", EncoderStack)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Make each layer by a call of its own, keep them in a list that PyTorch knows, and loop.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `nn.ModuleList` registers what it holds. In `forward`, each layer reads what the one before gave.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `[layer] * 3` is one layer, three times. A plain Python list hides its layers from `parameters()`:
# the optimiser would train nothing.
# </details>

# %% [markdown]
# ### Exercise 9: padding must not matter
# *15 minutes, hard, 3 points*
#
# Sentences of unequal length share a batch; the rest is padding, and its content is arbitrary.
#
# 1. `PaddedEncoder(d_model, heads, d_hidden, layers, norm_first)`: layers in `self.layers`, made
#    with `make_layer`, as in exercise 8; no final norm.
# 2. `lengths` (batch,) says how many tokens each sequence has, at least 1; they stand at its
#    beginning. No token may see padding, **in any layer**.
# 3. `states` (batch, length, d_model): what the last layer gives, and **0 at padded places**.
# 4. `sentence` (batch, d_model): the mean of the states of the *real* tokens of each sequence.
# 5. Return `(states, sentence)`. Changing the padding in x changes nothing in either.
#
# The layers take a mask: `layer(x, src_key_padding_mask=…)` of shape (batch, length). Look up what
# its True means: `help(nn.MultiheadAttention.forward)` shows PyTorch's own words, also offline
# (there it is called `key_padding_mask`). In this course True = may be seen.
#
# Example: for lengths `[1, 3]` and 3 places, real tokens stand at `[[T, F, F], [T, T, T]]`, and the
# first sentence is simply the state of its only token.


# %% nbgrader={"grade_id": "padded_encoder", "solution": true}
class PaddedEncoder(nn.Module):
    """Encoder layers for sequences of unequal length, and the mean of each sequence."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first):
        super().__init__()
        ### BEGIN SOLUTION
        made = [make_layer(d_model, heads, d_hidden, norm_first) for _ in range(layers)]
        self.layers = nn.ModuleList(made)
        ### END SOLUTION

    def forward(self, x, lengths):
        """x: float tensor (batch, length, d_model). lengths: int tensor (batch,).

        Returns (states, sentence) of shapes (batch, length, d_model) and (batch, d_model).
        """
        ### BEGIN SOLUTION
        real = torch.arange(x.shape[1]) < lengths[:, None]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~real)
        states = x * real[:, :, None]
        return states, states.sum(dim=1) / lengths[:, None]
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-padded_encoder", "grade": true, "points": 3}
check("padded_encoder", PaddedEncoder)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One bool tensor `real` serves three times: the mask of the layers, the zeros, the mean.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Compare the places 0, 1, 2, … (one row) with the lengths (one column). The mean is a sum over real
# tokens, divided by how many there are.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# In `src_key_padding_mask`, True means *ignore*: the opposite of this course. The mask hides keys
# only: padded places still get states, hence point 3. And setting x to 0 is no mask.
# </details>

# %% [markdown]
# ## 7 How large is BERT?
#
# J. Devlin et al. (2019), *BERT*, Section 3, describe the encoder by a few numbers and say "110M"
# and "340M" parameters. With what you have built you can count them to the unit. Predict first:
# which part of BERT base is the largest, the word table, the attention or the MLPs?

# %% [markdown]
# ### Exercise 10: count to the unit
# *12 minutes, medium, 3 points*
#
# A BERT encoder holds:
#
# 1. three embedding tables of width d_model: `vocabulary` words, `positions`, `segments`; then one
#    layer norm;
# 2. `layers` times the block of exercise 7: attention with four d_model × d_model maps (queries,
#    keys, values, output), MLP of hidden width `d_hidden`, two layer norms. All linear maps have
#    biases, all norms gain and bias;
# 3. with `pooler`: one more linear map with bias, d_model → d_model.
#
# Return the number of parameters as an int. Count, do not build: BERT large would take 1.3 GB.
# (What segments and a pooler are for, you need not know to count them: chapters 09 and 10 say it.)
#
# Example: vocabulary 10, positions 5, segments 2, d_model 4, layers 1, heads 2, d_hidden 3, no
# pooler: 68 + 8 + (80 + 31 + 16) = 203.


# %% nbgrader={"grade_id": "bert_parameters", "solution": true}
def bert_parameters(vocabulary, positions, segments, d_model, layers, heads, d_hidden, pooler):
    """Count the parameters of a BERT encoder.

    All arguments are ints, except pooler: bool. Returns an int.
    """
    ### BEGIN SOLUTION
    norm = 2 * d_model
    square = d_model * d_model + d_model
    attention = 4 * square
    mlp = d_model * d_hidden + d_hidden + d_hidden * d_model + d_model
    tables = (vocabulary + positions + segments) * d_model
    total = tables + norm + layers * (attention + mlp + 2 * norm)
    return total + square if pooler else total
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bert_parameters", "grade": true, "points": 3}
check("bert_parameters", bert_parameters)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Count one linear map, one norm, one block; the rest is adding up.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `nn.Linear(a, b)` has a · b weights and b biases. Check your count of a block against the example
# of exercise 7.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The heads only divide the width among themselves. And there is a norm after the embeddings.
# </details>

# %% [markdown]
# Where do they sit? PyTorch can build a layer on the device "meta", which has shapes and no memory.


# %% tags=["experiment"]
def parts_of_bert(d_model, layers, heads, d_hidden):
    """Parameters of BERT by part, counted on modules that take no memory."""
    with torch.device("meta"):
        tables = [nn.Embedding(rows, d_model) for rows in (30522, 512, 2)]
        layer = nn.TransformerEncoderLayer(d_model, heads, d_hidden)

    def count(*modules):
        return sum(p.numel() for module in modules for p in module.parameters())

    return {
        "word table": count(tables[0]),
        "other tables": count(*tables[1:]),
        "attention": layers * count(layer.self_attn),
        "MLPs": layers * count(layer.linear1, layer.linear2),
        "norms": layers * count(layer.norm1, layer.norm2) + 2 * d_model,
        "pooler": d_model * d_model + d_model,
    }


models = {"BERT base": (768, 12, 12, 3072), "BERT large": (1024, 24, 16, 4096)}
for name, shape in models.items():
    counted = parts_of_bert(*shape)
    total = sum(counted.values())
    print(f"{name}: {total:,} parameters")
    for part, number in counted.items():
        print(f"    {part:<13} {number:>12,}  {number / total:6.1%}")

# %% [markdown]
# More than half of BERT base is MLP. "110M" is rounded up a little, and "340M" a little more: with
# a pooler the second comes to 335 million.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | norm is off by a factor near 1 | `var` or `std` with d − 1 |
# | norm is off for tiny inputs only | epsilon outside the root, or left out |
# | right when fresh, wrong with loaded weights | gain or bias unused; norms exchanged or shared |
# | pre-LN works, but not as PyTorch's | the link adds the normalised input |
# | tokens of different sentences mix | `batch_first` left at False |
# | loss does not fall at all | layers in a Python list: no parameters registered |
# | far too few parameters | `[layer] * N` |
# | results differ between two calls | dropout active in evaluation |
# | real tokens change with the padding | mask inverted, or in the first layer only |
# | small differences from a pre-trained model | ReLU for GELU, or the other form of GELU |

# %% [markdown]
# ## Recap
#
# - Attention mixes: linear for fixed weights, and on its own it makes tokens alike.
# - Residual links remember; forwards they keep tokens apart, backwards they carry the gradient.
# - The MLP is the same for every position: up, bend, down. The factor 4 is a habit.
# - Layer norm is per token: biased variance, epsilon inside the root. Pre-LN leaves the stream
#   alone, post-LN rescales it after every sublayer.
# - A block is attention + MLP, each with link and norm; a stack is blocks with parameters of their
#   own.
# - PyTorch's padding mask says what to *ignore*.
#
# Next: the same formulas where memory and time are counted; or straight on to encoder and decoder.
#
# **Challenge, no points.** Can a deep post-LN stack be helped without moving the norm? H. Wang et
# al. (2022), *DeepNet*, scale the residual link by a constant above 1. Copy the cell of "Which
# order?", replace `x = layer(x)` by your own block, and see what a factor of 2 does to the slopes.
