# %% [markdown]
# # 01 Shapes
#
# Attention is a handful of array operations. Nearly every mistake in writing it is a mistake about
# *shapes*: an axis lost, an axis on the wrong side, two axes exchanged. The nasty ones raise no
# error. This chapter trains the eye for them, in NumPy alone.
#
# **You will be able to**
#
# - say before you run a line what shape it gives, or that it fails, and why;
# - compute all pairs, all rows, all heads at once, without a loop;
# - build the two masks that every transformer needs;
# - cut vectors into heads and put them together again without mixing tokens.
#
# | section | minutes | points |
# |---|---|---|
# | How this course works | 5 | 1 |
# | 1 Broadcasting | 20 | 6 |
# | 2 Masks | 18 | 6 |
# | 3 Picking and products | 10 | 4 |
# | 4 Heads | 12 | 4 |
# | **in all** | **65** | **21** |
# | Challenge (optional, no points) | 5 | |

# %% [markdown]
# **To read**, before or after:
# C. R. Harris et al. (2020), *Array programming with NumPy*, Nature 585, Figure 1;
# the page *Broadcasting* of NumPy's user guide;
# A. Vaswani et al. (2017), *Attention Is All You Need*, Section 3.2, to see where all this leads;
# D. Chiang, A. Rush and B. Barak (2021), *Named Tensor Notation*, if you wish that axes had names.

# %% [markdown]
# **Symbols.** Long words for things; single letters for axes, and only in einsum.
#
# | name | axis letter | meaning | here |
# |---|---|---|---|
# | `batch` | b | sentences that are processed together | a few |
# | `length` | l | positions in a sentence, padding included | |
# | `lengths` | | real tokens of each sentence, shape (batch,) | |
# | `heads` | h | parts that each vector is cut into | |
# | `queries` | q | what looks; also how many there are | array or number |
# | `keys` | k | what is looked at; also how many | array or number |
# | `d_model` | | width of a token's vector | heads · d_head |
# | `d_head` | d | width of one head | |
# | `mask` | | True where something counts | bool |

# %% [markdown]
# ## How this course works
#
# **Run a cell**: click into it and press Shift+Enter. Start with the next one; it makes NumPy
# and the course's `check` available. If things get muddled: *Kernel → Restart*, then run from the
# top.

# %%
import numpy as np

from attention_course import CheckFailed, check, example

# %% [markdown]
# **Answer and check.** An exercise is a text, an answer cell and a check cell. In the answer cell,
# replace `raise NotImplementedError` with your code; then run the check. Leave the first line as it
# is: checks pass inputs by the names of the parameters. The numbered points of an exercise are its
# *contract*: they settle every convention, and messages refer to them. Cases come in groups, each
# worth its points; the later groups count only if the first is right.
#
# **All other cells** draw or measure something. Run them, all of them and in order, and look at
# what comes out; you need not read their code, which may use what only later chapters explain.
#
# ### Warm-up: a vector as a column
# *2 minutes, easy, 1 point*
#
# 1. `vector` has shape (n,); the result is an array of shape (n, 1).
# 2. The numbers stay as they are.
#
# Example: `as_column(np.array([7.0, 8.0]))` gives `[[7.], [8.]]`.


# %% nbgrader={"grade_id": "as_column", "solution": true}
def as_column(vector):
    """Turn a vector into a column.

    vector: array of shape (n,). Returns an array of shape (n, 1).
    """
    ### BEGIN SOLUTION
    return vector[:, None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-as_column", "grade": true, "points": 1}
check("as_column", as_column)

# %% [markdown]
# **Hints** are folded, in three steps: the idea, a sketch, a pitfall. Open as few as you need.
#
# <details><summary>Hint 1: idea</summary>
#
# An index may contain `None`. It adds an axis of length 1 at its place.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `vector[None, :]` is a row, of shape (1, n). You need the other order.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `vector.T` does nothing: a vector has one axis, and reversing one axis changes nothing.
# </details>

# %% [markdown]
# **A failed check** says what was seen, on which case, what was expected, and, if your mistake is a
# known one, its likely cause. Predict: what does the check say about `.T`?
# (`example("as_column", 1)` hands you the inputs of case 1, to try by hand.)


# %% tags=["experiment"]
def first_try(vector):
    return vector.T


try:
    check("as_column", first_try)
except CheckFailed:
    print("(The check has failed, as it should.)")

print(example("as_column", 1))

# %% [markdown]
# **Submit.** *Validate* (nbgrader's button) runs the whole notebook from the top and tells you
# whether a check fails. Then save, and hand in as your instructor says. Marks come from the same
# checks on *other* inputs, so an answer that only fits the visible numbers earns nothing. Plain
# loops are never marked down; speed is not graded.

# %% [markdown]
# ## 1 Broadcasting
#
# When two arrays of different shapes meet in `+`, `*`, `<` …, NumPy goes through their axes **from
# the right**. Two lengths fit if they are equal or if one of them is 1; the 1 is stretched. Where
# one shape has run out of axes, it counts as having a 1 there. Anything else is an error.
#
# Predict: which shape do (5, 1) and (7,) give together?

# %% tags=["explorer"]
from attention_course.explorers import broadcasting_viewer

broadcasting_viewer((5, 1), (7,))

# %% [markdown]
# The 7 stands under the 1, so the column is stretched to 7; the missing axis is stretched to 5.
#
# Predict: and (2, 3, 5) with (2, 5)? Batch 2 is in both, width 5 is in both …

# %% tags=["explorer"]
broadcasting_viewer((2, 3, 5), (2, 5))

# %% [markdown]
# A clash. Seen from the right, the second shape's 2 stands under the 3. NumPy knows places, not
# meanings: the two batch axes don't find each other. Change a number in the figure: which *one*
# extra axis in the second shape repairs it?

# %% [markdown]
# ### All pairs at once
#
# A column and a row meet: each stretches along the other's axis, and every pair gets a cell.
# Predict the entry in the second row, third column, of the product.

# %% tags=["experiment"]
import matplotlib.pyplot as plt


def draw_cells(ax, colours, labels, title, cmap="Blues", limits=(0, 1)):
    """Draw a matrix as coloured cells with a label in each."""
    colours, labels = np.atleast_2d(colours), np.atleast_2d(labels)
    ax.imshow(colours, cmap=cmap, vmin=limits[0], vmax=limits[1], aspect="equal")
    dark = (limits[0] + 2 * limits[1]) / 3
    for (row, column), colour in np.ndenumerate(colours):
        text_colour = "white" if cmap == "Blues" and colour > dark else "black"
        label = labels[row, column]
        ax.text(column, row, label, ha="center", va="center", color=text_colour, fontsize=9)
    rows, columns = colours.shape
    ax.set_xticks(np.arange(columns + 1) - 0.5, labels=[])
    ax.set_yticks(np.arange(rows + 1) - 0.5, labels=[])
    ax.grid(color="white", linewidth=1.5)
    ax.tick_params(length=0)
    ax.set_title(title, fontsize=9)


column, row = np.array([[2], [3], [5]]), np.array([[1, 2, 3, 4]])
stretched = {
    "column (3, 1)": column,
    "stretched to (3, 4)": np.broadcast_to(column, (3, 4)),
    "row (1, 4), stretched": np.broadcast_to(row, (3, 4)),
    "column * row": column * row,
}
fig, axes = plt.subplots(1, 4, figsize=(10, 2.4), width_ratios=[1, 4, 4, 4])
for ax, (title, values) in zip(axes, stretched.items(), strict=True):
    draw_cells(ax, values, values.astype(str), title, limits=(0, 24))
plt.show()

# %% [markdown]
# It is 3 · 3 = 9: row 1 of the column, column 2 of the row. Nothing was copied in memory; NumPy
# only reads the same number again.
#
# ### Exercise 1: all differences
# *3 minutes, easy, 1 point*
#
# 1. `queries` has shape (q,), `keys` has shape (k,). They may differ in length.
# 2. The result has shape (q, k): a row for each query, a column for each key.
# 3. Entry [i, j] is `queries[i] - keys[j]`, with its sign.
#
# Example: queries `[1., 5.]` and keys `[1., 2., 3.]` give `[[0., -1., -2.], [4., 3., 2.]]`.


# %% nbgrader={"grade_id": "outer_difference", "solution": true}
def outer_difference(queries, keys):
    """Subtract every key from every query.

    queries: float array of shape (q,). keys: float array of shape (k,).
    Returns a float array of shape (q, k).
    """
    ### BEGIN SOLUTION
    return queries[:, None] - keys[None, :]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-outer_difference", "grade": true, "points": 1}
check("outer_difference", outer_difference)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# In the figure the column belongs to the rows of the result. Who must be the column here?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Write the two shapes, then put in ones until, aligned on the right, they give (q, k).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# If you only turn the keys into a column, you get (k, q). On square input that looks right.
# </details>

# %% [markdown]
# ### The silent mistake
#
# We want every row to sum to 1. Predict: what are the row sums after this division?

# %% tags=["experiment"]
square = np.array([[1.0, 2.0, 1.0], [5.0, 1.0, 2.0], [1.0, 1.0, 14.0]])
sums = square.sum(axis=1)
wrong = square / sums

print("sums", sums, "of shape", sums.shape)
print("row sums after square / sums:   ", wrong.sum(axis=1).round(3))

fig, axes = plt.subplots(1, 3, figsize=(9, 2.4))
tables = {
    "square": square,
    "sums, as NumPy stretches them": np.broadcast_to(sums, (3, 3)),
    "sums, as we meant them": np.broadcast_to(sums[:, None], (3, 3)),
}
for ax, (title, values) in zip(axes, tables.items(), strict=True):
    draw_cells(ax, values, values.astype(int).astype(str), title, limits=(0, 20))
plt.show()

# %% [markdown]
# No error, and no row sums to 1. The sum lost its axis, so (3,) lined up with the *columns*: entry
# [i, j] was divided by the sum of row j. With a matrix that is not square this would have been an
# error; square test inputs hide it. That is why the checks of this course use different sizes
# everywhere.

# %% [markdown]
# ### Exercise 2: rows that sum to 1
# *4 minutes, easy, 2 points*
#
# 1. `matrix` has any number of leading axes, also none; a "row" is the last axis.
# 2. Divide each row by its sum, so that it sums to 1. No exponentials.
# 3. All row sums are positive; single entries may be negative.
# 4. The result is a new array of the same shape; the caller's `matrix` is left unchanged.
#
# Example: `[[1., 3.], [2., 2.]]` gives `[[0.25, 0.75], [0.5, 0.5]]`.


# %% nbgrader={"grade_id": "normalise_rows", "solution": true}
def normalise_rows(matrix):
    """Divide every row by its sum.

    matrix: float array of shape (..., columns). Returns a new float array of the same shape.
    """
    ### BEGIN SOLUTION
    return matrix / matrix.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-normalise_rows", "grade": true, "points": 2}
check("normalise_rows", normalise_rows)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The sums should keep the summed axis, with length 1, so that they stretch along their own row.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Read the help of `np.sum`: one argument names the axis, another keeps it.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `axis=1` is the last axis of a matrix only. Axes can be counted from the right: −1, −2, …
# </details>

# %% [markdown]
# ### Puzzle: eight predictions
#
# For each expression write the shape as a tuple, such as `(3, 5)`, or `"error"`, *before* you run
# the second cell. Nothing is graded, and a gap is allowed.
#
# `vec3` (3,) · `vec5` (5,) · `square` (3, 3) · `matrix` (3, 5) · `cube` (2, 3, 5)

# %%
predictions = {
    "matrix + vec5": None,
    "matrix + vec3": None,
    "matrix + vec3[:, None]": None,
    "vec3[:, None] - vec5": None,
    "square / square.sum(axis=1)": None,
    "cube - matrix.mean(axis=0)": None,
    "cube / cube.sum(axis=1)": None,
    "cube[:, None] + matrix[:, None]": None,
}


# %%
def compare_predictions(predictions):
    """Run every expression of the puzzle and print prediction against fact."""
    shapes = {"vec3": 3, "vec5": 5, "square": (3, 3), "matrix": (3, 5), "cube": (2, 3, 5)}
    arrays = {name: np.ones(shape) for name, shape in shapes.items()}
    print(f"{'expression':<33}{'predicted':<16}{'fact':<16}")
    right = 0
    for expression, predicted in predictions.items():
        try:
            fact = str(eval(expression, {"np": np}, dict(arrays)).shape)
        except ValueError:
            fact = "error"
        guess = "-" if predicted is None else str(predicted).lower()
        digits = [text.strip("()[]").replace(" ", "").rstrip(",") for text in (guess, fact)]
        same = digits[0] == digits[1]
        right += same
        remark = "right" if same else "" if predicted is None else "look again"
        print(f"{expression:<33}{guess:<16}{fact:<16}{remark}")
    print(f"\n{right} of {len(predictions)} predicted")


compare_predictions(predictions)

# %% [markdown]
# Three that deserve a second look:
#
# - `square / square.sum(axis=1)` runs; you know by now that it is wrong all the same.
# - `cube / cube.sum(axis=1)` is (2, 3, 5) with (2, 5): the clash from the second figure.
# - In the last one `None` makes (2, 1, 3, 5) and (3, 1, 5). Aligned on the right, that is (2, 3, 3,
#   5).

# %% [markdown]
# ### Exercise 3: the rule itself
# *6 minutes, medium, 3 points*
#
# 1. `first` and `second` are tuples of lengths, each 1 or more; a tuple may be empty, `()`, the
#    shape of a single number.
# 2. Return the shape they broadcast to, as a tuple.
# 3. If they clash, raise `ValueError` (any message).
# 4. Write the rule yourself, in plain Python: no NumPy, nor any other library of arrays.
#
# Example: `broadcast_shape((4, 1), (3,))` gives `(4, 3)`; `(2, 3)` with `(2,)` raises.


# %% nbgrader={"grade_id": "broadcast_shape", "solution": true}
def broadcast_shape(first, second):
    """Return the shape that two shapes broadcast to.

    first, second: tuples of positive ints. Returns a tuple of ints.
    Raises ValueError if the shapes clash.
    """
    ### BEGIN SOLUTION
    axes = max(len(first), len(second))
    first = (1,) * (axes - len(first)) + first
    second = (1,) * (axes - len(second)) + second
    result = []
    for a, b in zip(first, second, strict=True):
        if a != b and a != 1 and b != 1:
            raise ValueError(f"lengths {a} and {b} clash")
        result.append(b if a == 1 else a)
    return tuple(result)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-broadcast_shape", "grade": true, "points": 3}
check("broadcast_shape", broadcast_shape)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# First give both shapes equally many axes. On which side do the ones go?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Then look at one pair of lengths at a time. There are three ways to fit, and everything else
# raises.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The larger of two lengths is the right answer only once you know that the other one is 1, or
# equal. And `zip` stops at the shorter of its arguments.
# </details>

# %% [markdown]
# ## 2 Masks
#
# Sentences differ in length; arrays don't. So short sentences are filled up with *padding*, and a
# mask remembers which positions are real. In this course a mask is boolean, and **True = counts**.

# %% tags=["experiment"]
sentences = [["the", "cat", "sat"], ["rain", "fell"], ["she", "gave", "him", "the", "map"]]
longest = max(len(words) for words in sentences)
padded = np.array([words + ["·"] * (longest - len(words)) for words in sentences])

fig, ax = plt.subplots(figsize=(5, 2.2))
draw_cells(ax, 0.35 * (padded != "·"), padded, "batch 3, length 5, lengths [3, 2, 5]")
plt.show()

# %% [markdown]
# The blue cells are the mask you want. Which positions, counted from 0, are real in the second row?
# Only 0 and 1. A length of 2 means positions *below* 2.
#
# ### Exercise 4: which tokens are real
# *4 minutes, easy, 1 point*
#
# 1. `lengths` is an integer array of shape (batch,), each from 0 to `longest`; `longest` is an int.
# 2. The result is a boolean array of shape (batch, longest); `longest` may be more than every
#    length.
# 3. Entry [b, p] is True if p is one of the first `lengths[b]` positions.
# 4. Try it without a loop: compare positions with lengths.
#
# Example: `padding_mask(np.array([1, 3]), 3)` gives
# `[[True, False, False], [True, True, True]]`.


# %% nbgrader={"grade_id": "padding_mask", "solution": true}
def padding_mask(lengths, longest):
    """Mark the real tokens of a padded batch.

    lengths: int array of shape (batch,). longest: int.
    Returns a bool array of shape (batch, longest), True where there is a real token.
    """
    ### BEGIN SOLUTION
    return np.arange(longest) < lengths[:, None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-padding_mask", "grade": true, "points": 1}
check("padding_mask", padding_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# `np.arange(longest)` holds all positions. A comparison of two arrays broadcasts too.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Positions run along the last axis, lengths along the first: one of them must become a column.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `<=` lets one padding token in. A row of length 0 must be False everywhere.
# </details>

# %% [markdown]
# ### Does padding with zeros harm a mean?
#
# Zeros add nothing to a sum, so one might leave them in. Predict: how does the plain mean of a
# sentence change as more and more zeros are appended? Five random sentences, lengths 2 to 10:

# %% tags=["experiment"]
widths = np.array([10, 16, 24, 40, 64])
fig, ax = plt.subplots(figsize=(6, 3))
shrunk, moved = [], []
for seed in range(5):
    rng = np.random.default_rng(seed)
    tokens = 2 + rng.normal(size=2 + 2 * seed)
    rows = [np.concatenate([tokens, np.zeros(width - len(tokens))]) for width in widths]
    plain = np.array([values.mean() for values in rows])
    real = np.array([values[: len(tokens)].mean() for values in rows])
    shrunk.append(plain[-1] / tokens.mean())
    moved.append(np.ptp(real))
    ax.plot(widths, plain, "o-", color=f"C{seed}", label=f"{len(tokens)} tokens")
    ax.plot(widths, real, "--", color=f"C{seed}")
ax.set_xlabel("padded length")
ax.set_ylabel("mean")
ax.set_title("solid: over all positions, dashed: over real tokens only", fontsize=10)
ax.legend(fontsize=8)
plt.show()

harmful = max(shrunk) < 0.5 and max(moved) < 1e-9
span = f"{min(shrunk):.0%} to {max(shrunk):.0%}"
print(f"Padded to {widths[-1]}, the plain mean is {span} of the true one.")
print("In this run zeros are", "not harmless." if harmful else "harmless, against expectation.")

# %% [markdown]
# The sum stays, the divisor grows: the mean of a sentence depends on its *neighbours* in the batch,
# the short ones most. And real padding is not even zero once a layer has added a bias to it.

# %% [markdown]
# ### Exercise 5: the mean of the real tokens
# *5 minutes, medium, 3 points*
#
# 1. `values` has shape (batch, length, features), `lengths` has shape (batch,), from 0 to length.
# 2. Row b of the result, shape (batch, features), is the mean of `values[b]` over its first
#    `lengths[b]` positions.
# 3. Padding may hold any finite numbers, large ones too; they must not matter.
# 4. A row of length 0 gives zeros, not NaN.
#
# Example: one sentence with features `[[1., 4.], [3., 8.], [99., 99.]]` and length 2 gives
# `[[2., 6.]]`.


# %% nbgrader={"grade_id": "masked_mean", "solution": true}
def masked_mean(values, lengths):
    """Average each sentence over its real tokens.

    values: float array of shape (batch, length, features). lengths: int array of shape (batch,).
    Returns a float array of shape (batch, features); zeros for a sentence of length 0.
    """
    ### BEGIN SOLUTION
    mask = np.arange(values.shape[1]) < lengths[:, None]  # (batch, length)
    total = (values * mask[:, :, None]).sum(axis=1)  # (batch, features)
    return total / np.maximum(lengths, 1)[:, None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-masked_mean", "grade": true, "points": 3}
check("masked_mean", masked_mean)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A mean is a sum and a divisor. Make the padding vanish from the sum, and count what is left.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Write the shapes: values (batch, length, features), mask (batch, length), divisor (batch,). Two of
# them need another axis. Where?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# For a length of 0, change the divisor only. If you change the length before making the mask, the
# first padding token becomes real.
# </details>

# %% [markdown]
# ### The causal mask
#
# A model that writes text must not look at words it has not written yet. Query i may look at key j
# only if token j is not later than token i. Rows are queries, columns keys, blue may be seen.
#
# In the second and third picture there are fewer queries than keys. That happens when a model
# writes token by token: the keys of earlier tokens are kept in a *cache*, and only the newest
# tokens come as queries. Predict before you look: how many keys does the first query see when there
# are 3 queries and 7 keys?

# %% tags=["experiment"]
drawn = {
    "5 queries, 5 keys": ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"],
    "3 queries, 7 keys": ["xxxxx..", "xxxxxx.", "xxxxxxx"],
    "1 query, 7 keys": ["xxxxxxx"],
}
fig, axes = plt.subplots(1, 3, figsize=(10, 2.8), width_ratios=[5, 7, 7])
for ax, (title, rows) in zip(axes, drawn.items(), strict=True):
    seen = np.array([[letter == "x" for letter in row] for row in rows])
    draw_cells(ax, 0.6 * seen, np.where(seen, "", "·"), title)
    ax.set_xlabel("keys")
    ax.set_ylabel("queries")
plt.show()

# %% [markdown]
# Five: with 7 keys, the three queries are tokens 4, 5 and 6, and token 4 sees tokens 0 to 4. The
# triangle hangs in the lower **right** corner: the last query sees everything.
#
# ### Exercise 6: no look at the future
# *5 minutes, medium, 2 points*
#
# 1. `queries` and `keys` are numbers (ints), not arrays.
# 2. The result is a boolean array of shape (queries, keys).
# 3. The last query belongs to the last key. So query i sees key j if `j <= i + keys - queries`.
# 4. With more queries than keys the same rule holds, and the first rows see nothing.
#
# Example: `causal_mask(2, 3)` gives `[[True, True, False], [True, True, True]]`.


# %% nbgrader={"grade_id": "causal_mask", "solution": true}
def causal_mask(queries, keys):
    """Mark which keys each query may see.

    queries, keys: ints. Returns a bool array of shape (queries, keys), True = may be seen.
    """
    ### BEGIN SOLUTION
    i = np.arange(queries)[:, None]
    j = np.arange(keys)
    return j <= i + keys - queries
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-causal_mask", "grade": true, "points": 2}
check("causal_mask", causal_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# This is exercise 4 once more: compare one row of places with a column, and let them broadcast.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Make the query numbers a column and the key numbers a row. Rule 3 is then nearly code. (NumPy
# also has functions for triangles; then mind their argument `k`.)
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A square test cannot tell the lower left corner from the lower right one. Look at
# `causal_mask(1, 4)`: the newest token sees all four.
# </details>

# %% [markdown]
# ## 3 Picking and products
#
# A language model gives a row of numbers for each position, one for each word of its vocabulary.
# The loss needs *one* number from each row: the one of the word that really came next.
#
# Predict the shapes of `rows[:, wanted]` and `rows[wanted]`, for `rows` of shape (4, 5) and
# `wanted` `[2, 0, 3, 3]`.

# %% tags=["experiment"]
rows = np.arange(20).reshape(4, 5)
wanted = np.array([2, 0, 3, 3])

print("rows[:, wanted]:", rows[:, wanted].shape, " rows[wanted]:", rows[wanted].shape)

fig, axes = plt.subplots(1, 2, figsize=(8, 2.6), width_ratios=[5, 4])
chosen = np.arange(5) == wanted[:, None]
draw_cells(axes[0], 0.2 + 0.6 * chosen, rows.astype(str), "wanted: one entry of each row")
inside = np.eye(4, dtype=bool)
draw_cells(axes[1], 0.2 + 0.6 * inside, rows[:, wanted].astype(str), "rows[:, wanted]: too much")
plt.show()

# %% [markdown]
# `rows[:, wanted]` takes *all* four columns in *every* row: (4, 4), and what we want is its
# diagonal. `rows[wanted]` picks whole rows: (4, 5). An index array pairs up only with another
# *index array*, and a colon is none.
#
# ### Exercise 7: one entry of every row
# *4 minutes, medium, 2 points*
#
# 1. `rows` has shape (..., n) with at least one leading axis; `indices` has the leading shape
#    (...).
# 2. The result has the shape of `indices`; each entry is taken from the last axis of `rows`, at the
#    place that the index names.
# 3. Indices are ints from 0 to n − 1.
#
# Example: rows `[[1., 2., 3.], [4., 5., 6.]]` with indices `[2, 0]` gives `[3., 4.]`.


# %% nbgrader={"grade_id": "pick_per_row", "solution": true}
def pick_per_row(rows, indices):
    """Pick one entry from every row.

    rows: float array of shape (..., n). indices: int array of shape (...), from 0 to n - 1.
    Returns a float array of shape (...).
    """
    ### BEGIN SOLUTION
    return np.take_along_axis(rows, indices[..., None], axis=-1)[..., 0]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pick_per_row", "grade": true, "points": 2}
check("pick_per_row", pick_per_row)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# For a matrix: row numbers 0, 1, 2, … in one index array, `indices` in the other.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For any number of axes there is `np.take_along_axis`; it wants indices with as many axes as
# `rows`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# It also returns that many axes. The result must have the shape of `indices`.
# </details>

# %% [markdown]
# ### Products with a batch in front
#
# `A @ B` multiplies the **last two axes** as matrices, and treats everything in front as a batch.
# *Einsum* says the same with letters: a letter that is missing in the result is summed over.
#
# | what | with `@` | with einsum |
# |---|---|---|
# | matrix times vector | `A @ x` | `np.einsum("ij,j->i", A, x)` |
# | batch of matrix products | `A @ B` | `np.einsum("bij,bjk->bik", A, B)` |
# | any axes in front | `A @ B` | `np.einsum("...ij,...jk->...ik", A, B)` |
# | sum of each row | `A.sum(axis=-1)` | `np.einsum("...i->...", A)` |
#
# Predict the shape of `keys.T` for keys of shape (2, 7, 3): batch, keys, width.

# %% tags=["experiment"]
keys_of_batch = np.random.default_rng(0).normal(size=(2, 7, 3))
print("keys", keys_of_batch.shape, " keys.T", keys_of_batch.T.shape)

# %% [markdown]
# (3, 7, 2): `.T` reverses *all* axes, and the batch is now at the end. On a matrix it is a
# transpose, on a batch of matrices it hardly ever is what one means.
#
# ### Exercise 8: every query with every key
# *4 minutes, medium, 2 points*
#
# 1. `queries` has shape (..., q, d), `keys` has shape (..., k, d), with the same leading axes:
#    none, one or more.
# 2. The result has shape (..., q, k): entry [..., i, j] is the dot product of query i and key j.
# 3. Plain dot products: no scaling, no softmax.
#
# Example: queries `[[1., 2.]]` and keys `[[3., 4.], [5., 6.]]` give `[[11., 17.]]`.


# %% nbgrader={"grade_id": "pairwise_scores", "solution": true}
def pairwise_scores(queries, keys):
    """Take the dot product of every query with every key.

    queries: float array of shape (..., q, d). keys: float array of shape (..., k, d).
    Returns a float array of shape (..., q, k).
    """
    ### BEGIN SOLUTION
    return queries @ np.swapaxes(keys, -1, -2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pairwise_scores", "grade": true, "points": 2}
check("pairwise_scores", pairwise_scores)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# In `@`, the last axis of the left side must have the length of the second last of the right side.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Either exchange two axes of the keys (`np.swapaxes`), or write in letters which axis is summed.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `keys.reshape(..., d, k)` has the right shape and the wrong numbers: reshape keeps the order in
# memory, a transpose changes it.
# </details>

# %% [markdown]
# ## 4 Heads
#
# *Multi-head* attention (Vaswani et al., 2017, Section 3.2.2) cuts every token's vector into
# pieces; each head works on its own piece of *every* token.
#
# Four tokens a, b, c, d with six features each; the colour says which token a number came from. We
# want two heads with three features each. Predict: which colours does head 0 hold after
# `x.reshape(heads, length, d_head)`?

# %% tags=["experiment"]
length, d_model, two_heads = 4, 6, 2
width = d_model // two_heads
names = np.array([[f"{token}{feature}" for feature in range(d_model)] for token in "abcd"])
token_of = np.repeat(np.arange(length), d_model).reshape(length, d_model)


ways = {
    "reshape only": lambda x: x.reshape(two_heads, length, width),
    "wanted": lambda x: [x[:, :width], x[:, width:]],
}
fig, axes = plt.subplots(1, 5, figsize=(11, 2.6), width_ratios=[6, 3, 3, 3, 3])
draw_cells(axes[0], token_of, names, "x: a row is a token", cmap="Pastel1", limits=(0, 8))
axes[0].axvline(width - 0.5, color="black", linewidth=2)
axes[0].set_ylabel("positions")
for place, (way, split) in enumerate(ways.items()):
    for head in range(two_heads):
        ax, title = axes[1 + 2 * place + head], f"{way}: head {head}"
        colours, labels = split(token_of)[head], split(names)[head]
        draw_cells(ax, colours, labels, title, cmap="Pastel1", limits=(0, 8))
plt.show()

# %% [markdown]
# Reshape reads the numbers line by line and fills the new shape line by line. So head 0 gets *all*
# of a and b, and head 1 all of c and d: position 1 of head 0 is not token b but the second half of
# a. The shape is right, which is why nobody notices.
#
# How bad is it? We change the last token only. Predict: at which positions do the heads change?

# %% tags=["experiment"]
rng = np.random.default_rng(0)
before = rng.normal(size=(length, d_model))
after = before.copy()
after[-1] += 1.0


fig, axes = plt.subplots(1, 2, figsize=(8, 1.9))
for ax, (way, split) in zip(axes, ways.items(), strict=True):
    pairs = zip(split(before), split(after), strict=True)
    changed = np.array([(old != new).any(axis=-1) for old, new in pairs])
    draw_cells(ax, 0.6 * changed, np.where(changed, "changed", ""), way)
    ax.set_xlabel("positions 0 to 3")
    ax.set_ylabel("heads")
    early = changed[:, :-1].any()
    print(f"{way}: the last token {'reaches' if early else 'stays out of'} earlier positions")
plt.show()

# %% [markdown]
# With reshape alone the last token has moved into position 2 of head 1, and is gone from head 0. A
# causal mask over positions would now let the future through. A split has to happen in two steps:
# cut the last axis in two, *then* move an axis.
#
# ### Exercise 9: one vector into heads
# *5 minutes, medium, 3 points*
#
# 1. `x` has shape (batch, length, d_model), `heads` is an int of at least 1.
# 2. The result has shape (batch, heads, length, d_head) with d_head = d_model / heads.
# 3. Head h gets features h · d_head up to (h + 1) · d_head of every token: neighbours, not every
#    other one.
# 4. If `heads` does not divide d_model, raise `ValueError`.
#
# Example: one sentence of two tokens `[[1, 2, 3, 4], [5, 6, 7, 8]]` with 2 heads gives
# `[[1, 2], [5, 6]]` for head 0 and `[[3, 4], [7, 8]]` for head 1.


# %% nbgrader={"grade_id": "split_heads", "solution": true}
def split_heads(x, heads):
    """Cut every token's vector into heads.

    x: float array of shape (batch, length, d_model). heads: int.
    Returns a float array of shape (batch, heads, length, d_model // heads).
    Raises ValueError if heads does not divide d_model.
    """
    ### BEGIN SOLUTION
    batch, length, d_model = x.shape
    if d_model % heads:
        raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
    cut = x.reshape(batch, length, heads, d_model // heads)
    return cut.transpose(0, 2, 1, 3)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-split_heads", "grade": true, "points": 3}
check("split_heads", split_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A reshape is safe as long as it only cuts one axis into two neighbours.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# (batch, length, d_model) → (batch, length, heads, d_head) → (batch, heads, length, d_head). The
# first arrow is a reshape, the second is not.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `d_model // heads` rounds down without a word. And a −1 in a reshape takes whatever is left over,
# also what should not be left over.
# </details>

# %% [markdown]
# ### Exercise 10: heads back into one vector
# *3 minutes, medium, 1 point*
#
# 1. `x` has shape (batch, heads, length, d_head).
# 2. The result has shape (batch, length, heads · d_head).
# 3. It undoes `split_heads`: head 0's features come first, then head 1's, …
#
# Example: heads `[[1, 2], [5, 6]]` and `[[3, 4], [7, 8]]` of one sentence give
# `[[1, 2, 3, 4], [5, 6, 7, 8]]`.


# %% nbgrader={"grade_id": "merge_heads", "solution": true}
def merge_heads(x):
    """Put the heads of every token side by side.

    x: float array of shape (batch, heads, length, d_head).
    Returns a float array of shape (batch, length, heads * d_head).
    """
    ### BEGIN SOLUTION
    batch, heads, length, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * d_head)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-merge_heads", "grade": true, "points": 1}
check("merge_heads", merge_heads)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Walk the same way back: last step first.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Two axes become one by reshape only when they are neighbours, in the right order.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A reshape right away has the right shape. Test yourself: merging a split must give back `x`.
# </details>

# %% [markdown]
# ## Common mistakes
#
# | you see | often the cause |
# |---|---|
# | an error that names two shapes | the shapes were aligned on the left in your head |
# | rows that don't sum to 1, no error | `keepdims` forgotten on a square matrix |
# | right for matrices, wrong for batches | axes counted from the left, or `.T` |
# | a mean that is too small | divided by the padded length |
# | a mean that is far too large | `<=` for `<`: one padding token was let in |
# | NaN for an empty sentence | 0 / 0 |
# | a mask with the right pattern fails | 0 and 1 in place of False and True |
# | the newest token sees one key only | triangle in the upper left corner, offset forgotten |
# | (n, n) where (n,) was wanted | a colon for the rows, next to an index array |
# | right shape, scrambled numbers | reshape where a transpose was due |
# | heads narrower than planned | `//` where heads does not divide d_model |

# %% [markdown]
# ## Recap
#
# - Shapes are aligned on the **right**; a length of 1, or a missing axis, is stretched.
# - Name axes from the right (−1, −2): such code survives another batch axis.
# - `keepdims=True`, or a `None` in the index, gives an axis back.
# - A mask is a comparison of positions. True = counts.
# - Reshape keeps the order of numbers; transpose keeps the meaning of axes.
# - Square and equal sizes hide mistakes: test with sizes that all differ.
#
# Next chapter: a softmax over the scores, a weighted mean of values, and attention is there.

# %% [markdown]
# ## Challenge: one line of letters (optional, no points)
#
# Fill in einsum strings. A gap or a wrong one is fine; the second cell compares and never fails.
#
# 1. row sums of `A` (3, 5)
# 2. the diagonal of `S` (4, 4)
# 3. all products of `u` (3,) and `v` (5,)
# 4. `A` (2, 3, 5) with its last two axes exchanged, for any axes in front
# 5. weights (b, h, q, k) times values (b, h, k, d), with the result as (b, q, h, d): a matrix
#    product and half of `merge_heads` in one go

# %%
letters = {
    "1 row sums": "",
    "2 diagonal": "",
    "3 all products": "",
    "4 last two exchanged": "",
    "5 weighted values": "",
}


# %%
def compare_letters(letters):
    """Compare each einsum string with a result that was made another way."""
    rng = np.random.default_rng(0)
    a, s, cube = rng.normal(size=(3, 5)), rng.normal(size=(4, 4)), rng.normal(size=(2, 3, 5))
    u, v = rng.normal(size=3), rng.normal(size=5)
    weights, values = rng.normal(size=(2, 3, 5, 7)), rng.normal(size=(2, 3, 7, 6))
    tasks = [
        ((a,), a.sum(axis=1)),
        ((s,), np.diag(s)),
        ((u, v), np.outer(u, v)),
        ((cube,), np.moveaxis(cube, 1, 2)),
        ((weights, values), np.moveaxis(weights @ values, 1, 2)),
    ]
    for (name, text), (inputs, wanted) in zip(letters.items(), tasks, strict=False):
        try:
            got = np.einsum(text, *inputs) if text else None
            right = got is not None and got.shape == wanted.shape and np.allclose(got, wanted)
            remark = "right" if right else "no answer yet" if got is None else "not the same"
        except (ValueError, TypeError) as error:
            remark = f"einsum refuses: {error}"
        print(f"{name:<24}{text!r:<24}{remark}")


compare_letters(letters)

# %% [markdown]
# <details><summary>One answer each</summary>
#
# `"ij->i"` · `"ii->i"` · `"i,j->ij"` · `"...ij->...ji"` · `"bhqk,bhkd->bqhd"`
# </details>
