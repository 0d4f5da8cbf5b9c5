# %% [markdown]
# # 04 Many heads
#
# One attention layer gives every token *one* set of weights. But a word wants to know several
# things at once: its subject, its object, what stood before it. So we let several small attentions,
# the *heads*, look at the same time, each in its own way. You write them in NumPy, then learn the
# PyTorch that you need, and write them again as a module that agrees with PyTorch's own.
#
# **You will be able to**
#
# - get queries, keys and values of all heads out of **one** matrix, and say which column is whose;
# - use tensors, automatic differentiation and `nn.Module`;
# - load PyTorch's weights, or weights in another layout, and get the same numbers to 12 digits;
# - show that one fused layer is the same thing as h small ones, and say what h costs.
#
# | section | minutes | points |
# |---|---|---|
# | 1 Why several heads | 5 | |
# | 2 One matrix for all, in NumPy | 35 | 6 |
# | 3 PyTorch in ten cells | 25 | |
# | 4 Heads on tensors | 17 | 4 |
# | 5 The module | 40 | 9 |
# | 6 Weights from elsewhere | 22 | 5 |
# | 7 One mask for all heads | 18 | 4 |
# | 8 One layer or h small ones | 30 | 5 |
# | 9 Heads as filters, and how many | 15 | |
# | Recap | 3 | |
# | **in all** | **210** | **33** |
# | Challenge: which heads matter? | 25 more | 3 more |
#
# A good place for a long break is after section 4.

# %% [markdown]
# **To read**, before or after: A. Vaswani et al. (2017), *Attention Is All You Need*, Section
# 3.2.2; P. Michel, O. Levy and G. Neubig (2019), *Are Sixteen Heads Really Better than One?*; N.
# Elhage et al. (2021), *A Mathematical Framework for Transformer Circuits*, on heads that add up;
# J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), *On the Relationship between Self-Attention and
# Convolutional Layers*; PyTorch's tutorial *Learn the Basics*, pages "Tensors" and "Automatic
# Differentiation".

# %% [markdown]
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `d_model` | number | width of a token's vector |
# | `heads` | number, h | how many heads |
# | `d_head` | number | width of one head; here d_model / heads |
# | `x` | (batch, length, d_model) | the tokens' vectors |
# | `w_qkv`, `b_qkv` | (d_model, 3 · d_model), (3 · d_model,) | the fused projection |
# | `w_out`, `b_out` | (d_model, d_model), (d_model,) | output projection |
# | `queries`, `keys`, `values` | (batch, heads, length, d_head) | after the split into heads |
# | `weights` | (batch, heads, queries, keys) | rows sum to 1, in every head |
# | `mask` | broadcasts to the weights | bool, **True = may be seen** |
#
# Matrices named `w_…` stand to the right: `x @ w + b`. Checks run in float64 on the CPU.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_course import check, example

torch.set_num_threads(1)  # the tensors here are small: a second thread would only wait

# %% [markdown]
# ## 1 Why several heads
#
# Let the values be colours. A query needs to know two things: what token 0 says (red) and what
# token 3 says (blue). With one set of weights it can only *mix*.
#
# Predict: which colour does the query get from one head that looks at both? And with two heads?

# %% tags=["experiment"]
colours = np.array([[0.9, 0.1, 0.1], [0.9, 0.8, 0.2], [0.2, 0.7, 0.3], [0.1, 0.2, 0.9]])
looks = {
    "one head": [[0.5, 0.0, 0.0, 0.5]],
    "two heads": [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
}
fig, axes = plt.subplots(1, 3, figsize=(9, 1.9), width_ratios=[4, 1, 2], layout="constrained")
axes[0].imshow(colours[None])
axes[0].set_title("values of tokens 0 to 3", fontsize=10)
for ax, (name, weights) in zip(axes[1:], looks.items(), strict=True):
    ax.imshow((np.array(weights) @ colours)[None])
    ax.set_title(f"{name}: output", fontsize=10)
    ax.set_xlabel(
        " | ".join(f"weights {' '.join(f'{w:g}' for w in row)}" for row in weights), fontsize=7
    )
for ax in axes:
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()

# %% [markdown]
# One head gives purple: half red, half blue. Purple could as well come from two purple tokens, so
# what was mixed cannot be told apart again. Two heads give red *and* blue, side by side. Each head
# pays with width: at the same total width, two heads have half as many numbers each.
#
# (A wide single head could keep red and blue in different features. Then the *values* have to know
# beforehand which token will be read for which purpose. Heads let the weights decide.)

# %% [markdown]
# ## 2 One matrix for all, in NumPy
#
# Each head has its own queries, keys and values. Three matrices for each of h heads would be 3·h
# small products. Nobody writes that. There is **one** matrix of shape (d_model, 3 · d_model), and
# one product. Its *columns* are in three chunks: queries, keys, values. In each chunk the columns
# of head 0 come first, then those of head 1, and so on.
#
# Look at it. Predict first: with d_model = 12 and 3 heads, what is column 17? Then move `heads` to
# 5 and read why this is refused.

# %% tags=["explorer"]
from attention_course.explorers import fused_matrix

fused_matrix(d_model=12, heads=3)

# %% [markdown]
# Column 17 is 17 − 12 = 5 columns into the keys. Heads are 4 wide, so it is head 1, feature 1. And
# **h must divide d_model**: with `//` and without a check, columns would be lost silently.
#
# Every head reads *all* rows, that is, all features of the token. Only what it writes is narrow.

# %% [markdown]
# ### Exercise 1: project and chunk
# *8 minutes, easy, 2 points*
#
# 1. `x` has shape (..., length, d_model), with any leading axes, also none.
# 2. Return `(queries, keys, values)`, each of the shape of `x`, in this order.
# 3. Columns 0 to d_model − 1 of `w_qkv` make the queries, the next d_model the keys, the last
#    d_model the values; `b_qkv` is chunked in the same way.
# 4. No scaling, no heads yet. NumPy arrays in, NumPy arrays out.
#
# Example: `x = [[1., 2.]]`, `w_qkv` is two rows of `[1, 0, 2, 0, 0, 1]` and `[0, 1, 0, 2, 1, 0]`,
# `b_qkv` is zeros: queries `[[1., 2.]]`, keys `[[2., 4.]]`, values `[[2., 1.]]`.


# %% nbgrader={"grade_id": "project_qkv", "solution": true}
def project_qkv(x, w_qkv, b_qkv):
    """Make queries, keys and values with one product.

    x: float array (..., length, d_model). w_qkv: (d_model, 3 * d_model). b_qkv: (3 * d_model,).
    Returns (queries, keys, values), three float arrays (..., length, d_model).
    """
    ### BEGIN SOLUTION
    queries, keys, values = np.split(x @ w_qkv + b_qkv, 3, axis=-1)
    return queries, keys, values
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-project_qkv", "grade": true, "points": 2}
check("project_qkv", project_qkv)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One product, one addition, and then cut the result. Nothing needs to be done to the matrix.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `np.split(array, 3, axis=…)` cuts an axis into three equal parts. Which axis, counted from the
# end?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `w_qkv.reshape(3, d_model, d_model)` has a tempting shape, but it mixes rows: reshape keeps the
# order in memory, and there the three chunks of a *row* are neighbours.
# </details>

# %% [markdown]
# ### The whole layer, as a picture of shapes
#
# ```
# x                     (batch, length, d_model)
#   @ w_qkv + b_qkv     (batch, length, 3 · d_model)
#   chunk by three      (batch, length, d_model)            queries, keys, values
#   into heads          (batch, heads, length, d_head)      each of the three
#   attention           (batch, heads, length, d_head)      batch and heads are leading axes
#   heads side by side  (batch, length, d_model)
#   @ w_out + b_out     (batch, length, d_model)
# ```
#
# Attention itself does not change: it treats heads as one more leading axis. Predict: by the root
# of which width are the scores divided, and why?

# %% [markdown]
# ### Exercise 2: multi-head attention in NumPy
# *22 minutes, hard, 4 points*
#
# 1. `x` has shape (batch, length, d_model); `heads` divides d_model; d_head = d_model / heads.
# 2. Queries, keys and values as in exercise 1. Head h owns features h · d_head up to
#    (h + 1) · d_head of each of the three.
# 3. In each head: scores over $\sqrt{d_{head}}$ (a score of one head adds up d_head products),
#    softmax over the keys, average of the values. Large scores must not overflow. No mask.
# 4. Heads side by side again, head 0 first; then `@ w_out + b_out`.
# 5. Return `(output, weights)` of shapes (batch, length, d_model) and (batch, heads, length,
#    length).
#
# Example: d_model = 2, `heads` = 2, `x = [[[1., 0.], [0., 1.]]]`, `w_qkv` three identity matrices
# side by side, `w_out` the identity, biases zero. Head 0 sees the numbers 1 and 0: its weights are
# `[[0.731, 0.269], [0.5, 0.5]]`. The output is `[[[0.731, 0.5], [0.5, 0.731]]]`.


# %% nbgrader={"grade_id": "multi_head", "solution": true}
def multi_head(x, w_qkv, b_qkv, w_out, b_out, heads):
    """Self-attention with several heads.

    x: float array (batch, length, d_model). w_qkv: (d_model, 3 * d_model). b_qkv: (3 * d_model,).
    w_out: (d_model, d_model). b_out: (d_model,). heads: int that divides d_model.
    Returns (output, weights): (batch, length, d_model) and (batch, heads, length, length).
    """
    ### BEGIN SOLUTION
    batch, length, d_model = x.shape
    d_head = d_model // heads

    def split(part):
        return part.reshape(batch, length, heads, d_head).swapaxes(1, 2)

    queries, keys, values = map(split, np.split(x @ w_qkv + b_qkv, 3, axis=-1))
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(d_head)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    merged = (weights @ values).swapaxes(1, 2).reshape(batch, length, d_model)
    return merged @ w_out + b_out, weights
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-multi_head", "grade": true, "points": 4}
check("multi_head", multi_head)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Follow the picture of shapes above, one line of code for each line of it. Print shapes as you go,
# for example with `example("multi_head", 1)`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Into heads: cut the last axis into (heads, d_head), then exchange two axes. Out of heads: the same
# two steps backwards. Do not write a loop over heads: `@` treats leading axes one by one.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# One reshape to (batch, heads, length, d_head) has the right shape and the wrong numbers. So has
# one reshape at the end. And two such mistakes do not cancel.
# </details>

# %% [markdown]
# Any public case can be taken in hand: `example` gives its inputs, by name.

# %%
inputs = example("multi_head", 1)
print({name: np.shape(value) for name, value in inputs.items()})

# %% [markdown]
# ## 3 PyTorch in ten cells
#
# From here on we use PyTorch. It is NumPy with three additions: it can *differentiate* what you
# compute, it can run on other processors, and it has building blocks with weights. Ten cells show
# what you need. Make a guess before you run each.
#
# **1 Tensors and arrays.** Predict: after `array[0] = 99`, what do the two tensors say?

# %% tags=["experiment"]
array = np.array([1.0, 2.0, 3.0])
shared, copied = torch.from_numpy(array), torch.tensor(array)
array[0] = 99
print("from_numpy:", shared, " tensor:", copied)

# %% [markdown]
# `from_numpy` shares the memory, `torch.tensor` copies. Both are right at times; know which you
# use.
#
# **2 Kinds of numbers.** Predict the two dtypes, and what their product does.

# %% tags=["experiment"]
single, double = torch.tensor([[1.0, 2.0]]), torch.from_numpy(np.array([[1.0], [2.0]]))
print(single.dtype, double.dtype)
try:
    print(single @ double)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# PyTorch's habit is float32, NumPy's is float64, and `@` refuses to mix them. `.double()` and
# `.float()` convert. float32 has 7 digits, so compare with care.
#
# **3 Axes.** `dim` is what NumPy calls `axis`. Predict the three shapes.

# %% tags=["experiment"]
x = torch.arange(24.0).reshape(2, 3, 4)
print(x.softmax(dim=-1).shape, x.mT.shape, [part.shape[-1] for part in x.chunk(2, dim=-1)])

# %% [markdown]
# `.mT` exchanges the last **two** axes, whatever stands in front. `chunk` cuts an axis into parts;
# `unflatten` and `flatten` cut one axis into several and back: `x.unflatten(-1, (2, 2))` has the
# shape (2, 3, 2, 2).
#
# **4 Views.** A view is a new way to read the same memory. Predict: which of the two lines fails?

# %% tags=["experiment"]
turned = x.transpose(1, 2)
print("reshape:", turned.reshape(2, 12).shape)
try:
    print("view:", turned.view(2, 12).shape)
except RuntimeError as error:
    print("view refuses:", str(error).split(" (")[0])

# %% [markdown]
# After the transpose the numbers no longer lie in the order that the new shape needs. `view` never
# copies, so it refuses; `reshape` (and `flatten`) copies if it must. Who removes the transpose to
# silence `view` gets scrambled tokens.
#
# **5 Derivatives.** PyTorch writes down what happens to a tensor with `requires_grad`, and
# `backward()` walks back through it. Predict `x.grad` for the sum of squares.

# %% tags=["experiment"]
x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
(x**2).sum().backward()
print(x.grad)

# %% [markdown]
# The derivative of x² is 2x. This is *autograd*. The gradient of attention, by hand the challenge
# of chapter 02, is free from now on.
#
# **6 Once more.** Predict `x.grad` after a second, identical backward pass.

# %% tags=["experiment"]
(x**2).sum().backward()
print(x.grad)

# %% [markdown]
# Twice as much: gradients are **added** to what is there. A training loop must clear them.
#
# **7 Out of sight.** Predict: what is the gradient if the square is taken of `x.detach()`?

# %% tags=["experiment"]
hidden = (x.detach() ** 2).sum()
print("requires_grad:", hidden.requires_grad)
try:
    hidden.backward()
except RuntimeError as error:
    print("RuntimeError:", str(error)[:67])

# %% [markdown]
# There is none: `detach()` gives the same numbers without a memory of where they come from. A
# detour through NumPy (`.detach().numpy()`) does the same, silently, if other parts still have
# gradients. Inside `with torch.no_grad():` nothing is written down at all; that is for measuring.
#
# **8 A layer with weights.** `nn.Linear(2, 5)` maps 2 numbers to 5. Predict the shape of its
# weight.

# %% tags=["experiment"]
linear = nn.Linear(2, 5)
with torch.no_grad():
    x = torch.tensor([[1.0, 2.0]])
    same = torch.equal(linear(x), x @ linear.weight.mT + linear.bias)
print(tuple(linear.weight.shape), "x @ weight.mT + bias is the same:", same)

# %% [markdown]
# (5, 2): **outputs first**. It computes `x @ weight.mT + bias`, so its weight is the transpose of
# our `w`. If the matrix is square, no shape complains when you forget this.
#
# **9 Your own module.** Attributes that are modules or `nn.Parameter` are found by `parameters()`.
# Predict how many numbers each of the two would learn.


# %% tags=["experiment"]
class Named(nn.Module):
    """Two layers as attributes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, x):
        """x: (..., 2). Returns (..., 1)."""
        return self.second(self.first(x).relu())


class Listed(nn.Module):
    """Two layers in a plain list."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 3), nn.Linear(3, 1)]


for kind in (Named, Listed):
    print(kind.__name__, sum(parameter.numel() for parameter in kind().parameters()))
print([(name, tuple(value.shape)) for name, value in Named().state_dict().items()])

# %% [markdown]
# 2·3 + 3 + 3·1 + 1 = 13, and 0: a plain list hides its layers (use `nn.ModuleList`). Call a module
# like a function, `module(x)`; that runs `forward`. `state_dict()` names all its numbers.
#
# **10 Learning.** Four lines, always the same. Predict: does the loss fall less far, as far or
# farther if `zero_grad` is left out?


# %% tags=["experiment"]
def first_and_last_loss(clear, seed, steps=200):
    """Fit y = x₀ · x₁ on 64 points by gradient descent."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64, 2, generator=generator)
    y = x.prod(dim=1, keepdim=True)
    module = Named()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    optimiser = torch.optim.SGD(module.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        loss = ((module(x) - y) ** 2).mean()
        if clear:
            optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


cleared, piled = (
    np.array([first_and_last_loss(clear, seed) for seed in range(5)]) for clear in (True, False)
)
print("first loss:", *(f"{loss:.2f}" for loss in cleared[:, 0]))
print("last, with zero_grad:", *(f"{loss:.2f}" for loss in cleared[:, 1]))
print("last, without it:", *(f"{loss:.2f}" for loss in piled[:, 1]))
print(f"Lower with zero_grad in {(cleared[:, 1] < piled[:, 1]).sum()} of 5 runs.")

# %% [markdown]
# Without `zero_grad` every step follows the sum of *all* gradients so far, old ones included, and
# overshoots. No error tells you so. That is all the PyTorch you need today.

# %% [markdown]
# ## 4 Heads on tensors
#
# Chapter 01 cut arrays into heads. On tensors there are two new things to get right: gradients must
# pass, and there may be any number of leading axes.

# %% [markdown]
# ### Exercise 3: into heads
# *8 minutes, medium, 3 points*
#
# 1. `x` is a tensor of shape (..., length, d_model), with any leading axes, also none.
# 2. The result has shape (..., heads, length, d_head) with d_head = d_model / heads.
# 3. Head h gets features h · d_head up to (h + 1) · d_head of every token.
# 4. If `heads` does not divide d_model, raise `ValueError`.
# 5. Gradients pass: stay in PyTorch, no NumPy, no `detach`.
#
# Example: two tokens `[[1., 2., 3., 4.], [5., 6., 7., 8.]]` with 2 heads give
# `[[[1., 2.], [5., 6.]], [[3., 4.], [7., 8.]]]`.


# %% nbgrader={"grade_id": "to_heads", "solution": true}
def to_heads(x, heads):
    """Cut every token's vector into heads.

    x: float tensor (..., length, d_model). heads: int, at least 1.
    Returns a tensor (..., heads, length, d_model // heads).
    Raises ValueError if heads does not divide d_model.
    """
    ### BEGIN SOLUTION
    if x.shape[-1] % heads:
        raise ValueError(f"heads = {heads} does not divide d_model = {x.shape[-1]}")
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-to_heads", "grade": true, "points": 3}
check("to_heads", to_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Cut the last axis into two neighbours; then exchange two axes, counted from the end.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# (..., length, d_model) → (..., length, heads, d_head) → (..., heads, length, d_head).
# `unflatten` for the first arrow. Test the remainder before.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `transpose(1, 2)` is right for exactly one leading axis. And PyTorch's own refusal of a shape is a
# RuntimeError, not a ValueError.
# </details>

# %% [markdown]
# ### Exercise 4: and back
# *5 minutes, medium, 1 point*
#
# 1. `x` is a tensor of shape (..., heads, length, d_head).
# 2. The result has shape (..., length, heads · d_head): head 0's features first, then head 1's, …
# 3. It undoes `to_heads` exactly, and gradients pass.
#
# Example: `[[[1., 2.], [5., 6.]], [[3., 4.], [7., 8.]]]` gives
# `[[1., 2., 3., 4.], [5., 6., 7., 8.]]`.


# %% nbgrader={"grade_id": "from_heads", "solution": true}
def from_heads(x):
    """Put the heads of every token side by side.

    x: float tensor (..., heads, length, d_head). Returns a tensor (..., length, heads * d_head).
    """
    ### BEGIN SOLUTION
    return x.transpose(-3, -2).flatten(-2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-from_heads", "grade": true, "points": 1}
check("from_heads", from_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The same two steps backwards: last step first.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Exchange two axes, then make one axis of the last two.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `view` refuses here (cell 4 of section 3 says why). Its relatives do not.
# </details>

# %% [markdown]
# ## 5 The module
#
# ### Exercise 5: MultiHeadAttention
# *22 minutes, hard, 5 points*
#
# 1. `__init__(d_model, heads)` raises `ValueError` if heads does not divide d_model.
# 2. It has exactly two layers with weights: `self.qkv`, an `nn.Linear` from d_model to 3 · d_model,
#    and `self.out`, an `nn.Linear` from d_model to d_model, both with biases. So its parameters are
#    `qkv.weight` (3 · d_model, d_model), `qkv.bias` (3 · d_model,), `out.weight` (d_model, d_model)
#    and `out.bias` (d_model,).
# 3. The outputs of `qkv` are in three chunks: queries, keys, values; in each of them head 0 comes
#    first. Scores over $\sqrt{d_{head}}$.
# 4. `forward(x, mask=None)`: x of shape (batch, length, d_model); `mask` is None or bool,
#    broadcasts to (batch, heads, length, length), **True = may be seen**. Every query sees at least
#    one key.
# 5. Return `(output, weights)` of shapes (batch, length, d_model) and (batch, heads, length,
#    length).
# 6. Gradients reach `x` and all parameters. Write it yourself: no `nn.MultiheadAttention`, no
#    `F.multi_head_attention_forward`. No dropout.
#
# The check gives the same weights to PyTorch's own function and compares outputs, weights and
# gradients.
#
# Example: `MultiHeadAttention(4, 2)` has 4 · 12 + 12 + 4 · 4 + 4 = 80 parameters;
# `MultiHeadAttention(5, 2)` raises ValueError.


# %% nbgrader={"grade_id": "MultiHeadAttention", "solution": true}
class MultiHeadAttention(nn.Module):
    """Multi-head self-attention with a mask (Vaswani et al. 2017, Section 3.2.2).

    d_model, heads: ints; raises ValueError if heads does not divide d_model.
    """

    def __init__(self, d_model, heads):
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % heads:
            raise ValueError(f"heads = {heads} does not divide d_model = {d_model}")
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, x, mask=None):
        """Attend.

        x: (batch, length, d_model). mask: None or bool, broadcasts to the weights.
        Returns (output, weights): (batch, length, d_model), (batch, heads, length, length).
        """
        ### BEGIN SOLUTION
        parts = self.qkv(x).chunk(3, dim=-1)
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts
        )
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=-1)
        return self.out((weights @ values).transpose(1, 2).flatten(2)), weights
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-MultiHeadAttention", "grade": true, "points": 5}
check("MultiHeadAttention", MultiHeadAttention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# It is exercise 2 once more. The layers know their matrices: `self.qkv(x)` is the fused product
# with its bias. You may call `to_heads` and `from_heads`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# In `__init__`: the check, then keep `heads`, then the two layers. In `forward`: project, chunk,
# into heads, scores, mask, softmax, average, out of heads, project. `masked_fill` sets what a bool
# tensor marks.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `masked_fill` fills where its argument is **True**, and our True means *may be seen*. The mask
# acts before the softmax. And the width under the root is that of one head.
# </details>

# %% [markdown]
# **Look at the heads.** Below, each small picture is one head: lines from each word (left) to the
# words that it looks at (right). Click one to enlarge it. The weights are random, not trained;
# while your module is not ready, PyTorch's own is shown.
#
# Predict: do heads of an *untrained* layer look alike?

# %% tags=["explorer"]
from attention_course.bertviz_views import model_view


def attention_of(make_module, x, seed):
    """Attention weights (heads, length, length) of a module with random weights."""
    generator = torch.Generator().manual_seed(seed)
    module = make_module()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator))
        return module(x)[1][0]


class PyTorchsOwn(nn.Module):
    """nn.MultiheadAttention, with weights for each head."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.layer = nn.MultiheadAttention(d_model, heads, batch_first=True)

    def forward(self, x):
        """x: (batch, length, d_model). Returns (output, weights)."""
        return self.layer(x, x, x, average_attn_weights=False)


words = ["the", "cat", "that", "chased", "the", "dogs", "was", "tired"]
generator = torch.Generator().manual_seed(0)
vectors = {word: torch.randn(16, generator=generator) for word in words}
places = torch.randn(len(words), 16, generator=generator)
sentence = (torch.stack([vectors[word] for word in words]) + 0.5 * places)[None]
try:
    layers = [attention_of(lambda: MultiHeadAttention(16, 4), sentence, seed) for seed in (1, 2)]
    view = model_view(layers, words)
    print("This is your module.")
except Exception as error:
    layers = [attention_of(lambda: PyTorchsOwn(16, 4), sentence, seed) for seed in (1, 2)]
    view = model_view(layers, words)
    print(f"This is PyTorch's module; yours is not ready yet ({type(error).__name__}).")
view

# %% [markdown]
# They differ already: each head has its own random queries and keys. What training makes of them is
# another matter (and the pictures of heads in trained models are easy to over-read: a head may look
# at a word without its output mattering for anything).

# %% [markdown]
# ### Exercise 6: how many parameters?
# *8 minutes, easy, 2 points*
#
# Let each head have any width d_head, not only d_model / heads (some large models do this).
#
# 1. Input projection: from d_model to queries, keys and values of width heads · d_head each.
# 2. Output projection: from heads · d_head to d_model.
# 3. If `bias` is True, both projections have biases, one for each of their outputs.
# 4. Return the number of learned numbers, an int.
#
# Example: `attention_parameters(4, 2, 2, True)` gives 80, as in exercise 5.


# %% nbgrader={"grade_id": "attention_parameters", "solution": true}
def attention_parameters(d_model, heads, d_head, bias):
    """Count the parameters of a multi-head attention layer.

    d_model, heads, d_head: ints. bias: bool. Returns an int.
    """
    ### BEGIN SOLUTION
    inner = heads * d_head
    matrices = d_model * 3 * inner + inner * d_model
    return matrices + bias * (3 * inner + d_model)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-attention_parameters", "grade": true, "points": 2}
check("attention_parameters", attention_parameters)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two matrices, two bias vectors. Write down their shapes.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Call heads · d_head the inner width. A Linear from a to b has a · b + b numbers.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The inner width need not be d_model. The output has d_model numbers, so d_model biases.
# </details>

# %% [markdown]
# ### In words: what do heads cost, what do they buy?
# *6 minutes, 2 points, marked by hand*
#
# In three to six sentences: (a) At d_head = d_model / heads, how do the number of parameters and
# the multiplications of all scores (length² pairs) depend on the number of heads, and why? (b) Name
# one thing that two heads of width d/2 can do and one head of width d cannot, and one price that
# they pay for it.

# %% [markdown] nbgrader={"grade_id": "why-heads", "grade": true, "solution": true, "points": 2}
# (a) Not at all. The fused matrix has 3 · d_model columns whatever h is; h only says which columns
# belong together (4d² + 4d numbers in all). A score of one head adds up d_head products, and there
# are h of them for each pair of tokens: h · d_head = d_model products per pair. (The number of
# *weights*, h · length², does grow with h, and with it the softmax and the memory.)
#
# (b) Two heads have two softmaxes: a query can look at one token for one purpose and at another for
# another purpose, and both answers stay apart, side by side. One head must share out one set of
# weights and gets a mixture. The price: each head compares tokens by d/2 numbers only (its scores
# are products of rank d/2), and reads values of width d/2.
#
# *Mark scheme.* 1 point for (a): "no dependence" for parameters (½), and a reason: the same
# columns, only grouped, or h · d_head = d_model (½). Saying that the number of weights grows with h
# is right as well. 1 point for (b): several distributions per query, or "look at several places
# without mixing" (½); narrower queries/keys or values, lower rank (½). "More parameters" or "more
# power" alone: 0.

# %% [markdown]
# ## 6 Weights from elsewhere
#
# Weights travel as files of named tensors. Whoever loads them must know their *layout*. The shapes
# rarely tell: a transposed square matrix fits, other orders of columns fit, and the model then
# answers nonsense without an error.
#
# What does PyTorch's own layer store? Predict the shape of its fused matrix.

# %% tags=["experiment"]
for name, value in nn.MultiheadAttention(6, 2).state_dict().items():
    print(f"{name:<16}", tuple(value.shape))

# %% [markdown]
# (18, 6): outputs first, as in every Linear; the three chunks lie *below* each other. Within a
# chunk the heads come one after the other, as ours.
#
# ### Exercise 7: PyTorch's weights in our layout
# *8 minutes, medium, 3 points*
#
# 1. `state` is the state dict of an `nn.MultiheadAttention`, a dict of tensors as printed above.
# 2. Return `(w_qkv, b_qkv, w_out, b_out)` in the layout of exercise 2: matrices to the right of x,
#    shapes (d_model, 3 · d_model), (3 · d_model,), (d_model, d_model), (d_model,).
# 3. A layer made with `bias=False` has neither `in_proj_bias` nor `out_proj.bias` in its state.
#    Then give zeros of the right shapes.
# 4. Leave `state` unchanged. The check compares to 12 digits.
#
# Example: `out_proj.weight` `[[1., 2.], [3., 4.]]` becomes `w_out` `[[1., 3.], [2., 4.]]`.


# %% nbgrader={"grade_id": "from_pytorch", "solution": true}
def from_pytorch(state):
    """Bring the weights of an nn.MultiheadAttention into the layout of this chapter.

    state: dict with tensors "in_proj_weight" (3 * d_model, d_model), "out_proj.weight"
    (d_model, d_model) and, unless made without biases, "in_proj_bias" and "out_proj.bias".
    Returns tensors (w_qkv, b_qkv, w_out, b_out).
    """
    ### BEGIN SOLUTION
    w_in, w_out = state["in_proj_weight"], state["out_proj.weight"]
    b_in = state.get("in_proj_bias", w_in.new_zeros(len(w_in)))
    b_out = state.get("out_proj.bias", w_out.new_zeros(len(w_out)))
    return w_in.mT, b_in, w_out.mT, b_out
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-from_pytorch", "grade": true, "points": 3}
check("from_pytorch", from_pytorch)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Compare `x @ weight.mT + bias` with `x @ w + b`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Two transposes, two vectors as they are. `dict.get` has a second argument for what is missing;
# `tensor.new_zeros(n)` has the tensor's dtype.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The output matrix is square: without its transpose everything runs, and every number is wrong.
# `reshape(d_model, 3 * d_model)` is not a transpose.
# </details>

# %% [markdown]
# Now the proof: PyTorch's layer against *your* exercises 2 and 7, on the same weights. (This cell
# needs both answers.) The gap should be a few roundings, about 1e-16.

# %%
generator = torch.Generator().manual_seed(0)
theirs = nn.MultiheadAttention(12, 3, batch_first=True).double()
with torch.no_grad():
    for parameter in theirs.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 3)
    given = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    wanted = theirs(given, given, given)[0].numpy()
state = {name: value.clone() for name, value in theirs.state_dict().items()}
try:
    matrices = [part.numpy() for part in from_pytorch(state)]
    found, _ = multi_head(given.numpy(), *matrices, heads=3)
    print(f"largest gap between PyTorch's layer and yours: {np.abs(found - wanted).max():.1e}")
except NotImplementedError:
    print("Solve exercises 2 and 7 first, then run this cell again.")

# %% [markdown]
# ### Head by head, or chunk by chunk
#
# Our columns are *chunked*: all queries, all keys, all values. Some models (GPT-NeoX, for example)
# store them *interleaved*: queries, keys and values of head 0, then those of head 1, and so on.
# Both are fine. Both have the same shape.
#
# Predict: for 2 heads of width 2, where does column 2 of an interleaved matrix go?

# %% tags=["experiment"]
interleaved = [f"{part}{head}{feature}" for head in "01" for part in "qkv" for feature in "01"]
chunked = [f"{part}{head}{feature}" for part in "qkv" for head in "01" for feature in "01"]
fig, ax = plt.subplots(figsize=(9, 2.4), layout="constrained")
fills = {"q": "#dbe9f6", "k": "#fde3c8", "v": "#dcefdc"}
for height, names in ((1, interleaved), (0, chunked)):
    for column, name in enumerate(names):
        ax.text(
            column,
            height,
            name,
            ha="center",
            va="center",
            fontsize=9,
            bbox={"boxstyle": "square,pad=0.4", "fc": fills[name[0]], "ec": "0.5"},
        )
for column, name in enumerate(interleaved):
    ax.annotate(
        "",
        (chunked.index(name), 0.18),
        (column, 0.82),
        arrowprops={"arrowstyle": "->", "color": "0.5"},
    )
ax.set_xlim(-2.2, 11.6)
ax.set_ylim(-0.4, 1.4)
ax.text(-0.7, 1, "interleaved", ha="right", va="center")
ax.text(-0.7, 0, "chunked", ha="right", va="center")
ax.set_title("q10 = query, head 1, feature 0", fontsize=10)
ax.axis("off")
plt.show()

# %% [markdown]
# An arrow leads from each column's place in the interleaved order, above, to its place in the
# chunked one, below. Column 2 is feature 0 of head 0's *key*, which is column 4 in the chunked
# order.
#
# ### Exercise 8: from interleaved to chunked
# *9 minutes, medium, 2 points*
#
# 1. `w_qkv` (d_model, 3 · d_model) has interleaved columns: the d_head queries of head 0, its
#    d_head keys, its d_head values, then the same for head 1, and so on. `b_qkv` has the same
#    order.
# 2. Return `(w_qkv, b_qkv)` with chunked columns, as in the picture's lower row. Same shapes.
# 3. `heads` divides d_model. Leave the inputs unchanged.
#
# Example: `b_qkv` `[0., 1., 2., 3., 4., 5.]` with 2 heads of width 1 (so q, k, v of head 0 are 0,
# 1, 2) becomes `[0., 3., 1., 4., 2., 5.]`.


# %% nbgrader={"grade_id": "chunked_from_interleaved", "solution": true}
def chunked_from_interleaved(w_qkv, b_qkv, heads):
    """Bring interleaved columns into the chunked order.

    w_qkv: float tensor (d_model, 3 * d_model). b_qkv: (3 * d_model,). heads: int.
    Returns (w_qkv, b_qkv), new tensors of the same shapes.
    """
    ### BEGIN SOLUTION
    matrix = w_qkv.unflatten(1, (heads, 3, -1)).transpose(1, 2).flatten(1)
    return matrix, b_qkv.unflatten(0, (heads, 3, -1)).transpose(0, 1).flatten()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-chunked_from_interleaved", "grade": true, "points": 2}
check("chunked_from_interleaved", chunked_from_interleaved)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The columns hide three axes. In which order do they stand now, and in which should they?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Cut the axis of columns in three (`unflatten`), exchange two of them, make one axis again.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# With 3 heads, (3, heads) and (heads, 3) look alike: test with 2. And the biases move too.
# </details>

# %% [markdown]
# ## 7 One mask for all heads
#
# A batch holds sentences of unequal lengths, padded to the longest. Padding must be hidden, and in
# a decoder the future as well. Both conditions are the same for all heads, so the mask needs an
# axis for heads, but only of length 1: broadcasting does the rest.
#
# | | shape | True where |
# |---|---|---|
# | padding | (batch, 1, 1, keys) | the key is a real token |
# | causal | (queries, keys) | the key is not in the future |
# | both | (batch, 1, queries, keys) | both are True |
#
# Predict how the joint masks look for lengths 5 and 3.

# %% tags=["experiment"]
from attention_course.plots import heat_maps

drawn = {
    "sentence 0, length 5": ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"],
    "sentence 1, length 3": ["x....", "xx...", "xxx..", "xxx..", "xxx.."],
}
masks = {
    title: np.array([[letter == "x" for letter in row] for row in rows])
    for title, rows in drawn.items()
}
heat_maps(masks, range(5), range(5), size=2.4, bar="may be seen")
plt.show()

# %% [markdown]
# Rows 3 and 4 of the second sentence are padded *queries*. They still look at real keys; nobody
# reads their output. Only what is *looked at* must be hidden.
#
# A warning for later: `nn.MultiheadAttention` and `nn.TransformerEncoderLayer` read their masks the
# other way round (True = hidden), `F.scaled_dot_product_attention` reads them as we do.
#
# ### Exercise 9: attend with padding
# *14 minutes, hard, 4 points*
#
# 1. `queries` (batch, heads, q, d_head), `keys` (batch, heads, k, d_head), `values`
#    (batch, heads, k, d_v). `lengths` (batch,) ints: sentence b has `lengths[b]` real keys, in
#    front; the other keys are padding. A length may be 0.
# 2. If `causal` is True, query i also sees no key beyond j = i + k − q: the last query belongs to
#    the last key.
# 3. Scores over $\sqrt{d_{head}}$, softmax over visible keys.
# 4. A query that sees nothing gives zeros.
# 5. Return `(output, mask)`: (batch, heads, q, d_v), and the joint mask, a bool tensor of exactly
#    the shape (batch, 1, q, k), also without `causal`. True = may be seen.
# 6. Padding may hold any finite numbers, large ones too; they must not matter. You may use
#    `F.scaled_dot_product_attention` on the heads.
#
# Example: q = k = 2, lengths `[1]`, causal: the mask is `[[[[T, F], [T, F]]]]`, and both queries
# give the value of key 0.


# %% nbgrader={"grade_id": "attend_with_padding", "solution": true}
def attend_with_padding(queries, keys, values, lengths, causal):
    """Attend in all heads, without padding and, if asked for, without the future.

    queries: (batch, heads, q, d_head). keys: (batch, heads, k, d_head).
    values: (batch, heads, k, d_v). lengths: int tensor (batch,). causal: bool.
    Returns (output, mask): float tensor (batch, heads, q, d_v), bool tensor (batch, 1, q, k).
    """
    ### BEGIN SOLUTION
    q, k = queries.shape[-2], keys.shape[-2]
    places = torch.arange(k)
    mask = (places < lengths[:, None, None, None]).repeat(1, 1, q, 1)
    if causal:
        mask = mask & (places <= torch.arange(q)[:, None] + k - q)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask), mask
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-attend_with_padding", "grade": true, "points": 4}
check("attend_with_padding", attend_with_padding)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two comparisons of positions, each a line of chapter 01, joined by `&`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.arange(k)` against `lengths` with three more axes; `torch.arange(k)` against a column of
# queries. `expand` or `repeat` makes the stated shape.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# If you write the softmax yourself, a row of only −∞ gives NaN, and with −1e9 it reads the padding.
# `lengths[:, None]` would line up with queries, not with the batch.
# </details>

# %% [markdown]
# ## 8 One layer or h small ones
#
# Vaswani et al. write multi-head attention as h small attentions, each with three projections of
# its own, concatenated and projected. We compute one large product. Is that the same?
#
# Let us see. We draw small matrices for each head, run h separate attentions in a loop, and *add
# up* what each head contributes through its own rows of the output matrix. Then we put the small
# matrices side by side, and give the result to PyTorch's fused layer.
#
# Predict: how large is the difference? Does it grow with the number of heads?

# %% tags=["experiment"]
from attention_course.claims import report
from attention_course.plots import spread


def fused_gap(seed, heads, dtype, d_model=32, length=10):
    """Largest difference between h small attentions in a loop and PyTorch's fused layer."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    width, scale = d_model // heads, d_model**-0.5
    x = draw(1, length, d_model)
    projections = {part: [scale * draw(d_model, width) for _ in range(heads)] for part in "qkv"}
    biases = {part: [draw(width) for _ in range(heads)] for part in "qkv"}
    outputs, last = [scale * draw(width, d_model) for _ in range(heads)], draw(d_model)
    total = last
    for head in range(heads):
        q, k, v = (x @ projections[part][head] + biases[part][head] for part in "qkv")
        weights = (q @ k.mT / width**0.5).softmax(dim=-1)
        total = total + weights @ v @ outputs[head]
    fused = F.multi_head_attention_forward(
        *(3 * [x.transpose(0, 1)]),
        d_model,
        heads,
        torch.cat([w for part in "qkv" for w in projections[part]], dim=1).mT,
        torch.cat([b for part in "qkv" for b in biases[part]]),
        None,
        None,
        False,
        0.0,
        torch.cat(outputs).mT,
        last,
    )[0].transpose(0, 1)
    return (fused - total).abs().max().item()


counts = [1, 2, 4, 8, 16, 32]
precisions = {"float64": torch.float64, "float32": torch.float32}
gaps = {
    name: np.array([[fused_gap(seed, heads, dtype) for heads in counts] for seed in range(10)])
    for name, dtype in precisions.items()
}
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, runs in gaps.items():
    spread(ax, counts, runs, name)
ax.set(xscale="log", yscale="log", xlabel="number of heads", ylabel="largest difference")
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
for name, runs in gaps.items():
    print(
        f"{name}: at most {runs.max():.1e}, that is {runs.max() / np.finfo(name).eps:.0f} roundings"
    )
same = all(runs.max() < 100 * np.finfo(name).eps for name, runs in gaps.items())
effect = ", ".join(f"{name}: at most {runs.max():.0e} apart" for name, runs in gaps.items())
report("C5", same, f"{effect} (10 seeds, 1 to {counts[-1]} heads)")

# %% [markdown]
# The difference is rounding, since sums in another order round differently, and it hardly depends
# on the number of heads. So the two are the same function. There is also a second lesson in the
# loop: **heads add up**. The output projection is not a last mixing of everything with everything;
# it is the sum of what each head writes through its own *rows* of the output matrix (Elhage et al.
# 2021).
#
# ### Exercise 10: small matrices out of a large one
# *11 minutes, medium, 3 points*
#
# The way back. Tensors `w_qkv`, `b_qkv`, `w_out` in the layout of exercise 2.
#
# 1. `small_w` (3, heads, d_model, d_head): `small_w[0, h]` makes the queries of head h, `small_w[1,
#    h]` its keys, `small_w[2, h]` its values, by `x @ small_w[…]`.
# 2. `small_b` (3, heads, d_head): their biases.
# 3. `small_out` (heads, d_head, d_model): what head h writes is `head_output @ small_out[h]`;
#    summed over heads, plus b_out, this is the output of the layer.
# 4. Return `(small_w, small_b, small_out)`. `heads` divides d_model.
#
# Example: with d_model = 2 and 2 heads, `w_out` `[[1., 2.], [3., 4.]]` gives `small_out`
# `[[[1., 2.]], [[3., 4.]]]`.


# %% nbgrader={"grade_id": "slice_heads", "solution": true}
def slice_heads(w_qkv, b_qkv, w_out, heads):
    """Cut fused matrices into those of each head.

    w_qkv: float tensor (d_model, 3 * d_model). b_qkv: (3 * d_model,). w_out: (d_model, d_model).
    heads: int. Returns (small_w, small_b, small_out) of shapes (3, heads, d_model, d_head),
    (3, heads, d_head) and (heads, d_head, d_model).
    """
    ### BEGIN SOLUTION
    small_w = w_qkv.unflatten(1, (3, heads, -1)).permute(1, 2, 0, 3)
    small_b = b_qkv.unflatten(0, (3, heads, -1))
    small_out = w_out.unflatten(0, (heads, -1))
    return small_w, small_b, small_out
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-slice_heads", "grade": true, "points": 3}
check("slice_heads", slice_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Which axis of `w_qkv` holds heads? Which axis of `w_out` meets the merged heads?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The columns of `w_qkv` are three axes in one: (3, heads, d_head). Cut them, then move the rows
# between them. For `w_out` cutting alone is enough.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Heads own *columns* of `w_qkv` and *rows* of `w_out`. Columns of `w_out` have the same shape after
# a transpose, and are wrong.
# </details>

# %% [markdown]
# ### Exercise 11: heads with a switch
# *8 minutes, easy, 2 points*
#
# If heads add up, one can leave some out. Michel et al. (2019) put a *gate* behind each
# head: 1 as it is, 0 off.
#
# 1. `head_outputs` (batch, heads, length, d_head): the averages of the values, before the merge.
# 2. `gates` (heads,): factors of any size.
# 3. Multiply each head by its gate, put the heads side by side, then `@ w_out + b_out`. The bias is
#    not gated, and the other heads are not scaled up.
# 4. Gradients reach the gates.
#
# Example: with all gates 0 every row of the output is `b_out`.


# %% nbgrader={"grade_id": "gated_heads", "solution": true}
def gated_heads(head_outputs, gates, w_out, b_out):
    """Multiply heads by their gates, merge and project.

    head_outputs: float tensor (batch, heads, length, d_head). gates: (heads,).
    w_out: (d_model, d_model). b_out: (d_model,). Returns (batch, length, d_model).
    """
    ### BEGIN SOLUTION
    gated = head_outputs * gates[:, None, None]
    return gated.transpose(1, 2).flatten(2) @ w_out + b_out
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-gated_heads", "grade": true, "points": 2}
check("gated_heads", gated_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Broadcasting aligns shapes on the right. The gates must stand at the axis of the heads.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `gates[:, None, None]` has the shape (heads, 1, 1). Then merge as in exercise 4.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `head_outputs * gates` runs without an error whenever d_head happens to equal heads.
# </details>

# %% [markdown]
# ## 9 Heads as filters, and how many
#
# A convolutional layer has filters; each looks at the same places relative to its own. Heads are
# often called the filters of attention. How far does the analogy carry? Take three heads that look
# only at *relative position*: one strongly prefers the token before, one the token itself, one the
# next. Give head i, as its values, the i-th slice of a convolution's weights, and add the heads up.
#
# Predict: with a preference β added to the one preferred score (all others are 0), how fast does
# the difference to a convolution of width 3 shrink as β grows? Where is it exactly 0? (Cordonnier
# et al. 2020 prove the general case, for images.)


# %% tags=["experiment"]
def convolution_gap(seed, preferences, width=6, outputs=5, length=12):
    """Largest difference between three positional heads and a convolution, for each preference."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(length, width, generator=generator, dtype=torch.float64)
    kernel = torch.randn(outputs, width, 3, generator=generator, dtype=torch.float64)
    wanted = F.conv1d(x.mT[None], kernel)[0].mT  # inner positions only: no padding
    places = torch.arange(length)
    gaps = []
    for preference in preferences:
        total = 0.0
        for head, offset in enumerate((-1, 0, 1)):
            preferred = places == places[:, None] + offset
            scores = torch.where(preferred, preference, 0.0).double()
            total = total + scores.softmax(dim=-1) @ (x @ kernel[:, :, head].mT)
        gaps.append((total[1:-1] - wanted).abs().max().item())
    return gaps


preferences = [0, 2, 5, 10, 20, 30, 40, 50]
gaps = np.array([convolution_gap(seed, preferences) for seed in range(5)])
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
spread(ax, preferences, np.maximum(gaps, 1e-17), "three heads against a convolution")
ax.set(yscale="log", xlabel="preference β for one relative position", ylabel="largest difference")
ax.legend(fontsize=8)
plt.show()
fall = np.polyfit(preferences[2:6], np.log(gaps[:, 2:6]).mean(axis=0), 1)[0]
print(f"For β from 5 to 30 the difference shrinks like exp({fall:+.2f} β).")
print(f"At β = {preferences[-1]} it is at most {gaps[:, -1].max():.1e}.")
reached = gaps[:, -1].max() < 1e-13
print(
    "'Three positional heads can be a convolution of width 3': "
    f"{'supported' if reached else 'NOT supported'} by this run."
)

# %% [markdown]
# Every other key keeps a weight of about e⁻ᵝ, so the difference falls like that, until rounding is
# all that is left; it is exactly 0 for no finite β. So a convolution is a *special case*: heads
# whose weights ignore what the tokens say. The analogy ends where attention begins: a filter's
# places are fixed, a head chooses them anew for every token. And nothing here says that trained
# heads *become* filters.

# %% [markdown]
# ### Does the number of heads matter?
#
# A task that should need several heads: at every position, name the words one, two *and* three
# places back (8 words, one attention layer and a linear reader, d_model = 24, the same number of
# parameters for every h). For comparison: only the word one place back. Five seeds learn side by
# side.
#
# Predict both curves, from 1 head (of width 24) to 24 heads (of width 1).


# %% tags=["experiment"]
def recall(heads, offsets, seeds=5, d_model=24, vocabulary=8, length=8, steps=250, batch=16):
    """Train one attention layer for each seed; give the share of words recalled, (seeds,)."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape, scale=1.0):
        return (scale * torch.randn(seeds, *shape, generator=generator)).requires_grad_()

    root = d_model**-0.5
    embed, place = draw(vocabulary, d_model), draw(length, d_model)
    w_in, w_out = draw(d_model, 3 * d_model, scale=root), draw(d_model, d_model, scale=root)
    read = draw(d_model, len(offsets) * vocabulary, scale=root)
    optimiser = torch.optim.Adam([embed, place, w_in, w_out, read], lr=0.01)
    seed_axis, first = torch.arange(seeds)[:, None, None], max(offsets)

    def answer(sentences):
        words = torch.randint(vocabulary, (seeds, sentences, length), generator=generator)
        x = embed[seed_axis, words] + place[:, None]
        parts = (x @ w_in[:, None]).unflatten(-1, (3, heads, -1)).permute(3, 0, 1, 4, 2, 5)
        output = F.scaled_dot_product_attention(*parts).transpose(2, 3).flatten(3)
        guesses = (output @ w_out[:, None] @ read[:, None])[:, :, first:]
        wanted = [words[:, :, first - offset : length - offset] for offset in offsets]
        return guesses.unflatten(-1, (len(offsets), vocabulary)), torch.stack(wanted, dim=-1)

    for _ in range(steps):
        guesses, wanted = answer(batch)
        loss = seeds * F.cross_entropy(guesses.flatten(0, -2), wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        guesses, wanted = answer(200)
        return (guesses.argmax(dim=-1) == wanted).double().mean(dim=(1, 2, 3)).numpy()


counts = [1, 2, 3, 6, 24]
tasks = {"one place back": (1,), "one, two and three back": (1, 2, 3)}
shares = {
    name: np.array([recall(heads, offsets) for heads in counts]).T
    for name, offsets in tasks.items()
}
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, runs in shares.items():
    spread(ax, counts, runs, name)
ax.axhline(1 / 8, color="0.5", ls=":", label="chance")
ax.set(xscale="log", xlabel="heads, at d_model = 24", ylabel="share of words recalled")
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
for name, runs in shares.items():
    means = ", ".join(f"{h}: {m:.2f}" for h, m in zip(counts, runs.mean(axis=0), strict=True))
    print(f"{name:<24} mean recall by heads: {means}")
one, two, three, six, most = shares["one, two and three back"].T
needed = (three > one + 0.1).all() and (shares["one place back"][:, 0] > 0.9).all()
print(
    "'Several look-ups need several heads, one look-up does not': "
    f"{'supported' if needed else 'NOT supported'} by these {len(one)} seeds."
)
print(
    "'The more heads, the better': "
    f"{'supported' if (most >= six).all() else 'NOT supported'} by these {len(one)} seeds."
)

# %% [markdown]
# Read the verdicts of your run, then ask why. A single head has one set of weights for three words:
# it mixes them, and a linear reader can name little more than the heaviest. At the other end, a
# head of width 1 scores by a product of two plain numbers, which is a poor way to single out a
# position. *Where* the best number lies depends on the task: with another task, more layers or
# longer training, the curves may look different. This is one small task, not a law. In
# trained transformers many heads can be removed afterwards with little loss (Michel et al. 2019).

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | right shapes, wrong numbers, no error | heads made or merged by one reshape |
# | fine with one head, wrong with several | scores divided by the root of d_model |
# | `view size is not compatible …` | `view` after a transpose; use `reshape` or `flatten` |
# | loaded weights give nonsense | square matrix not transposed; other order of columns |
# | the optimiser finds no parameters | layers in a plain Python list |
# | the loss does not move | `detach()`, `.data` or NumPy on the way |
# | right for one leading axis only | axes counted from the front |
# | sentences see each other's padding | masks repeated in the wrong order; let them broadcast |
# | everything hidden that should be seen | a library in which True means hidden |
# | fewer numbers come out than went in | `//` where heads does not divide d_model |

# %% [markdown]
# ## Recap
#
# - One matrix, one product: chunk by three, then into heads. h must divide d_model.
# - Heads are a leading axis; attention itself does not change, but the root is that of d_head.
# - Tensors remember where they come from; gradients add up; a Linear stores outputs first.
# - One fused layer is h small ones, to rounding. Heads add up through their rows of the output
#   matrix.
# - The number of heads changes neither the parameters nor the products; it changes how many places
#   a query can look at without mixing them.
#
# Next: a layer of attention is only half of a transformer's block. The other half, and what holds
# the two together.

# %% [markdown]
# ## Challenge: which heads matter?
# *25 minutes, hard, 3 points*
#
# Michel et al. (2019) measure the importance of a head by how strongly the loss reacts to its gate,
# where all gates are 1: the mean over examples of $|\partial L / \partial g_h|$.
#
# 1. `head_outputs` (batch, heads, length, d_head), `w_out`, `b_out` as in exercise 11; `target`
#    (batch, length, d_model).
# 2. The loss of *one* example is the **sum** of its squared errors,
#    $L_b = \sum_{\text{positions, features}} (\text{output}_b - \text{target}_b)^2$.
# 3. For each head: the absolute value of the derivative of L_b by the head's gate, at gates of 1,
#    for each example by itself; then the mean over the examples.
# 4. Return a tensor (heads,).
#
# Example: one example, one token, two heads of width 1, `head_outputs` 3 and 5, `w_out` the
# identity, `b_out` zeros, `target` `[2., 5.]`. The errors are 1 and 0; the result is `[6., 0.]` (2
# · 1 · 3, and 2 · 0 · 5).


# %% nbgrader={"grade_id": "head_importance", "solution": true}
def head_importance(head_outputs, w_out, b_out, target):
    """Give the mean size of the loss's derivative by each head's gate.

    head_outputs: float tensor (batch, heads, length, d_head). w_out: (d_model, d_model).
    b_out: (d_model,). target: (batch, length, d_model). Returns a tensor (heads,).
    """
    ### BEGIN SOLUTION
    gates = torch.ones_like(head_outputs[:, :, :1, :1]).requires_grad_()
    output = (head_outputs * gates).transpose(1, 2).flatten(2) @ w_out + b_out
    loss = ((output - target) ** 2).sum()
    (gradient,) = torch.autograd.grad(loss, gates)
    return gradient[:, :, 0, 0].abs().mean(dim=0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-head_importance", "grade": true, "points": 3}
check("head_importance", head_importance)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Gates that are 1 and require a gradient; then autograd does the rest.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Either a loop over the examples, with gates and a backward pass for each. Or one gate for each
# example *and* head: then one backward pass of the summed loss keeps the examples apart.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The derivative of the batch's loss by shared gates has already summed over examples: positive and
# negative ones cancel, and an absolute value comes too late.
# </details>
