"""Chapter 08: the loss of a language model, and perplexity over several batches."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- next_token_loss -----------------------------------------------------------------------------


def next_token_loss_cases(rng):
    """Full rows; padding of unequal length whose logits are poison; large logits."""
    s = draw_sizes(rng, "batch", "length", "vocabulary", among=(3, 4, 5, 6))
    s.length, s.batch = max(s.length, s.batch), min(s.length, s.batch)

    def case(group, about, scale=1.0, padded=False, padding=None):
        padding = int(rng.integers(1, s.vocabulary - 1)) if padding is None else padding
        padding %= s.vocabulary
        words = [token for token in range(s.vocabulary) if token != padding]
        tokens = rng.choice(words, size=(s.batch, s.length))
        logits = scale * rng.normal(size=(s.batch, s.length, s.vocabulary))
        if padded:
            lengths = np.maximum(draw_lengths(rng, s.batch, s.length), 2)
            lengths[lengths.argmin()] = 2  # at least two padded places, so one after another
            behind = np.arange(s.length) >= lengths[:, None]
            tokens[behind] = padding
            # Poison: wherever padding comes next, padding is what the model least expects.
            logits[:, :-1, padding][behind[:, 1:]] -= 30.0
        if scale > 100:
            logits[0, 0, tokens[0, 1]] -= 2000.0  # a probability of 0 in floating-point numbers
        inputs = {"logits": logits, "tokens": tokens.astype(np.int64), "padding": padding}
        return Case(group, inputs, about)

    yield case("shift", "no padding")
    yield case("shift", "no padding, sharper predictions", scale=3.0)
    yield case("padding", "rows of unequal length", padded=True)
    yield case(
        "padding", "the padding has the highest number", padded=True, padding=s.vocabulary - 1
    )
    yield case("large", "logits of some hundred", scale=400.0, padded=True)


def next_token_loss_reference(logits, tokens, padding):
    """One prediction at a time."""
    losses = [
        torch.logsumexp(logits[b, t], dim=0) - logits[b, t, tokens[b, t + 1]]
        for b in range(tokens.shape[0])
        for t in range(tokens.shape[1] - 1)
        if tokens[b, t + 1] != padding
    ]
    return torch.stack(losses).mean()


def _mean_loss(logits, targets, padding):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=padding)


def _losses(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def no_shift(logits, tokens, padding):
    """Asks each place for the token that stands there."""
    return _mean_loss(logits, tokens, padding)


def shifted_twice(logits, tokens, padding):
    """Asks for the token after the next one."""
    return _mean_loss(logits[:, :-2], tokens[:, 2:], padding)


def shifted_backwards(logits, tokens, padding):
    """Asks for the token before."""
    return _mean_loss(logits[:, 1:], tokens[:, :-1], padding)


def padding_counts(logits, tokens, padding):
    """Padding is to be predicted as well."""
    return _mean_loss(logits[:, :-1], tokens[:, 1:], -100)


def padding_is_zero(logits, tokens, padding):
    """Takes 0 for the padding."""
    return _mean_loss(logits[:, :-1], tokens[:, 1:], 0)


def padding_of_the_inputs(logits, tokens, padding):
    """Leaves out where padding is the input and not the target."""
    losses = _losses(logits[:, :-1], tokens[:, 1:])
    return losses[tokens[:, :-1] != padding].mean()


def mean_of_rows(logits, tokens, padding):
    """Averages each row, then the rows."""
    losses, real = _losses(logits[:, :-1], tokens[:, 1:]), tokens[:, 1:] != padding
    return ((losses * real).sum(dim=1) / real.sum(dim=1)).mean()


def divided_by_all_places(logits, tokens, padding):
    """Zeroes the losses of padding, but divides by all places."""
    losses, real = _losses(logits[:, :-1], tokens[:, 1:]), tokens[:, 1:] != padding
    return (losses * real).mean()


def sum_of_losses(logits, tokens, padding):
    """Sums instead of averaging."""
    targets = tokens[:, 1:].flatten()
    inputs = logits[:, :-1].flatten(0, 1)
    return F.cross_entropy(inputs, targets, ignore_index=padding, reduction="sum")


def softmax_before_the_loss(logits, tokens, padding):
    """Hands probabilities to a function that takes logits."""
    return _mean_loss(logits.softmax(dim=-1)[:, :-1], tokens[:, 1:], padding)


def logarithm_of_softmax(logits, tokens, padding):
    """log(softmax): the logarithm of a 0."""
    probabilities = logits.softmax(dim=-1)[:, :-1]
    picked = probabilities.gather(-1, tokens[:, 1:, None])[..., 0]
    return -picked.log()[tokens[:, 1:] != padding].mean()


def shift_over_row_ends(logits, tokens, padding):
    """Flattens first: the last place of a row predicts the first token of the next."""
    return F.cross_entropy(logits.flatten(0, 1)[:-1], tokens.flatten()[1:], ignore_index=padding)


def loss_by_gather(logits, tokens, padding):
    """Right: log-softmax, gather, mean over what is real."""
    logs = logits.log_softmax(dim=-1)[:, :-1]
    picked = logs.gather(2, tokens[:, 1:].unsqueeze(2)).squeeze(2)
    real = tokens[:, 1:] != padding
    return -(picked * real).sum() / real.sum()


def loss_with_ignored_targets(logits, tokens, padding):
    """Right: targets of −100."""
    targets = tokens.roll(-1, dims=1)
    targets[:, -1] = -100
    targets = targets.masked_fill(targets == padding, -100)
    return F.cross_entropy(logits.transpose(1, 2), targets)


def loss_of_picked_places(logits, tokens, padding):
    """Right: picks the places that count first."""
    real = tokens[:, 1:] != padding
    return F.nll_loss(F.log_softmax(logits[:, :-1][real], dim=-1), tokens[:, 1:][real])


NEXT_TOKEN_LOSS = Exercise(
    id="next_token_loss",
    title="Next-token loss",
    asks="Mean cross-entropy of every real next token.",
    parameters=("logits", "tokens", "padding"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "shift": Group(1, "which token each place predicts"),
        "padding": Group(2, "padding does not count"),
        "large": Group(1, "large logits"),
    },
    cases=next_token_loss_cases,
    reference=next_token_loss_reference,
    misconceptions=(
        Misconception(
            no_shift,
            "Each place is asked for the token that stands there, which it has just read.",
            "Place t has read tokens 0 to t: which one should it predict?",
        ),
        Misconception(
            shifted_twice,
            "Each place is asked for the token after the next one.",
            "How many predictions are there for a row of 5 tokens?",
        ),
        Misconception(
            shifted_backwards,
            "Each place is asked for the token before it.",
            "Which of the two loses its first entry, logits or tokens?",
        ),
        Misconception(
            padding_counts,
            "Predictions of padding count.",
            "What do padded rows add to the loss?",
        ),
        Misconception(
            padding_is_zero,
            "Token 0 is taken for padding; here it is a word.",
            "Which argument names the padding?",
        ),
        Misconception(
            padding_of_the_inputs,
            "Places are left out whose input is padding; it is the target that decides.",
            "What does the last real token of a row predict?",
        ),
        Misconception(
            mean_of_rows,
            "Each row is averaged first, so tokens of short rows weigh more.",
            "By how many tokens should the sum of all losses be divided?",
        ),
        Misconception(
            divided_by_all_places,
            "The sum is divided by the number of all places, padded ones too.",
            "Over how many predictions is the mean?",
        ),
        Misconception(
            sum_of_losses,
            "The losses are summed; a mean is asked for.",
            "Should a batch twice as large give twice the loss?",
        ),
        Misconception(
            softmax_before_the_loss,
            "`cross_entropy` takes logits and applies the softmax itself.",
            "How often is a softmax applied in your computation?",
        ),
        Misconception(
            logarithm_of_softmax,
            "The softmax of very unequal logits holds zeros, and log 0 is −∞.",
            "Which function gives the logarithm of a softmax in one step?",
        ),
        Misconception(
            shift_over_row_ends,
            "After flattening, the last place of a row predicts the next row's first token.",
            "Shift before you flatten.",
        ),
    ),
    accepted=(loss_by_gather, loss_with_ignored_targets, loss_of_picked_places),
)

# --- perplexity ----------------------------------------------------------------------------------


def perplexity_cases(rng):
    """Batches of unequal size; a batch without a token, whose mean is NaN; one batch."""
    for _ in range(2):
        counts = np.array([3, 11, 25, 60]) + rng.integers(0, 3, size=4)
        losses = rng.permutation([1.1, 1.9, 2.8, 3.6]) + rng.normal(scale=0.1, size=4)
        inputs = {"mean_losses": losses, "counts": rng.permutation(counts).astype(np.int64)}
        yield Case("batches", inputs, "four batches of unequal size")
    inputs = {
        "mean_losses": rng.uniform(1, 3, size=1),
        "counts": rng.integers(2, 9, size=1).astype(np.int64),
    }
    yield Case("batches", inputs, "one batch")
    losses = rng.uniform(1, 3, size=5)
    counts = rng.integers(2, 30, size=5).astype(np.int64)
    counts[[1, 4]], losses[[1, 4]] = 0, np.nan
    counts[2] = 1
    yield Case("empty", {"mean_losses": losses, "counts": counts}, "batches of padding only")


def perplexity_reference(mean_losses, counts):
    """As a geometric mean, in Python."""
    pairs = [(x, n) for x, n in zip(mean_losses.tolist(), counts.tolist(), strict=True) if n]
    total = sum(n for _, n in pairs)
    return math.prod(math.exp(x) ** (n / total) for x, n in pairs)


def _real(mean_losses, counts):
    return mean_losses[counts > 0], counts[counts > 0]


def mean_of_batches(mean_losses, counts):
    """Every batch weighs the same."""
    losses, _ = _real(mean_losses, counts)
    return losses.mean().exp()


def mean_of_perplexities(mean_losses, counts):
    """Averages exponentials, weighted by tokens."""
    losses, sizes = _real(mean_losses, counts)
    return (losses.exp() * sizes).sum() / sizes.sum()


def plain_mean_of_perplexities(mean_losses, counts):
    """Averages the perplexities of the batches."""
    losses, _ = _real(mean_losses, counts)
    return losses.exp().mean()


def no_exponential(mean_losses, counts):
    """Returns the loss."""
    losses, sizes = _real(mean_losses, counts)
    return (losses * sizes).sum() / sizes.sum()


def power_of_two(mean_losses, counts):
    """Takes 2 to the power of nats."""
    return 2 ** no_exponential(mean_losses, counts)


def exponential_of_the_sum(mean_losses, counts):
    """Never divides."""
    losses, sizes = _real(mean_losses, counts)
    return (losses * sizes).sum().exp()


def weights_upside_down(mean_losses, counts):
    """Divides by counts."""
    losses, sizes = _real(mean_losses, counts)
    return ((losses / sizes).sum() / (1 / sizes).sum()).exp()


def empty_batches_are_nan(mean_losses, counts):
    """0 · NaN is NaN."""
    return ((mean_losses * counts).sum() / counts.sum()).exp()


def empty_batches_count_in_the_mean(mean_losses, counts):
    """Divides by all batches' places: an empty batch counts as one token."""
    losses = mean_losses.nan_to_num()
    return ((losses * counts).sum() / counts.clamp(min=1).sum()).exp()


def perplexity_by_where(mean_losses, counts):
    """Right: zeros for empty batches."""
    sums = torch.where(counts > 0, mean_losses * counts, 0.0)
    return torch.exp(sums.sum() / counts.sum())


def perplexity_by_nansum(mean_losses, counts):
    """Right: nansum leaves NaN out; gives a Python number."""
    return math.exp(float((mean_losses * counts).nansum()) / int(counts.sum()))


def perplexity_in_a_loop(mean_losses, counts):
    """Right: adds up batch by batch."""
    total, tokens = 0.0, 0
    for loss, count in zip(mean_losses, counts, strict=True):
        if count == 0:
            continue
        total = total + loss * count
        tokens += count
    return (total / tokens).exp()


PERPLEXITY = Exercise(
    id="perplexity",
    title="Perplexity over several batches",
    asks="Combine the mean losses of batches of unequal size into one perplexity.",
    parameters=("mean_losses", "counts"),
    outputs=("perplexity",),
    driver="tensor_function",
    groups={
        "batches": Group(1, "batches of unequal size"),
        "empty": Group(1, "batches in which no token counts"),
    },
    cases=perplexity_cases,
    reference=perplexity_reference,
    misconceptions=(
        Misconception(
            mean_of_batches,
            "A batch of 3 tokens weighs as much as one of 60.",
            "How large is the sum of the losses of each batch?",
        ),
        Misconception(
            mean_of_perplexities,
            "Exponentials are averaged; perplexity is the exponential of an average.",
            "Which comes first, exp or the mean?",
        ),
        Misconception(
            plain_mean_of_perplexities,
            "The perplexities of the batches are averaged, large and small ones alike.",
            "Which comes first, exp or the mean? And how much does each batch weigh?",
        ),
        Misconception(
            no_exponential,
            "This is the mean loss.",
            "How many equally likely tokens would give this loss?",
        ),
        Misconception(
            power_of_two,
            "The losses are in nats: 2 is not the right base.",
            "Of which logarithm is a cross-entropy in PyTorch made?",
        ),
        Misconception(
            exponential_of_the_sum,
            "The sum of the losses is never divided.",
            "What should twice as many tokens of the same loss change?",
        ),
        Misconception(
            weights_upside_down,
            "Small batches weigh more than large ones.",
            "Does a mean times a count give a sum, or a mean over a count?",
        ),
        Misconception(
            empty_batches_are_nan,
            "A batch without a token has the mean NaN, and 0 · NaN is NaN.",
            "Leave such batches out before you multiply.",
        ),
        Misconception(
            empty_batches_count_in_the_mean,
            "A batch without a token counts as if it had one.",
            "How many tokens are there in all?",
        ),
    ),
    accepted=(perplexity_by_where, perplexity_by_nansum, perplexity_in_a_loop),
)
