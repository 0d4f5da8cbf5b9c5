# %% [markdown]
# # 12 Distillation
#
# A large model knows something; a small one is to learn it. What should the small one look at: the
# answers, the large one's opinions, or what goes on inside it? You write every rung of that ladder,
# measure what each is worth on a small task, and weigh models honestly: parameters, bytes, time.
#
# **You will be able to**
#
# - write each loss between a student and a teacher, and say which tokens it averages over;
# - keep a teacher out of training: no gradient, no dropout;
# - cut a student out of its teacher, as DistilBERT was, and train it on three losses at once;
# - let models teach each other, and a model teach itself;
# - swap activations by a hook, and ask whether two models agree *for the same reasons*;
# - compare size and speed so that the numbers mean something.
#
# | section | minutes | points |
# |---|---|---|
# | 1 A teacher for words | 20 | |
# | 2 Labels | 25 | 4 |
# | 3 Opinions | 65 | 8 |
# | 4 Inside | 65 | 9 |
# | 5 DistilBERT | 40 | 5 |
# | 6 Measuring honestly | 90 | 10 |
# | 7 Other classrooms | 55 | 9 |
# | 8 What if | 50 | 6 |
# | 9 In words, and recap | 20 | 2 |
# | **in all** | **430** | **53** |
#
# That is four sittings: sections 1 to 3, 4 and 5, 6, 7 to 9.

# %% [markdown]
# **To read**, before or after: G. Hinton, O. Vinyals and J. Dean (2015), *Distilling the Knowledge
# in a Neural Network*, Sections 1 and 2. V. Sanh, L. Debut, J. Chaumond and T. Wolf (2019),
# *DistilBERT, a distilled version of BERT*, Sections 2 to 4. X. Jiao et al. (2020), *TinyBERT*,
# Section 3. Z. Wu et al. (2022), *Causal Distillation for Language Models*.
#
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `student_logits`, `teacher_logits` | (batch, length, classes) | scores of each token's classes |
# | `real` | (batch, length) | bool, True = a token, False = padding, which may hold any number |
# | `labels` | (batch, length) | int64, the right class; −100 = no label |
# | `temperature` | number > 0 | *T*: what logits are divided by |
# | `student_states`, `teacher_states` | (…, batch, length, width) | vectors between layers |
# | `layer_map` | list of pairs | (student's index, teacher's index) |
#
# "Real" tokens need not stand at the front. **A mean over tokens is a sum over all real tokens of
# the batch, divided by their number**; at least one token is real. Checks run in float64 on the
# CPU. You may call earlier answers in later ones, but you never have to.

# %%
import numpy as np
import torch
from torch.nn import functional as F

from attention_course import check, example

torch.set_num_threads(1)  # small tensors: more threads would only wait for each other

# %% [markdown]
# ## 1 A teacher for words
#
# The ladder of this chapter, from light to heavy: what can a student be asked to match?

# %% tags=["experiment"]
import matplotlib.pyplot as plt

RUNGS = (
    ("gold labels", "no teacher at all"),
    ("the teacher's labels", "one class a token, also where nobody labelled"),
    ("the teacher's probabilities", "one number for each class"),
    ("its last vectors", "one number for each feature"),
    ("its vectors and attention in between", "the same, layer by layer"),
    ("what it would do if …", "its answers after surgery"),
)


def draw_ladder(ax):
    """One box for each rung, wider from rung to rung."""
    for height, (what, how_much) in enumerate(RUNGS):
        ax.barh(height, 2.6 + 0.5 * height, height=0.66, color="#dbe9f6", ec="0.4")
        ax.text(0.1, height, what, va="center", fontsize=10)
        ax.text(2.8 + 0.5 * height, height, how_much, va="center", fontsize=9, color="0.35")
    ax.annotate("", (-0.25, 5.3), (-0.25, -0.3), arrowprops={"arrowstyle": "->", "color": "0.4"})
    ax.set(xlim=(-0.4, 8.4), ylim=(-0.5, 5.6))
    ax.axis("off")


fig, ax = plt.subplots(figsize=(7.5, 3.0), layout="constrained")
draw_ladder(ax)
plt.show()

# %% [markdown]
# In words: six bars one above the other, each wider than the one below: gold labels, the teacher's
# labels, its probabilities, its last vectors, its inner vectors and attention, its answers after
# surgery. Each says more about the teacher and costs more to store or to run.
#
# **The task.** For each word of a French sentence, say which English word it becomes. That is a
# class for each token, and some tokens are hard: "le" is *the* or *him*, "un" is *a* or *an* by the
# next English word, "son" is *his* or *her* by the subject, far away.

# %% tags=["experiment"]
from attention_course.distillation import WordModel, accuracy, fit, from_labels, make_word_task

sizes = {"labelled": 100, "teacher's": 1000, "unlabelled": 1600, "test": 400}
task = make_word_task(12, sizes)
test = task.sets["test"]
for row in (1, 2):
    for french, label in zip(task.reading(test.words[row]), test.labels[row], strict=False):
        print(f"{french:>12}  {task.english[label]}")
    print()
print(f"{len(task.french) - 1} French words, {len(task.english)} English ones to choose from")

# %% [markdown]
# The teacher gets 1,000 labelled sentences and three layers of width 64. Our students will get 100
# labelled sentences, one layer, width 32. That difference in *data* is part of everything below: in
# life, too, the teacher has usually seen more than the student will.
#
# Predict: how many per cent of words does the teacher get right on new sentences?

# %% tags=["experiment"]


def make_model(seed, d_model, layers):
    """A fresh model for the task; its first weights depend on the seed."""
    torch.manual_seed(seed)
    return WordModel(len(task.french), len(task.english), d_model, d_model // 16, layers)


def count(model):
    """Number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


teacher, lessons = make_model(0, 64, 3), task.sets["teacher's"]
fit(teacher, lessons.words, from_labels(lessons.labels), steps=220, seed=0, rate=6e-3)
print(f"teacher: {count(teacher):,} parameters, {accuracy(teacher, test):.1%} of words right")

# %% [markdown]
# ## 2 Labels

# %% [markdown]
# ### Exercise 1: gold labels
# *8 minutes, easy, 2 points*
#
# 1. The loss of a labelled place is the cross-entropy of its logits with its label. Places with
#    −100 have none, whatever their logits.
# 2. The result is the **mean over all labelled places** of the batch: every label weighs the same.
# 3. A batch without any label gives 0.
# 4. Logits may be in the hundreds.
#
# Example: with two classes and all logits 0, the result is log 2 ≈ 0.693, however many labels.


# %% nbgrader={"grade_id": "gold_loss", "solution": true}
def gold_loss(logits, labels):
    """Mean cross-entropy over labelled places.

    logits: (batch, length, classes). labels: int64 (batch, length), −100 = no label.
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    total = F.cross_entropy(logits.mT, labels, ignore_index=-100, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-gold_loss", "grade": true, "points": 2}
check("gold_loss", gold_loss)

# %% [markdown]
# A case in hand, to try an answer on: `example` gives the inputs of one.

# %%
case = example("gold_loss", 3)
print(case["labels"])

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# `F.cross_entropy` leaves −100 out by itself. What does its mean give if everything is left out?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Sum over labelled places, divided by their number, or by 1 if there is none.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `F.cross_entropy` wants the classes on axis 1: (batch, classes, length), or flat rows.
# </details>

# %% [markdown]
# ### Exercise 2: the teacher's labels
# *10 minutes, easy, 2 points*
#
# 1. The label of a token is the class with the teacher's largest logit (no two are equal).
# 2. The result is the mean over real tokens of the student's cross-entropy with that label.
# 3. The teacher gets no gradient.
#
# Example: if the teacher prefers class 2 everywhere, the result is minus the mean of the student's
# log-probability of class 2.


# %% nbgrader={"grade_id": "hard_label_loss", "solution": true}
def hard_label_loss(student_logits, teacher_logits, real):
    """Mean cross-entropy of the student with the teacher's choices.

    student_logits, teacher_logits: (batch, length, classes). real: bool (batch, length).
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    return F.cross_entropy(student_logits[real], teacher_logits[real].argmax(dim=-1))
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-hard_label_loss", "grade": true, "points": 2}
check("hard_label_loss", hard_label_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two steps: choose, then exercise 1 with other labels.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `logits[real]` picks the real tokens: (batch, length, classes) becomes (tokens, classes).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Padding holds large numbers here. Multiplying by a mask after a mean over all places is too late.
# </details>

# %% [markdown]
# What can the teacher's labels do that gold ones cannot? They cost no annotator. On the *same*
# sentences, though, a good teacher mostly repeats the gold labels. Keep that in mind for the first
# comparison in section 3.

# %% [markdown]
# ## 3 Opinions
#
# A label says *her*. The teacher's probabilities say: *her* most likely, *his* a little, *horse*
# never. That second message holds what the teacher knows about words that are alike. Hinton,
# Vinyals and Dean (2015) divide all logits by a **temperature** T: then small ones show.
#
# The figure has real logits of the teacher above. Predict before you move the slider: at T = 4, is
# the second-best class nearer to the best one or farther away? And the order of the classes?

# %% tags=["experiment"]
from attention_course.distillation import logits_of

test_logits = logits_of(teacher, test.words)
first, second = test_logits.softmax(-1).topk(2).values.unbind(-1)
lead = (first - second).masked_fill((test.words == 0) | (first + second < 0.9), 1.0)
row, token = divmod(int(lead.argmin()), test.words.shape[1])  # where it hesitates between two
sentence = task.reading(test.words[row])
print(" ".join(sentence), f"(look at {sentence[token]!r})")

# %% tags=["experiment"]
from attention_course.explorers import temperature_explorer

temperature_explorer(
    test_logits[row, : len(sentence)],
    sentence,
    task.english,
    labels=test.labels[row, : len(sentence)].tolist(),
    token=token,
)

# %% [markdown]
# The order never changes: dividing by a positive number keeps it. Only the distances shrink. At a
# very high T all classes are alike and nothing is left to learn from; at a very low T it is a hard
# label again.

# %% [markdown]
# ### Exercise 3: soft targets
# *22 minutes, medium, 4 points*
#
# The distance between two distributions that is used here is the *Kullback-Leibler divergence*, KL:
# 0 if they are equal, larger the less likely the second finds what the first says. With $p =
# \text{softmax}(\text{teacher} / T)$ and $q = \text{softmax}(\text{student} / T)$ at each token:
#
# 1. The token's loss is $T^2 \, \mathrm{KL}(p \,\|\, q) = T^2 \sum_c p_c \, (\log p_c - \log q_c)$:
#    the **teacher's** probabilities weigh the logarithms. It is 0 if the two agree.
# 2. The result is the mean over real tokens of the batch. (Not over sentences, not over classes.)
# 3. The teacher gets no gradient.
# 4. Logits may be in the hundreds.
#
# Why T²? The gradient for a student's logit is $T^2 \cdot (q - p) / T$, and for large T the
# difference q − p itself shrinks like 1/T (Hinton et al., Section 2, equations 2 to 4). The factor
# keeps the size of the gradient, so that soft and gold losses can be added whatever T is.
#
# Example: one token, T = 1, $p = (½, ½)$, $q = (¼, ¾)$ give ½ log 2 + ½ log ⅔ ≈ 0.144.


# %% nbgrader={"grade_id": "soft_loss", "solution": true}
def soft_loss(student_logits, teacher_logits, real, temperature):
    """T² times the mean divergence of the student from the softened teacher.

    student_logits, teacher_logits: (batch, length, classes). real: bool (batch, length).
    temperature: number > 0. Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    student = (student_logits[real] / temperature).log_softmax(dim=-1)
    teacher = (teacher_logits[real].detach() / temperature).log_softmax(dim=-1)
    gaps = (teacher.exp() * (teacher - student)).sum(dim=-1)
    return temperature**2 * gaps.mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-soft_loss", "grade": true, "points": 4}
check("soft_loss", soft_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Divide, log-softmax, compare: in that order, for both. A KL divergence is a sum over classes that
# the first distribution weighs.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Real tokens first: (tokens, classes). One number for each token, then a plain mean.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `F.kl_div(a, b)` is KL(b ‖ exp(a)): the *student's log-probabilities* come first. Its default
# `reduction="mean"` divides by the classes, too, and `"batchmean"` by the length of axis 0 only.
# </details>

# %% [markdown]
# ### Exercise 4: a step with a frozen teacher
# *18 minutes, medium, 4 points*
#
# The loss is given this time: `loss(student_logits, teacher_logits)`. The teacher arrives in
# *training* mode, the student in *evaluation* mode, and the student still has gradients of the step
# before.
#
# 1. Both read `x`, in one run each. The teacher runs in evaluation mode, and nothing of its run is
#    recorded for gradients (that would cost memory for nothing). The student runs in training mode.
# 2. Old gradients are cleared; backward; exactly one step of `optimizer`, which holds the student's
#    parameters.
# 3. The teacher's weights stay as they are, and it gets no gradients.
# 4. Return the loss from before the step: a number, or a tensor without axes.
#
# Example: with a loss that is always 0 times something, the student's weights stay, and 0 comes
# back.


# %% nbgrader={"grade_id": "distillation_step", "solution": true}
def distillation_step(student, teacher, optimizer, x, loss):
    """One step of the student towards the teacher.

    student, teacher: modules, (batch, length, width) → (batch, length, classes).
    optimizer: has zero_grad() and step(). x: (batch, length, width).
    loss: function of (student_logits, teacher_logits). Returns the loss.
    """
    ### BEGIN SOLUTION
    teacher.eval()
    student.train()
    with torch.no_grad():
        aims = teacher(x)
    value = loss(student(x), aims)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.detach()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-distillation_step", "grade": true, "points": 4}
check("distillation_step", distillation_step)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A usual training step, and before it a run of the teacher that leaves no trace.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Modes → teacher's logits without recording → student's logits → loss → clear, backward, step.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `no_grad` does not switch dropout off, and `eval()` does not switch gradients off. They are two
# different things, and a teacher needs both.
# </details>

# %% [markdown]
# ### Does it help?
#
# First comparison: **the same 100 sentences**, the same number of steps, a student of one layer. It
# learns from gold labels, from the teacher's labels, or from its probabilities at T = 1, 2, 4. Five
# seeds each; a seed decides on the student's first weights and on the order of sentences.
#
# Predict the order of the five. (Remember what the teacher's labels are on these sentences.)

# %% tags=["experiment"]
from attention_course.distillation import from_logits, hard_labels

STEPS, SEEDS = 120, range(5)


def student_accuracy(signal, words, seed):
    """Train a student of one layer on a signal; share of test words right, and the student."""
    student = make_model(100 + seed, 32, 1)
    fit(student, words, signal, steps=STEPS, seed=seed, rate=1e-2)
    return accuracy(student, test), student


few = task.sets["labelled"]
opinions = logits_of(teacher, few.words)
signals = {
    "gold": from_labels(few.labels),
    "teacher's labels": from_labels(hard_labels(opinions, few.words)),
    "T = 1": from_logits(opinions, 1.0),
    "T = 2": from_logits(opinions, 2.0),
    "T = 4": from_logits(opinions, 4.0),
}
same_inputs = {}
for name, signal in signals.items():
    same_inputs[name] = np.array([student_accuracy(signal, few.words, s)[0] for s in SEEDS])
    print(f"{name:<17} {same_inputs[name].mean():.1%} ± {same_inputs[name].std(ddof=1):.1%}")

# %% tags=["experiment"]


def draw_dots(ax, results, title):
    """A dot for each seed, a line for the mean, one row for each name."""
    for place, (_, shares) in enumerate(results.items()):
        ax.plot(100 * shares, [place] * len(shares), "o", color="C0", alpha=0.6, ms=5)
        ax.plot([100 * shares.mean()] * 2, [place - 0.3, place + 0.3], color="C1", lw=2)
    ax.set_yticks(range(len(results)), list(results))
    ax.set_ylim(len(results) - 0.5, -0.5)
    ax.set(xlabel="% of test words right", title=title)


def verdict(claim, low, high):
    """Say whether paired runs support that `high` is above `low`; all seeds must agree."""
    gaps = high - low
    sure = "supported" if gaps.min() > 0 else "contradicted" if gaps.max() < 0 else "NOT settled"
    print(f"'{claim}': {sure} by these {len(gaps)} seeds ({gaps.mean():+.1%} on average).")


fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
draw_dots(ax, same_inputs, "the same 100 sentences, five signals")
plt.show()
verdict("The teacher's labels beat gold ones", same_inputs["gold"], same_inputs["teacher's labels"])
verdict("Soft targets (T = 1) beat gold", same_inputs["gold"], same_inputs["T = 1"])
verdict("T = 2 beats T = 1", same_inputs["T = 1"], same_inputs["T = 2"])
verdict("T = 4 beats T = 2", same_inputs["T = 2"], same_inputs["T = 4"])

# %% [markdown]
# One row of dots for each signal; the bar is their mean. The verdicts are computed from
# this run: one teacher and one set of sentences, so the dots show the luck of a *student* only. (In
# section 6 each seed has a teacher and sentences of its own, and fewer verdicts are sure.)
#
# A temperature has no best value in general: it depends on how sure the teacher is, on
# the learning rate, on the number of steps, and on how much a student of this size can copy.

# %% [markdown]
# ### Sentences without labels
#
# The teacher can label *any* French sentence. So give the student more of them, without gold
# labels, and **the same number of steps**: with more sentences each is simply seen less often.
# (Were the steps to grow with the set, one could not tell data from training time.)
#
# Predict: which helps more, going from labels to opinions, or going from 100 to 1,600 sentences?

# %% tags=["experiment"]
from attention_course.plots import spread

pool = task.sets["unlabelled"]
pool_opinions = logits_of(teacher, pool.words)
amounts, transfer = [100, 400, 1600], {}
for name, make in (
    ("teacher's labels", lambda some, words: from_labels(hard_labels(some, words))),
    ("opinions, T = 2", lambda some, words: from_logits(some, 2.0)),
):
    transfer[name] = np.array(
        [
            [
                student_accuracy(make(pool_opinions[:n], pool.words[:n]), pool.words[:n], seed)[0]
                for n in amounts
            ]
            for seed in range(3)
        ]
    )

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, runs in transfer.items():
    spread(ax, amounts, 100 * runs, name)
ax.axhline(100 * same_inputs["gold"].mean(), color="0.4", ls=":", label="100 gold sentences")
ax.axhline(100 * accuracy(teacher, test), color="0.4", ls="--", label="the teacher")
ax.set(xscale="log", xlabel="sentences without labels", ylabel="% of test words right")
ax.set_xticks(amounts, [str(n) for n in amounts])
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
labels_alone, soft = transfer["teacher's labels"], transfer["opinions, T = 2"]
verdict("More unlabelled sentences help", soft[:, 0], soft[:, -1])
verdict("Opinions beat labels on 1,600 sentences", labels_alone[:, -1], soft[:, -1])
more, softer = (soft[:, -1] - soft[:, 0]).mean(), (soft[:, 0] - labels_alone[:, 0]).mean()
print(f"100 → 1,600 sentences: {more:+.1%}; labels → opinions on 100: {softer:+.1%}.")

# %% [markdown]
# Two curves over the number of sentences, labels and opinions, between the level of 100 gold
# sentences (dotted) and that of the teacher (dashed). Keep in mind whose work this is: the teacher
# saw 1,000 gold sentences, and it hands on what it learned from them.
#
# If opinions lie *below* labels in your run, too: a soft target moves a student more slowly than a
# clear one, and 120 steps are few. Whether time closes that gap is asked in section 6, with four
# times as many steps. What surely helps here is the sentences.

# %% [markdown]
# ## 4 Inside
#
# So far the student saw what the teacher *says*. Now it looks inside: at vectors, and at where
# layers look. Two questions come up. Which student layer learns from which teacher layer? And what
# if the widths differ?

# %% [markdown]
# ### Exercise 5: the last states, by direction
# *12 minutes, medium, 3 points*
#
# 1. If `projection` is a matrix (student width, teacher width), the **student's** states are
#    multiplied by it: `student_states @ projection`. If it is None, the widths are equal.
# 2. A token's loss is 1 − cos, where cos is the cosine of the angle between the two vectors.
# 3. The result is the mean over real tokens. No vector of a real token is zero.
# 4. The teacher gets no gradient.
#
# Example: a student whose states are 10 times the teacher's has the loss 0.


# %% nbgrader={"grade_id": "cosine_loss", "solution": true}
def cosine_loss(student_states, teacher_states, projection, real):
    """Mean of one minus the cosine between student's and teacher's states.

    student_states: (batch, length, student width). teacher_states: (batch, length, teacher width).
    projection: (student width, teacher width) or None. real: bool (batch, length).
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    if projection is not None:
        student_states = student_states @ projection
    cosines = F.cosine_similarity(student_states, teacher_states.detach(), dim=-1)
    return 1 - cosines[real].mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-cosine_loss", "grade": true, "points": 3}
check("cosine_loss", cosine_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Divide both vectors by their length; the cosine is then a dot product.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Project if there is a projection → cosine along the last axis → real tokens → one minus the mean.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Some functions take the cosine along axis 1 unless told otherwise; here that is the length.
# </details>

# %% [markdown]
# ### Which layer learns from which?
#
# Below, a student of two layers and the teacher of three, with the attention of both for one
# sentence. Choose cells of the matrix: a cell says that this student layer matches that teacher
# layer. Then look at the two attention maps side by side.
#
# Predict: this student was trained on opinions only. Does its attention look like the teacher's
# anyway, and in which pair of layers most?

# %% tags=["experiment"]
from attention_course.distillation import attention_of

two_layers = make_model(7, 32, 2)
fit(two_layers, pool.words, from_logits(pool_opinions, 2.0), steps=STEPS, seed=7, rate=1e-2)
numbers = test.words[row, : len(sentence)]
looks = [attention_of(model, numbers).mean(dim=1) for model in (two_layers, teacher)]

# %% tags=["experiment"]
from attention_course.explorers import layer_map

layer_map(*looks, sentence)

# %% [markdown]
# A cell's number is 0 if both look at the same places. Nothing asked the student for that: many
# ways of looking can lead to the same answers. Whether it *should* look where the teacher looks is
# another question. The next two losses can make it.

# %% [markdown]
# ### Exercise 6: hidden states, by a layer map
# *14 minutes, medium, 3 points*
#
# 1. The first axis of the states counts what was computed: index 0 is the embedding's output,
#    index 1 the first layer's, and so on.
# 2. `layer_map` is a list of pairs (student's index, teacher's index) into these axes, in any
#    order.
# 3. The student's states are multiplied by `projection` (student width, teacher width), one matrix
#    for all pairs.
# 4. A pair's loss is the mean over real tokens *and* features of the squared difference. The result
#    is the mean over pairs.
# 5. The teacher gets no gradient.
#
# Example: `[(1, 2), (2, 4)]` lets a student of two layers learn from every second layer of a
# teacher of four.


# %% nbgrader={"grade_id": "hidden_loss", "solution": true}
def hidden_loss(student_states, teacher_states, layer_map, projection, real):
    """Mean squared error of projected hidden states over the pairs of a layer map.

    student_states: (student layers + 1, batch, length, student width).
    teacher_states: (teacher layers + 1, batch, length, teacher width).
    layer_map: list of (student's index, teacher's index). projection: (student width, teacher
    width). real: bool (batch, length). Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    losses = [
        F.mse_loss((student_states[ours] @ projection)[real], teacher_states[theirs][real].detach())
        for ours, theirs in layer_map
    ]
    return torch.stack(losses).mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-hidden_loss", "grade": true, "points": 3}
check("hidden_loss", hidden_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One number for each pair, then their mean.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For a pair: project the student's states, keep real tokens of both, mean of squared differences.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The map's numbers are indices as they are: do not add or subtract 1 for the embedding.
# </details>

# %% [markdown]
# ### Exercise 7: attention weights, by a layer map
# *18 minutes, hard, 3 points*
#
# 1. The weights are those *after* the softmax: rows over keys that sum to 1. Index 0 of the first
#    axis is the first layer (an embedding has no attention). Both models have the same heads.
# 2. For each pair, head and **real query**, the loss is $\sum_k t_k \, (\log t_k - \log s_k)$: t
#    the teacher's row, s the student's.
# 3. A key with $t_k = 0$ adds 0, also where $s_k = 0$. (Where $t_k > 0$, $s_k$ is positive.) Values
#    **and gradients** are finite.
# 4. The result is the mean over pairs, heads and real queries. Queries that are not real are left
#    out.
# 5. The teacher gets no gradient.
#
# Example: $t = (1, 0)$, $s = (½, ½)$ gives log 2.


# %% nbgrader={"grade_id": "attention_loss", "solution": true}
def attention_loss(student_weights, teacher_weights, layer_map, real):
    """Mean divergence of attention rows over the pairs of a layer map.

    student_weights, teacher_weights: (layers, batch, heads, queries, keys).
    layer_map: list of (student's index, teacher's index). real: bool (batch, queries).
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    losses = []
    for ours, theirs in layer_map:
        teacher = teacher_weights[theirs].detach()
        unused = teacher == 0
        logs = [
            weights.masked_fill(unused, 1.0).log() for weights in (teacher, student_weights[ours])
        ]
        rows = (teacher * (logs[0] - logs[1])).sum(dim=-1)
        losses.append(rows.transpose(1, 2)[real].mean())
    return torch.stack(losses).mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-attention_loss", "grade": true, "points": 3}
check("attention_loss", attention_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A row of attention is a distribution over keys, as a token's softmax is one over classes.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Make unused keys harmless → logarithms → sum over keys → keep real queries → means.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `torch.where(used, t * s.log(), 0)` has the right value and the gradient NaN: the logarithm of 0
# was computed, and its infinite slope times 0 comes back. Replace the zeros *before* the logarithm.
# </details>

# %% [markdown]
# ## 5 DistilBERT
#
# Sanh et al. (2019) halve BERT's depth and keep its width. Two ideas: begin with the teacher's own
# weights, and add up three losses. They report 97 % of BERT's score on GLUE (a collection of tasks
# on sentences) with 40 % fewer parameters and 60 % more speed (their Sections 1 and 4). We can
# rebuild the recipe, not the scale.

# %% [markdown]
# ### Exercise 8: every second layer
# *12 minutes, medium, 2 points*
#
# `student` and `teacher` are modules with `embedding`, `layers` (a `ModuleList`) and `head`, of the
# same widths.
#
# 1. The student's layer i gets all weights of the teacher's layer 2i (counted from 0). The teacher
#    has twice as many layers, or one fewer than that.
# 2. The student's `embedding` and `head` get the teacher's weights.
# 3. Numbers are copied: later training of the student must not change the teacher. All the
#    student's parameters stay trainable.
# 4. What is returned does not matter.
#
# Example: a student of two layers gets layers 0 and 2 of a teacher of four, and also of a teacher
# of three.


# %% nbgrader={"grade_id": "initialise_from_teacher", "solution": true}
def initialise_from_teacher(student, teacher):
    """Fill the student with every second layer of the teacher, its embedding and its head."""
    ### BEGIN SOLUTION
    student.embedding.load_state_dict(teacher.embedding.state_dict())
    student.head.load_state_dict(teacher.head.state_dict())
    for ours, theirs in zip(student.layers, teacher.layers[::2], strict=True):
        ours.load_state_dict(theirs.state_dict())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-initialise_from_teacher", "grade": true, "points": 2}
check("initialise_from_teacher", initialise_from_teacher)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A module gives its weights as a dict and takes a dict: `state_dict`, `load_state_dict`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Embedding, head, then a loop over the student's layers beside every second one of the teacher's.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `student.head = teacher.head` shares the parameters. `load_state_dict` copies.
# </details>

# %% [markdown]
# ### Exercise 9: three losses together
# *18 minutes, medium, 3 points*
#
# `shares` holds three numbers for, in this order:
#
# 1. **soft**: as exercise 3, with `temperature` and T², mean over real tokens;
# 2. **gold**: as exercise 1, no temperature, mean over places whose label is not −100 (there is at
#    least one; not every real token has a label: in masked language modelling only the hidden ones
#    do);
# 3. **cosine**: as exercise 5, without projection, mean over real tokens.
#
# The result is the sum of share times loss, not divided by anything. The teacher gets no gradient.
#
# Example: with the shares (0, 1, 0) the result is `gold_loss(student_logits, labels)`.


# %% nbgrader={"grade_id": "triple_loss", "solution": true}
def triple_loss(
    student_logits,
    teacher_logits,
    student_states,
    teacher_states,
    labels,
    real,
    temperature,
    shares,
):
    """Soft targets, gold labels and cosines of states, each with its share.

    student_logits, teacher_logits: (batch, length, classes).
    student_states, teacher_states: (batch, length, d_model). labels: int64 (batch, length).
    real: bool (batch, length). temperature: number > 0. shares: three numbers.
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    student = (student_logits[real] / temperature).log_softmax(dim=-1)
    teacher = (teacher_logits[real].detach() / temperature).log_softmax(dim=-1)
    soft = temperature**2 * (teacher.exp() * (teacher - student)).sum(dim=-1).mean()
    gold = F.cross_entropy(student_logits.mT, labels)
    cosines = F.cosine_similarity(student_states, teacher_states.detach(), dim=-1)
    return shares[0] * soft + shares[1] * gold + shares[2] * (1 - cosines[real].mean())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-triple_loss", "grade": true, "points": 3}
check("triple_loss", triple_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# You have written all three. Call them, or write them again; then one weighted sum.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Two of the means run over real tokens, the third over labelled places.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The order of the shares is soft, gold, cosine. The temperature belongs to the first only.
# </details>

# %% [markdown]
# ### A head start
#
# The teacher has three layers. A student of two layers **of the same width** can begin with its
# layers 0 and 2. Both students below get the same opinions on the same 1,600 sentences; only the
# start differs. We look after 15, 40 and 100 steps (three runs, each with its own falling rate).
#
# Predict: is the head start gone after 100 steps?

# %% tags=["experiment"]


def cut_out(seed):
    """A student of two layers with the weights of the teacher's layers 0 and 2."""
    student = make_model(seed, 64, 2)
    kept = {
        name.replace("layers.2.", "layers.1."): tensor
        for name, tensor in teacher.state_dict().items()
        if not name.startswith("layers.1.")
    }
    student.load_state_dict(kept)
    return student


starts = {"cut out of the teacher": cut_out, "random": lambda seed: make_model(seed, 64, 2)}
budgets, head_start, trained = [15, 40, 100], {}, {}
for name, begin in starts.items():
    head_start[name], trained[name] = np.zeros((3, len(budgets))), []
    for seed, place in np.ndindex(head_start[name].shape):
        student = begin(200 + seed)
        signal = from_logits(pool_opinions, 2.0)
        fit(student, pool.words, signal, steps=budgets[place], seed=seed, rate=6e-3)
        head_start[name][seed, place] = accuracy(student, test)
        if budgets[place] == budgets[-1]:
            trained[name].append(student)

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, runs in head_start.items():
    spread(ax, budgets, 100 * runs, name)
ax.axhline(100 * accuracy(teacher, test), color="0.4", ls="--", label="the teacher")
ax.set(xlabel="steps", ylabel="% of test words right")
ax.legend(fontsize=8)
plt.show()
cut, fresh = head_start["cut out of the teacher"], head_start["random"]
verdict("The teacher's weights help after 15 steps", fresh[:, 0], cut[:, 0])
verdict("The teacher's weights still help after 100 steps", fresh[:, -1], cut[:, -1])

# %% [markdown]
# Two curves over the number of steps, one for each start, and the teacher's level above. In the
# large, where a run costs days, the left end of such a picture is what one pays for.

# %% [markdown]
# ## 6 Measuring honestly
#
# "40 % smaller, 60 % faster" is easily said. Smaller in what: parameters, bytes in a file, memory?
# Faster on which machine, after how many tries?

# %% [markdown]
# ### Exercise 10: how large?
# *10 minutes, easy, 2 points*
#
# 1. `parameters`: how many numbers the model's parameters hold. A parameter that has several names
#    (tied embeddings) counts **once**. Frozen ones count, too.
# 2. `trainable`: the same, but only those with `requires_grad`.
# 3. `bytes`: of all parameters **and buffers** (tensors that are saved with a module but not
#    trained) together, each tensor once, each in its own number format (float16 takes 2 bytes, int8
#    takes 1).
# 4. Return the three whole numbers in this order.
#
# Example: a `nn.Linear(3, 2)` in float32 gives (8, 8, 32).


# %% nbgrader={"grade_id": "model_size", "solution": true}
def model_size(model):
    """Count parameters, trainable parameters, and bytes. model: nn.Module. Returns three ints."""
    ### BEGIN SOLUTION
    parameters = list(model.parameters())
    tensors = [*parameters, *model.buffers()]
    return (
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(t.numel() * t.element_size() for t in tensors),
    )
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-model_size", "grade": true, "points": 2}
check("model_size", model_size)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# `model.parameters()` and `model.buffers()` give every tensor once, whatever names it has.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `numel()` counts numbers, `element_size()` says how many bytes one takes.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `state_dict()` lists tied tensors once for each name.
# </details>

# %% [markdown]
# ### Exercise 11: a fair race
# *15 minutes, medium, 3 points*
#
# A machine gets hot, or somebody else starts a job: if all runs of one model come first, the other
# one pays. So the models take turns.
#
# 1. `runs` is a list of functions without arguments, one for each model. First each is called
#    `warm_up` times, untimed: all models once, in order, then all again, and so on.
# 2. Then come `repeats` rounds. In each round every model runs once, in the order of the list, and
#    each run is timed alone: `clock()` before it and after it.
# 3. Return a list of the medians, in seconds, one for each model. The median of an even number of
#    times is the mean of the two in the middle.
# 4. `clock` is the only clock; the check brings one of its own.
#
# Example: if one model takes 3, 1 and 2 seconds in three rounds, its entry is 2.


# %% nbgrader={"grade_id": "compare_latency", "solution": true}
def compare_latency(runs, clock, warm_up, repeats):
    """Median seconds of several models that take turns.

    runs: list of functions without arguments. clock: function that tells the time in seconds.
    warm_up, repeats: whole numbers. Returns a list of numbers, one for each of `runs`.
    """
    ### BEGIN SOLUTION
    for _ in range(warm_up):
        for run in runs:
            run()
    seconds = [[] for _ in runs]
    for _ in range(repeats):
        for run, series in zip(runs, seconds, strict=True):
            start = clock()
            run()
            series.append(clock() - start)
    return [float(np.median(series)) for series in seconds]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-compare_latency", "grade": true, "points": 3}
check("compare_latency", compare_latency)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Which loop is the outer one: rounds or models?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Warm up in rounds; one list of times for each model; rounds again; `np.median` of each list.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `torch.median` and `statistics.median_low` give the lower of the two in the middle.
# </details>

# %% [markdown]
# ### Exercise 12: does the student copy mistakes?
# *12 minutes, easy, 2 points*
#
# Two students may be equally good and still differ: one repeats what the teacher says, the other
# found out by itself.
#
# 1. Places with the label −100 do not count at all. At least one place has a label.
# 2. `agreement`: the share of labelled places where student and teacher give the same class, right
#    or wrong.
# 3. `copied`: of the labelled places where the **teacher is wrong**, the share where the student
#    gives the *same* wrong class. If the teacher is never wrong, 0.
# 4. Return both as numbers between 0 and 1.
#
# Example: labels [1, 1, 2], teacher [1, 3, 3], student [1, 3, 2] give (⅔, ½).


# %% nbgrader={"grade_id": "copied_errors", "solution": true}
def copied_errors(student, teacher, labels):
    """How often student and teacher agree, and how many of the teacher's mistakes are copied.

    student, teacher: int64 (batch, length), chosen classes. labels: int64 (batch, length).
    Returns (agreement, copied).
    """
    ### BEGIN SOLUTION
    labelled = labels != -100
    same = student == teacher
    mistakes = labelled & (teacher != labels)
    agreement = same[labelled].double().mean()
    return agreement, (same & mistakes).sum() / mistakes.sum().clamp(min=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-copied_errors", "grade": true, "points": 2}
check("copied_errors", copied_errors)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two shares with different denominators: labelled places, and mistakes of the teacher.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Three masks: labelled, same, mistakes. Count with `.sum()`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The teacher "differs from −100" everywhere: take unlabelled places out of its mistakes.
# </details>

# %% [markdown]
# Now on our models. For comparison an *outsider*: a student that never met the teacher and learned
# from gold labels of the very same 1,000 sentences as the teacher did. It makes mistakes of its
# own. Predict: of the teacher's mistakes, which share does a student copy that learned from its
# opinions? And the outsider, by chance or because the words are hard?

# %% tags=["experiment"]


def habits(student):
    """(share right, share of agreement with the teacher, share of its mistakes repeated)."""
    mine, theirs = (logits_of(model, test.words).argmax(-1) for model in (student, teacher))
    labelled, same = test.labels >= 0, mine == theirs
    wrong = labelled & (theirs != test.labels)
    shares = (mine == test.labels)[labelled], same[labelled], same[wrong]
    return [float(share.double().mean()) for share in shares]


groups = {"opinions": [], "outsider": []}
for seed in range(3):
    signal = from_logits(pool_opinions, 2.0)
    groups["opinions"].append(habits(student_accuracy(signal, pool.words, seed)[1]))
    signal = from_labels(lessons.labels)
    groups["outsider"].append(habits(student_accuracy(signal, lessons.words, seed)[1]))
names = ("right", "agree with the teacher", "repeat its mistakes")
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for shift, (group, rows_of_seeds) in zip((-0.15, 0.15), groups.items(), strict=True):
    table = 100 * np.array(rows_of_seeds)
    ax.bar(np.arange(3) + shift, table.mean(axis=0), width=0.28, alpha=0.5, label=group)
    for run in table:
        ax.plot(np.arange(3) + shift, run, "o", color="0.2", ms=3)
ax.set_xticks(range(3), names)
ax.set(ylabel="%", ylim=(0, 102))
ax.legend(fontsize=8)
plt.show()
copies = {group: np.array(table)[:, 2] for group, table in groups.items()}
mistakes = int(
    ((logits_of(teacher, test.words).argmax(-1) != test.labels) & (test.labels >= 0)).sum()
)
print(f"The teacher is wrong on {mistakes} test words.")
for group, shares in copies.items():
    print(f"{group:<9} repeats {shares.mean():.1%} ± {shares.std(ddof=1):.1%} of its mistakes")
verdict("Opinions make a student repeat mistakes", copies["outsider"], copies["opinions"])

# %% [markdown]
# Three pairs of bars, dots for seeds: how much is right, how often student and teacher agree, and
# how many of the teacher's mistakes are repeated. Repeating is not always copying: where the words
# do not decide, everybody errs, and in the same way. The outsider's bar shows how much of that
# there is, and it learned from the teacher's own sentences. "A longer look" below asks once more,
# with several teachers, of students on the same sentences, which no teacher was trained on.

# %% [markdown]
# ### Exercise 13: eight bits
# *18 minutes, medium, 3 points*
#
# Instead of a smaller model, one can take smaller *numbers*: 8-bit integers need a quarter of the
# bytes of float32, and processors multiply many of them at once. **Dynamic quantisation** rounds
# the weights once, and the inputs anew in each call. A linear layer then works like this:
#
# 1. Each row of `weight` has a scale: its largest absolute value / 127. The row divided by its
#    scale, each number rounded to the nearest whole one, gives integers from −127 to 127.
# 2. Each vector of `x` (along the last axis) becomes integers in the same way, with a scale of its
#    own.
# 3. The result is the product of the integers, times both scales, plus `bias`. The bias is not
#    rounded.
# 4. A vector of zeros gives the bias. (No row of `weight` is all zeros.)
#
# Whether you keep the integers as `torch.int8` or as whole numbers in float64 does not matter.
#
# Example: $x = (1, ¼)$ becomes (127, 32), and one row of weights (1, ¾) becomes (127, 95). The
# result without bias is (127 · 127 + 32 · 95) / 127² ≈ 1.1885; exact would be 1.1875.


# %% nbgrader={"grade_id": "int8_linear", "solution": true}
def int8_linear(x, weight, bias):
    """A linear layer whose numbers are multiplied as 8-bit integers.

    x: (..., inputs). weight: (outputs, inputs). bias: (outputs,). Returns (..., outputs).
    """
    ### BEGIN SOLUTION

    def rounded(rows):
        largest = rows.abs().amax(dim=-1, keepdim=True)
        scales = torch.where(largest > 0, largest, 1) / 127
        return (rows / scales).round().to(torch.int8), scales

    numbers, x_scales = rounded(x)
    integers, weight_scales = rounded(weight)
    return numbers.int() @ integers.int().T * x_scales * weight_scales[:, 0] + bias
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-int8_linear", "grade": true, "points": 3}
check("int8_linear", int8_linear)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Rows of weights and vectors of x are rounded in the same way: write one function for both.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Largest absolute value along the last axis → scale → divide and round → product with the
# transposed weights → times a scale for each vector and a scale for each output → bias.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# 127 · 127 does not fit into 8 bits: widen before you multiply. And 0 / 0 is not a number.
# </details>

# %% [markdown]
# ### Size against speed
#
# Now everything at once: the teacher, students of one and two layers, and a rival that needs no
# training at all: the teacher **in 8 bits**, its products computed by PyTorch's integer code for
# this processor. (That rounds much as exercise 13 does, but with one scale for a whole batch of
# inputs. Embeddings, norms and the softmax keep 32 bits.)
#
# Predict: how many per cent of words does the rounding cost? Is the rounded model faster?

# %% tags=["experiment"]
import time

from attention_course.distillation import bytes_on_disk, in_8_bits

cut_student = trained["cut out of the teacher"][0]
one_layer = student_accuracy(from_logits(pool_opinions, 2.0), pool.words, 0)[1]
rivals = {
    "teacher": teacher,
    "teacher, 8 bits": in_8_bits(teacher),
    "2 layers, cut out": cut_student,
    "2 layers, cut out, 8 bits": in_8_bits(cut_student),
    "2 layers, narrow": two_layers,
    "1 layer, narrow": one_layer,
}
batch = test.words[:32]
series = {name: [] for name in rivals}
with torch.no_grad():
    for round_number in range(35):
        for name, model in rivals.items():
            start = time.process_time()  # leaves out what others do on this machine
            model(batch)
            if round_number >= 5:  # the first rounds warm up
                series[name].append(time.process_time() - start)


def numbers_kept(model):
    """How many numbers a file with the model's weights holds."""
    return sum(tensor.numel() for tensor in model.state_dict().values())


table = {
    name: (
        numbers_kept(model),
        bytes_on_disk(model),
        np.median(series[name]),
        accuracy(model, test),
    )
    for name, model in rivals.items()
}
print(f"{'':<27}{'numbers':>9}{'kB on disk':>12}{'ms a batch':>12}{'right':>8}")
for name, (numbers, size, seconds, share) in table.items():
    print(f"{name:<27}{numbers:>9,}{size / 1000:>12.0f}{1000 * seconds:>12.2f}{share:>8.1%}")

# %% tags=["experiment"]


def draw_costs(ax, costs, shares, label, scale="linear"):
    """A point for each model: its share of right answers over what it costs."""
    for marker, (name, cost) in zip("oXsPDv^", costs.items(), strict=False):
        ax.plot(cost, 100 * shares[name], marker, label=name)
    ax.set(xlabel=label, xscale=scale)
    if scale == "linear":
        ax.set_xlim(left=0)


shares = {name: row_of[3] for name, row_of in table.items()}
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
draw_costs(axes[0], {name: row_of[1] / 1e3 for name, row_of in table.items()}, shares, "kB on disk")
draw_costs(axes[1], {name: row_of[2] * 1e3 for name, row_of in table.items()}, shares, "ms a batch")
axes[0].set_ylabel("% of test words right")
axes[1].legend(fontsize=7, loc="lower right")
plt.show()
whole, part = table["teacher"], table["2 layers, cut out"]
print(
    f"The two-layer student keeps {part[3] / whole[3]:.1%} of the teacher's accuracy with "
    f"{1 - part[0] / whole[0]:.0%} fewer parameters; it takes {part[2] / whole[2]:.0%} of the time."
)
for name in ("teacher", "2 layers, cut out"):
    full, eight = table[name], table[f"{name}, 8 bits"]
    print(
        f"{name}: 8 bits cost {full[3] - eight[3]:.2%} of the words, save "
        f"{1 - eight[1] / full[1]:.0%} of the bytes and take {eight[2] / full[2]:.0%} of the time."
    )

# %% [markdown]
# Two clouds of the same six models: accuracy against bytes on disk, and against time. Times are of
# *this* machine, in this minute, with 32 short sentences at once; they are medians of thirty rounds
# in turns. One seed of each student: read the picture for its order of magnitude. A small model has
# costs that do not shrink with its numbers: starting each operation, and rounding its inputs. So
# half the layers is not quite half the time, and whether 8 bits are faster depends on the width,
# the processor, and what PyTorch has for it. A model six times as wide comes below.

# %% [markdown]
# ### A longer look
#
# More signals than a notebook can train were recorded once, by `experiments/distillation_ladder.py`
# in the course's repository. There each seed has sentences, a teacher and students of its own;
# students have the teacher's width, and all make 100 steps where nothing else is said. *Gold* on
# the 1,600 sentences means true labels that one would not have in practice: a ceiling for signals,
# though not for a better start.
#
# Predict: on which inputs do the signals differ more?

# %% tags=["experiment"]
from attention_course.data.distillation_records import read_runs

runs = read_runs()


def in_words(shares):
    """Mean and spread of some seeds, as per cent."""
    return f"{shares.mean():.1%} ± {shares.std(ddof=1):.1%}"


def matching(of_runs, **fixed):
    """The recorded runs with these settings, by seed."""
    found = [run for run in of_runs if all(run[name] == value for name, value in fixed.items())]
    return sorted(found, key=lambda run: run["seed"])


def recorded(steps=100, **fixed):
    """Accuracy of the recorded runs with these settings, one for each seed."""
    return np.array([run["accuracy"] for run in matching(runs, steps=steps, **fixed)])


order = ("gold", "hard", "soft", "soft + hidden", "soft, cut out")
fig, axes = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained", sharey=True)
for ax, inputs in zip(axes, ("labelled", "transfer"), strict=True):
    found = {
        signal: recorded(
            inputs=inputs, signal=signal, layers=2, temperature=2.0 if "soft" in signal else None
        )
        for signal in order
    }
    draw_dots(ax, found, {"labelled": "100 sentences", "transfer": "1,600 others"}[inputs])
    for claim, low, high in (
        ("The teacher's labels beat gold", "gold", "hard"),
        ("Opinions beat the teacher's labels", "hard", "soft"),
        ("Hidden states help, too", "soft", "soft + hidden"),
        ("The teacher's weights help, too", "soft", "soft, cut out"),
    ):
        verdict(f"{claim} ({inputs})", found[low], found[high])
plt.show()
others = {"inputs": "transfer", "layers": 2}
slow = [
    recorded(steps=400, signal=signal, temperature=temperature, **others)
    for signal, temperature in (("hard", None), ("soft", 2.0))
]
verdict("Opinions beat the teacher's labels (transfer, 400 steps)", *slow)
copied = [
    np.array([run["copied"] for run in matching(runs, signal=signal, steps=100, **others)])
    for signal in ("gold", "hard")
]
verdict("The teacher's labels make a student repeat its mistakes (transfer)", *copied)
few_cut = recorded(inputs="labelled", signal="soft, cut out")
all_gold = recorded(signal="gold", **others)
verdict("Cut out and 100 sentences beat 1,600 gold ones", all_gold, few_cut)
taught = recorded(steps=250, signal="teacher")
print(f"the teachers: {in_words(taught)}; all students here have two layers.")

# %% tags=["experiment"]
from attention_course.claims import report

MOST = 0.95  # the share of a teacher's score that we call "most of it"
teachers = matching(runs, signal="teacher")
students = matching(runs, signal="soft, cut out", inputs="transfer")
kept = np.array([s["accuracy"] / t["accuracy"] for s, t in zip(students, teachers, strict=True)])
fewer = 1 - students[0]["parameters"] / teachers[0]["parameters"]
report(
    "C15",
    kept.min() >= MOST,
    f"words in sentences: {in_words(kept)} of the teacher's accuracy with {fewer:.0%} fewer "
    f"parameters (two of its three layers, opinions); {len(kept)} seeds, each with a teacher",
    recorded_seconds=sum(run["seconds"] for run in [*teachers, *students]),
)

# %% tags=["experiment"]
temperatures = [0.5, 1.0, 2.0, 4.0, 8.0]
fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for inputs, label in (("labelled", "100 sentences"), ("transfer", "1,600 others")):
    swept = np.array(
        [recorded(inputs=inputs, signal="soft", layers=1, temperature=t) for t in temperatures]
    ).T
    spread(axes[0], temperatures, 100 * swept, label)
    best = temperatures[int(swept.mean(axis=0).argmax())]
    print(f"{label}: best on average is T = {best:g}")
    deeper = [recorded(inputs=inputs, signal="soft", temperature=2.0, layers=n) for n in (1, 2, 3)]
    spread(axes[1], (1, 2, 3), 100 * np.array(deeper).T, label)
axes[0].set(xscale="log", xlabel="temperature", ylabel="% of test words right")
axes[0].set_xticks(temperatures, [f"{t:g}" for t in temperatures])
axes[0].minorticks_off()
axes[1].set(xlabel="layers of the student (T = 2)", xticks=(1, 2, 3))
axes[1].axhline(100 * taught.mean(), color="0.4", ls="--", label="the teachers")
axes[1].legend(fontsize=7)
plt.show()

# %% [markdown]
# First figure: five signals on the 100 labelled sentences and on 1,600 others, a dot for each seed.
# Second: accuracy over the temperature for students of one layer, and over the number
# of layers. "NOT settled" is a result, too: the seeds disagree. On the 100 sentences the teacher's
# labels are nearly the gold ones, since it has seen many like them; a difference there has to come
# from its probabilities.
#
# So the order of the ladder is not an order of merit. A start from the teacher's own weights is
# worth most here: with it, 100 sentences do more than 1,600 with true labels and a random start. It
# hands on what the teacher learned from *its* sentences, and needs a student of the same width.
# Opinions help where sentences are few. Where there are many, a sharp target is learned faster; the
# line for 400 steps says what is left of that.

# %% [markdown]
# ### On real text
#
# Generated sentences have few words and no surprises. So the same on definitions from WordNet
# ("a congenital skin condition characterized by spots or bands of unpigmented skin"): which of ten
# kinds of thing is defined, a *person*, a *plant*, a *state*, …? The teacher is MiniLM (W. Wang et
# al., 2020), a BERT of six layers and width 384 that was itself a student of a larger one. It is
# frozen, with a linear head fitted to 1,000 labelled definitions. Two kinds of students:
#
# - *small* ones read whole words, have width 64 and start at random;
# - a *half* is cut out of the teacher: three of its six layers, its embeddings, its head.
#
# Up to 4,500 definitions come without labels. All small students make equally many steps, so do all
# halves. "Hidden" means here: the student's mean vectors, projected, should point where the
# teacher's do, by a layer map. `experiments/gloss_distillation.py` recorded these runs; to look at
# them you need no pre-trained weights.
#
# Predict: which is worth more to a small student, the teacher's probabilities or more definitions?

# %% tags=["experiment"]
from attention_course.data.distillation_records import read_gloss_runs

gloss_runs = read_gloss_runs()
LABELLED, EVERY = (pick({r["inputs"] for r in gloss_runs} - {None}) for pick in (min, max))


def on_glosses(column="accuracy", **fixed):
    """A column of the recorded runs on definitions with these settings, by seed."""
    return np.array([run[column] for run in matching(gloss_runs, **fixed)])


def small(signal, inputs, temperature=1.0):
    """Accuracy of small students of two layers."""
    softened = temperature if "soft" in signal else None
    return on_glosses(model="small", layers=2, signal=signal, inputs=inputs, temperature=softened)


gloss_teacher = on_glosses(model="teacher")
fig, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained", sharex=True)
for ax, inputs in zip(axes, (LABELLED, EVERY), strict=False):
    found = {name: small(name, inputs) for name in ("gold", "hard", "soft", "soft + hidden")}
    draw_dots(ax, found, f"small students, {inputs:,} definitions")
    for claim, low, high in (
        ("The teacher's labels beat gold", "gold", "hard"),
        ("Opinions beat the teacher's labels", "hard", "soft"),
        ("Its vectors help, too", "soft", "soft + hidden"),
    ):
        verdict(f"{claim} ({inputs:,})", found[low], found[high])
softer = {f"T = {t:g}": small("soft", EVERY, t) for t in (1.0, 2.0, 4.0)}
draw_dots(axes[2], softer, f"opinions, {EVERY:,} definitions")
verdict("T = 2 beats T = 1", *(softer[f"T = {t}"] for t in (1, 2)))
plt.show()
verdict(
    f"{EVERY:,} definitions without labels beat {LABELLED:,} with gold",
    small("gold", LABELLED),
    small("soft", EVERY),
)
print(f"the teachers: {in_words(gloss_teacher)}, {len(gloss_teacher)} seeds")

# %% tags=["experiment"]
amounts = sorted({run["inputs"] for run in gloss_runs} - {None})
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for name, signal in (("teacher's labels", "hard"), ("opinions, T = 1", "soft")):
    spread(ax, amounts, 100 * np.array([small(signal, n) for n in amounts]).T, name)
ax.axhline(100 * gloss_teacher.mean(), color="0.4", ls="--", label="the teacher")
ax.set(xlabel="definitions, at equal steps", ylabel="% of test definitions right", xticks=amounts)
ax.legend(fontsize=8)
plt.show()

# %% tags=["experiment"]
SOFT = {"signal": "soft", "inputs": EVERY, "temperature": 1.0}
models = {
    "teacher, 6 layers": {"model": "teacher"},
    "teacher, 8 bits": {"model": "teacher, 8 bits"},
    "half, 3 layers": {"model": "cut out", **SOFT},
    "half, 8 bits": {"model": "cut out, 8 bits", **SOFT},
    **{f"small, layers: {n}": {"model": "small", "layers": n, **SOFT} for n in (3, 2, 1)},
}
costs, relative = {"MB on disk": {}, "ms for 32 definitions": {}}, {}
print(f"{'':<19}{'MB':>7}{'ms':>14}{'right':>15}{'of the teacher':>16}")
for name, fixed in models.items():
    megabytes = on_glosses("bytes", **fixed) / 1e6
    milliseconds = on_glosses("milliseconds", **fixed)
    right = on_glosses(**fixed)
    relative[name] = right / gloss_teacher
    costs["MB on disk"][name], costs["ms for 32 definitions"][name] = (
        megabytes.mean(),
        np.median(milliseconds),
    )
    spread_of_times = f"{np.median(milliseconds):.1f} ± {milliseconds.std(ddof=1):.1f}"
    print(
        f"{name:<19}{megabytes.mean():>7.1f}{spread_of_times:>14}{in_words(right):>15}"
        f"{in_words(relative[name]):>16}"
    )
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
means = {name: on_glosses(**fixed).mean() for name, fixed in models.items()}
for ax, (label, some) in zip(axes, costs.items(), strict=True):
    draw_costs(ax, some, means, label, "log")
axes[0].set_ylabel("% of test definitions right")
axes[1].legend(fontsize=7, loc="lower right")
plt.show()

# %% tags=["experiment"]


def saved(column, name):
    """What a model saves of what the teacher needs, in per cent, over the seeds."""
    whole = on_glosses(column, **models["teacher, 6 layers"])
    return 1 - on_glosses(column, **models[name]) / whole


for name in ("half, 3 layers", "small, layers: 2"):
    speed = 1 / (1 - saved("milliseconds", name))
    report(
        "C15",
        relative[name].min() >= MOST,
        f"{name} on definitions: {in_words(relative[name])} of the teacher's accuracy with "
        f"{saved('parameters', name).mean():.0%} fewer parameters and "
        f"{saved('bytes', name).mean():.0%} fewer bytes, {speed.mean():.1f} ± "
        f"{speed.std(ddof=1):.1f} times as fast; {len(gloss_teacher)} seeds",
        recorded_seconds=on_glosses("seconds", **models[name]).sum(),
    )
print("DistilBERT's published line: 97 % of the score, 40 % fewer parameters, 1.6 times as fast.")
half_gold = on_glosses(model="cut out", signal="gold")
verdict("Opinions beat gold labels for a half", half_gold, on_glosses(**models["half, 3 layers"]))

# %% [markdown]
# First figure: small students on the labelled definitions and on all, and three temperatures; a dot
# for each seed. Second: the number of definitions at equal steps. Third: accuracy over bytes and
# over time, both on logarithmic axes; times are medians of what one thread computed, the models in
# turns, on the machine that the record's log names.
#
# How to read it (three seeds agree by mere chance in one case of four, and all models meet the same
# 1,500 test definitions: small gaps are hints):
#
# - For small students more definitions are the strongest lever again, and all of them are far below
#   the teacher: they never saw the text that it was pre-trained on, and most words are rare. More
#   layers do not help in so few steps.
# - The half is close to DistilBERT's line. But look at its last verdict: with gold labels on the
#   labelled definitions alone, it is no worse. What it keeps comes from the teacher's *weights*;
#   the opinions are not what makes it.
# - 8 bits cost no training and make this wide model faster (compare the narrow one above). They
#   save fewer bytes than one would think: more than half of this teacher's numbers are embeddings,
#   which stay in 32 bits.

# %% [markdown]
# ## 7 Other classrooms
#
# One teacher, one student, the teacher first: that is only the usual arrangement.

# %% [markdown]
# ### Exercise 14: several teachers
# *14 minutes, medium, 3 points*
#
# 1. `weights` (teachers,) are positive; divide them by their sum.
# 2. `space="probabilities"`: soften each teacher (softmax of its logits / T), **then** take the
#    weighted mean of the distributions.
# 3. `space="logits"`: take the weighted mean of the logits / T, then one softmax.
# 4. The result is a distribution over classes, shape `logits.shape[1:]`.
#
# They differ: two sure teachers that contradict each other give a 50:50 mean of probabilities; a
# mean of logits lets a class win that both find passable.
#
# Example: two teachers with equal weights and the probabilities (0.9, 0.1) and (0.5, 0.5) at T = 1
# give (0.7, 0.3) in probabilities and (0.75, 0.25) in logits.


# %% nbgrader={"grade_id": "teacher_average", "solution": true}
def teacher_average(logits, weights, temperature, space):
    """A weighted mean of several teachers' softened distributions.

    logits: (teachers, ..., classes). weights: (teachers,), positive. temperature: number > 0.
    space: "probabilities" or "logits". Returns (..., classes).
    """
    ### BEGIN SOLUTION
    scaled = logits / temperature
    values = scaled.softmax(dim=-1) if space == "probabilities" else scaled
    mean = torch.tensordot(weights / weights.sum(), values, dims=1)
    return mean if space == "probabilities" else mean.softmax(dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-teacher_average", "grade": true, "points": 3}
check("teacher_average", teacher_average)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The two spaces differ in one thing only: softmax before the mean, or after it.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Scale → (softmax) → weighted sum along axis 0 → (softmax).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `weights * logits` lines the teachers up with the *classes*. Give the weights axes of length 1, or
# use `tensordot`.
# </details>

# %% [markdown]
# ### Exercise 15: two learners teach each other
# *14 minutes, medium, 3 points*
#
# Nobody is the teacher: two fresh models see the same batch, and each also learns from the other
# (Y. Zhang et al., 2018, *Deep Mutual Learning*). For each of the two:
#
# 1. loss = mean over the batch of [cross-entropy with the label + `share` · KL(other ‖ own)], where
#    the **other's** probabilities weigh the logarithms. No temperature.
# 2. The cross-entropy is not multiplied by anything.
# 3. In its own loss, each model is a learner and the other a fixed teacher: **no gradient
#    crosses**.
# 4. Return a tensor (2,): the first model's loss, then the second's. Logits may be in the
#    hundreds.
#
# Example: two models with equal logits have the plain cross-entropies.


# %% nbgrader={"grade_id": "co_distillation_losses", "solution": true}
def co_distillation_losses(first_logits, second_logits, labels, share):
    """Losses of two models that learn from labels and from each other.

    first_logits, second_logits: (batch, classes). labels: int64 (batch,). share: number.
    Returns (2,).
    """
    ### BEGIN SOLUTION
    losses = []
    for own, other in ((first_logits, second_logits), (second_logits, first_logits)):
        ours, theirs = own.log_softmax(dim=-1), other.detach().log_softmax(dim=-1)
        gap = (theirs.exp() * (theirs - ours)).sum(dim=-1).mean()
        losses.append(F.nll_loss(ours, labels) + share * gap)
    return torch.stack(losses)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-co_distillation_losses", "grade": true, "points": 3}
check("co_distillation_losses", co_distillation_losses)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Write one loss for (own, other), and use it twice.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Log-softmax of both, the other's cut off; cross-entropy plus share times divergence; stack.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Cutting off *own* leaves a loss that looks right and teaches nobody.
# </details>

# %% [markdown]
# ### Exercise 16: deep layers teach shallow ones
# *16 minutes, medium, 3 points*
#
# One model with a classifier (an *exit*) after each layer, as in L. Zhang et al. (2019), *Be Your
# Own Teacher*. Afterwards one may stop at a shallow exit and save the rest.
#
# 1. **Gold**: the mean over *all* exits, the deepest too, of the batch's mean cross-entropy.
# 2. **Soft**: the mean over the exits *but the deepest* of T² · KL(deepest ‖ exit), both softened
#    by T, mean over the batch. The deepest is the teacher: it gets no gradient from this part.
# 3. result = gold + `share` · soft; gold is not multiplied by anything.
#
# Example: if all exits have the same logits, the result is their cross-entropy.


# %% nbgrader={"grade_id": "self_distillation_loss", "solution": true}
def self_distillation_loss(exits, labels, temperature, share):
    """Loss of a model with an exit after each layer.

    exits: (layers, batch, classes), the deepest last; two layers or more. labels: int64 (batch,).
    temperature: number > 0. share: number. Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    gold = torch.stack([F.cross_entropy(logits, labels) for logits in exits]).mean()
    teacher = (exits[-1].detach() / temperature).log_softmax(dim=-1)
    shallow = (exits[:-1] / temperature).log_softmax(dim=-1)
    gaps = (teacher.exp() * (teacher - shallow)).sum(dim=-1)
    return gold + share * temperature**2 * gaps.mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-self_distillation_loss", "grade": true, "points": 3}
check("self_distillation_loss", self_distillation_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The deepest exit is the teacher of the others and, for the labels, one learner among all.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `exits[-1]` has axes (batch, classes), `exits[:-1]` one more in front: they broadcast.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The two means run over different numbers of exits.
# </details>

# %% [markdown]
# ## 8 What if
#
# Two models give the same answers. Do they reach them in the same way? Look at *what would have
# happened*: run a sentence, but at some places put in the activations that another sentence had
# there. If a layer carried the number of the subject, say, the verb's translation now changes. A
# student that works like its teacher should change its mind where the teacher does. Z. Wu et al.
# (2022) add that to DistilBERT's losses.

# %% [markdown]
# ### Exercise 17: swapped activations
# *20 minutes, hard, 3 points*
#
# `model` maps (batch, length, width) to logits; `model.layers` is a list of its layers, each of
# which gives one tensor (batch, length, d_model). You know nothing else about it.
#
# 1. Run `source` and keep what layer number `layer` (from 0) puts out.
# 2. Run `base`. There, the output of that layer is replaced **at `places`** (a list of positions)
#    by what was kept; elsewhere it stays. Everything after the layer sees the mixture.
# 3. Return the logits of that second run.
# 4. Nothing is detached: gradients flow through both runs. Afterwards the model is as before: no
#    hook is left.
#
# Example: with all positions in `places`, the result equals `model(source)`; with none,
# `model(base)`.
#
# After `handle = module.register_forward_hook(hook)`, PyTorch calls `hook(module, inputs, output)`
# after each run of the module. What the hook returns, if not None, takes the place of the output.
# `handle.remove()` takes the hook away.


# %% nbgrader={"grade_id": "swap_layer", "solution": true}
def swap_layer(model, layer, base, source, places):
    """Run the model on `base` with a layer's output of `source` at some places.

    model: has `layers`. layer: int. base, source: (batch, length, width). places: list of ints.
    Returns logits (batch, length, classes).
    """
    ### BEGIN SOLUTION
    kept = []

    def keep(_, __, output):
        kept.append(output)

    def replace(_, __, output):
        output = output.clone()
        output[:, places] = kept[0][:, places]
        return output

    for hook, x in ((keep, source), (replace, base)):
        handle = model.layers[layer].register_forward_hook(hook)
        logits = model(x)
        handle.remove()
    return logits
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-swap_layer", "grade": true, "points": 3}
check("swap_layer", swap_layer)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two runs, each with a hook on the same layer: the first hook listens, the second one answers.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Listen: append the output to a list, return nothing. Answer: copy the output, overwrite some
# places, return the copy.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Positions are axis 1. Writing into the output itself may break the gradient: clone it first.
# </details>

# %% [markdown]
# ### Exercise 18: same surgery, same answer
# *16 minutes, medium, 3 points*
#
# `swap(model, layer, base, source)` does what exercise 17 asks, at fixed places. It is given.
#
# 1. For each pair (student's layer, teacher's layer) of `layer_map`: the same swap in both models,
#    each in its own layer.
# 2. The pair's loss is KL(teacher ‖ student) of the two results, no temperature, mean over all
#    tokens of the batch (there is no padding).
# 3. The result is the mean over pairs. The teacher gets no gradient.
#
# Example: for two copies of one model and the map `[(0, 0), (1, 1)]` the loss is 0.


# %% nbgrader={"grade_id": "counterfactual_loss", "solution": true}
def counterfactual_loss(student, teacher, swap, layer_map, base, source):
    """Mean divergence of student from teacher after the same swap in both.

    student, teacher: models. swap: function of (model, layer, base, source), gives logits.
    layer_map: list of (student's layer, teacher's layer). base, source: (batch, length, width).
    Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    losses = []
    for ours, theirs in layer_map:
        with torch.no_grad():
            aims = swap(teacher, theirs, base, source).log_softmax(dim=-1)
        found = swap(student, ours, base, source).log_softmax(dim=-1)
        losses.append((aims.exp() * (aims - found)).sum(dim=-1).mean())
    return torch.stack(losses).mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-counterfactual_loss", "grade": true, "points": 3}
check("counterfactual_loss", counterfactual_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Exercise 3 without temperature and padding, on the results of two surgeries.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For each pair: the teacher's swap without recording, the student's with; one divergence; mean.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Student first in a pair. And both have to be operated on: a swapped student should not be asked to
# agree with the teacher's plain run.
# </details>

# %% [markdown]
# ### Do our models agree after surgery?
#
# Sentences of eight words in pairs: at one place after another, the first layer's output for the
# second sentence goes into the run of the first one. Where that changes the teacher's words, does a
# student change to the same words? We ask the two kinds of students of section 5: of equal shape,
# trained on the same opinions, one cut out of the teacher, the other from a random start.
#
# Predict which of the two follows the teacher better *after surgery*.

# %% tags=["experiment"]
lengths = (test.words != 0).sum(1)
base_words, source_words = test.words[lengths == 8][:40, :8].chunk(2)


@torch.no_grad()
def answers_after_surgery(model, layer, place):
    """Classes chosen for the base sentences, a layer's states at a place coming from the source."""
    x, other = model.states(base_words)[layer + 1], model.states(source_words)[layer + 1]
    x = x.clone()
    x[:, place] = other[:, place]
    for later in model.layers[layer + 1 :]:
        x = later(x)
    return model.head(model.norm(x)).argmax(-1)


def follows(student, student_layer, teacher_layer):
    """Share of words that both give, among those where surgery changes the teacher's answer."""
    kept = []
    for place in range(8):
        plain = logits_of(teacher, base_words).argmax(-1)
        aims = answers_after_surgery(teacher, teacher_layer, place)
        found = answers_after_surgery(student, student_layer, place)
        kept.append((found == aims)[aims != plain])
    return float(torch.cat(kept).double().mean())


after = {
    name: np.array([follows(student, 0, 0) for student in some]) for name, some in trained.items()
}
plain_answers = logits_of(teacher, base_words).argmax(-1)
for name, shares in after.items():
    alike = np.array(
        [
            float((logits_of(student, base_words).argmax(-1) == plain_answers).double().mean())
            for student in trained[name]
        ]
    )
    print(
        f"{name:<23} follows the teacher in {in_words(shares)} after surgery,"
        f" in {in_words(alike)} of plain words"
    )
verdict(
    "Cut out of the teacher, it follows surgery better",
    after["random"],
    after["cut out of the teacher"],
)

# %% [markdown]
# Only words count here whose translation the surgery *changed* in the teacher. Both students were
# trained on plain answers alone. High agreement on plain sentences is no promise about agreement
# after surgery: that is why Wu et al. train for it.

# %% [markdown]
# ## 9 In words, and recap

# %% [markdown]
# ### In words: was it the teacher?
# *10 minutes, 2 points, marked by hand*
#
# A paper reports: "Our student reaches 74 % with the teacher's soft labels on 100,000 unlabelled
# sentences, trained for 50,000 steps; trained on the 1,000 gold sentences for 2,000 steps it
# reaches 65 %. So soft labels are better than gold labels." In three to six sentences: (a) Name two
# things that differ between the two runs, apart from soft against gold. (b) Which runs would you
# add to find out what the soft labels themselves are worth?

# %% [markdown] nbgrader={"grade_id": "whose-merit", "grade": true, "solution": true, "points": 2}
# (a) The inputs: 100,000 sentences against 1,000. The training time: 50,000 steps against 2,000.
# (Also: the teacher has seen its own labelled data, so the student profits from those indirectly;
# and there is one number for each, without a spread.)
#
# (b) On the *same* inputs with the *same* number of steps: gold, the teacher's hard labels, its
# soft labels, each with several seeds. On the 1,000 sentences all three can be run; on the 100,000
# hard against soft. Gold with 50,000 steps on the 1,000 sentences separates time from data.
#
# *Mark scheme.* 1 point for (a): number of sentences (½) and of steps (½); another real difference
# (seeds, learning rate, the teacher's data) may replace one. 1 point for (b): hard against soft on
# equal inputs (½), equal steps or several seeds (½). "More experiments" alone: 0.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | the soft loss depends on how full a batch is | padding counted, or divided by sentences |
# | it is smaller by exactly the number of classes | `F.kl_div` with its default mean |
# | a negative divergence | probabilities given where log-probabilities are wanted |
# | T changes the size of the gradient | T² forgotten |
# | targets are noisy | the teacher runs with dropout |
# | the teacher gets worse | its logits not cut off, or shared parameters |
# | NaN in the gradient, not in the loss | log 0 computed and masked afterwards |
# | a "faster" model that is not | timed second, on a machine already warm |
# | a model that behaves oddly later | a hook left behind |

# %% [markdown]
# ## Recap
#
# - A teacher can be matched in its labels, its probabilities, its vectors, its attention, and its
#   answers after surgery. Each rung says more and costs more.
# - Soft targets: same T on both sides, T², KL(teacher ‖ student), mean over real tokens.
# - A teacher is in evaluation mode *and* outside the graph.
# - DistilBERT = every second layer as a start + soft + gold + cosine.
# - On a small task, more unlabelled sentences are a strong lever; which of the finer signals helps
#   is for runs with several seeds to say, and some of ours do not settle it.
# - Count parameters once, time in turns, take medians, say which machine.
