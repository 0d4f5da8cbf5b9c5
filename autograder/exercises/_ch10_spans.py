"""Exercises of chapter 10 on training for answers: where they stand, and what a wrong one costs."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_padding

# --- answer_targets ------------------------------------------------------------------------------


def _draw_tokens(rng, count, tight):
    """Draw where tokens stand in a text; two of them touch after each place in `tight`."""
    offsets, place = [], 0
    for number in range(count):
        length = int(rng.integers(3, 7))
        offsets.append((place, place + length))
        place += length + (number not in tight)
    return offsets


def _draw_window(rng, low, high, tokens, question=4):
    """Draw an input: [CLS] question [SEP] passage tokens `low` to `high` [SEP] padding."""
    passage = _draw_tokens(rng, tokens, tight={low - 1, low + 2, low + 4, high - 2, high - 1})
    asked = _draw_tokens(rng, question, tight={question - 1})
    special = [(0, 0)]
    rows = special + asked + special + passage[low:high] + special * 3
    context = np.zeros(len(rows), dtype=bool)
    begin = question + 2
    context[begin : begin + high - low] = True
    return passage, np.array(rows, dtype=np.int64), context


def answer_targets_cases(rng):
    """Inside the window, also within tokens and at its ends; partly or wholly outside."""
    tokens, low, high = 12, 2, 10

    def case(group, first, last, about, start=0, end=None):
        """An answer from the character `start` of a token to the one before `end` of another."""
        passage, offsets, context = _draw_window(rng, low, high, tokens)
        begin = passage[first][start < 0] + start
        stop = passage[last][1] if end is None else passage[last][0] + end
        inputs = {"offsets": offsets, "context": context, "start": begin, "end": stop}
        return Case(group, inputs, about)

    yield case("inside", 3, 4, "an answer of whole tokens")
    yield case("inside", 4, 6, "an answer that begins and ends within tokens", start=-1, end=1)
    yield case("inside", 2, 3, "the answer stands at the window's start")
    yield case("inside", 8, 9, "the answer stands at the window's end")
    yield case("inside", 5, 5, "one token")
    yield case("inside", 7, 7, "a part of a token", start=1, end=2)
    yield case("outside", 1, 3, "the answer begins one character before the window", start=-1)
    yield case("outside", 8, 10, "the answer ends one character after the window", end=1)
    yield case("outside", 0, 1, "the answer stands before the window")
    yield case("outside", 10, 11, "the answer stands after the window")


def answer_targets_reference(offsets, context, start, end):
    """A table from each character to its token."""
    token_of = {}
    for token, (low, high) in enumerate(offsets.tolist()):
        if context[token]:
            token_of.update(dict.fromkeys(range(low, high), token))
    if start not in token_of or end - 1 not in token_of:
        return 0, 0
    return token_of[start], token_of[end - 1]


def _find(offsets, tokens, start, end):
    """(first, last) of `tokens` that the characters touch; (0, 0) if there is none."""
    touched = [t for t in tokens if offsets[t][0] < end and offsets[t][1] > start]
    return (int(touched[0]), int(touched[-1])) if touched else (0, 0)


def question_searched_too(offsets, context, start, end):
    """Does not look at `context`: the question's offsets start at 0, too."""
    return _find(offsets, range(len(offsets)), start, end)


def cut_at_the_window(offsets, context, start, end):
    """Keeps the part of the answer that lies inside."""
    return _find(offsets, np.flatnonzero(context), start, end)


def end_read_as_included(offsets, context, start, end):
    """Looks for the token that holds the character `end`."""
    begin, _ = answer_targets_reference(offsets, context, start, end)
    window = np.flatnonzero(context)
    return (begin, int(window[offsets[window, 0] <= end][-1])) if begin else (0, 0)


def last_token_excluded(offsets, context, start, end):
    """Gives one token after the answer."""
    begin, last = answer_targets_reference(offsets, context, start, end)
    return (begin, last + 1) if begin else (0, 0)


def counted_within_the_passage(offsets, context, start, end):
    """Counts tokens from the passage's first."""
    begin, last = answer_targets_reference(offsets, context, start, end)
    skipped = int(context.argmax())
    return (begin - skipped, last - skipped) if begin else (0, 0)


def only_whole_tokens(offsets, context, start, end):
    """Wants tokens that start and end where the answer does."""
    first = np.flatnonzero(context & (offsets[:, 0] == start))
    last = np.flatnonzero(context & (offsets[:, 1] == end))
    return (int(first[0]), int(last[0])) if len(first) and len(last) else (0, 0)


def each_end_by_itself(offsets, context, start, end):
    """Maps only the end that lies outside to [CLS]."""
    begin, _ = answer_targets_reference(offsets, context, start, start + 1)
    _, last = answer_targets_reference(offsets, context, end - 1, end)
    return begin, last


def marked_as_ignored(offsets, context, start, end):
    """Writes −100 for an answer outside."""
    begin, last = answer_targets_reference(offsets, context, start, end)
    return (begin, last) if begin else (-100, -100)


def by_touching(offsets, context, start, end):
    """Right: looks at the window's ends first."""
    window = np.flatnonzero(context)
    if start < offsets[window[0], 0] or end > offsets[window[-1], 1]:
        return 0, 0
    return _find(offsets, window, start, end)


def by_walking(offsets, context, start, end):
    """Right: two loops, as in many scripts."""
    first = int(np.argmax(context))
    last = len(context) - 1 - int(np.argmax(context[::-1]))
    if not offsets[first][0] <= start or not end <= offsets[last][1]:
        return 0, 0
    while first + 1 < len(offsets) and context[first + 1] and offsets[first + 1][0] <= start:
        first += 1
    while offsets[last][0] >= end:
        last -= 1
    return first, last


def by_holding(offsets, context, start, end):
    """Right: masks of the tokens that hold the first and the last character."""
    low, high = offsets.T
    places = [context & (low <= c) & (c < high) for c in (start, end - 1)]
    if not all(place.any() for place in places):
        return 0, 0
    return tuple(int(np.argmax(place)) for place in places)


ANSWER_TARGETS = Exercise(
    id="answer_targets",
    title="From characters to tokens",
    asks="Find the tokens in which an answer begins and ends; [CLS] if it is not all there.",
    parameters=("offsets", "context", "start", "end"),
    outputs=("first", "last"),
    groups={
        "inside": Group(2, "answers inside the window"),
        "outside": Group(1, "answers that are not, or not wholly, inside"),
    },
    cases=answer_targets_cases,
    reference=answer_targets_reference,
    misconceptions=(
        Misconception(
            question_searched_too,
            "Tokens of the question were taken: their offsets count from 0 in a text of their own.",
            "What does `context` say about the token that you found?",
        ),
        Misconception(
            cut_at_the_window,
            "An answer that is partly outside was cut; by the contract it maps to (0, 0).",
            "Is the whole answer in this window?",
        ),
        Misconception(
            end_read_as_included,
            "`end` is the first character *after* the answer.",
            "Which is the number of the answer's last character?",
        ),
        Misconception(
            last_token_excluded,
            "The second number is one token too far: `last` is the answer's own last token.",
            "Does the token that you name belong to the answer?",
        ),
        Misconception(
            counted_within_the_passage,
            "Tokens are counted from the passage's start; the model counts from [CLS].",
            "Which number does the first token of the passage have in the input?",
        ),
        Misconception(
            only_whole_tokens,
            "An answer that begins or ends within a token is not found.",
            "Which token *holds* the answer's first character?",
        ),
        Misconception(
            each_end_by_itself,
            "Only the end that is outside was mapped to 0; both have to be.",
            "What would the model learn from a start inside and an end at [CLS]?",
        ),
        Misconception(
            marked_as_ignored,
            "−100 would give no loss; the contract points to [CLS], place 0.",
            "Where should the model point when there is no answer?",
        ),
    ),
    accepted=(by_touching, by_walking, by_holding),
)

# --- span_loss -----------------------------------------------------------------------------------


def span_loss_cases(rng):
    """Unequal lengths; large numbers where no answer may lie; large scores."""
    for group, scale, poison, about in (
        ("values", 1.0, 1.0, "a batch"),
        ("values", 1.5, 9.0, "large scores where no answer may lie"),
        ("large", 900.0, 1.5, "scores in the hundreds"),
    ):
        s = draw_sizes(rng, "batch", "length", among=(3, 5, 6, 7))
        length = s.length + 4
        allowed = draw_padding(rng, s.batch, length)
        allowed[:, 1 : 1 + int(rng.integers(1, 3))] = False  # a question
        allowed[:, [0, 3, 4]] = True
        logits = scale * rng.normal(size=(2, s.batch, length))
        logits[:, ~allowed] *= poison
        ends = np.array(
            [sorted(rng.choice(np.flatnonzero(row), 2, replace=False)) for row in allowed]
        )
        inputs = {
            "start_logits": logits[0],
            "end_logits": logits[1],
            "starts": ends[:, 0].astype(np.int64),
            "ends": ends[:, 1].astype(np.int64),
            "allowed": allowed,
        }
        yield Case(group, inputs, about)


def span_loss_reference(start_logits, end_logits, starts, ends, allowed):
    """PyTorch's loss, twice."""
    losses = [
        F.cross_entropy(logits.masked_fill(~allowed, -torch.inf), targets)
        for logits, targets in ((start_logits, starts), (end_logits, ends))
    ]
    return sum(losses) / 2


def loss_not_halved(start_logits, end_logits, starts, ends, allowed):
    """Adds the two losses."""
    return 2 * span_loss_reference(start_logits, end_logits, starts, ends, allowed)


def every_place_allowed(start_logits, end_logits, starts, ends, allowed):
    """Ignores the mask."""
    every = torch.ones_like(allowed)
    return span_loss_reference(start_logits, end_logits, starts, ends, every)


def scores_multiplied(start_logits, end_logits, starts, ends, allowed):
    """Sets hidden scores to 0, which still earns a share."""
    every = torch.ones_like(allowed)
    return span_loss_reference(start_logits * allowed, end_logits * allowed, starts, ends, every)


def same_targets_twice(start_logits, end_logits, starts, ends, allowed):
    """Compares both scores with the starts."""
    return span_loss_reference(start_logits, end_logits, starts, starts, allowed)


def targets_exchanged(start_logits, end_logits, starts, ends, allowed):
    """Compares starts with ends."""
    return span_loss_reference(start_logits, end_logits, ends, starts, allowed)


def summed_over_the_batch(start_logits, end_logits, starts, ends, allowed):
    """Sums over the batch."""
    mean = span_loss_reference(start_logits, end_logits, starts, ends, allowed)
    return mean * len(starts)


def start_alone(start_logits, end_logits, starts, ends, allowed):
    """Forgets the ends."""
    return span_loss_reference(start_logits, start_logits, starts, starts, allowed)


def each_token_by_itself(start_logits, end_logits, starts, ends, allowed):
    """Asks each token yes or no, with a sigmoid."""
    total = 0.0
    for logits, targets in ((start_logits, starts), (end_logits, ends)):
        ones = F.one_hot(targets, logits.shape[1]).to(logits.dtype)
        losses = F.binary_cross_entropy_with_logits(logits, ones, reduction="none")
        total = total + (losses * allowed).sum() / allowed.sum()
    return total / 2


def softmax_twice(start_logits, end_logits, starts, ends, allowed):
    """Feeds probabilities to a loss that takes logits."""
    parts = [x.masked_fill(~allowed, -torch.inf).softmax(-1) for x in (start_logits, end_logits)]
    return span_loss_reference(*parts, starts, ends, allowed)


def exp_without_maximum(start_logits, end_logits, starts, ends, allowed):
    """Takes exp, divides, takes the logarithm."""
    total = 0.0
    for logits, targets in ((start_logits, starts), (end_logits, ends)):
        powers = logits.exp() * allowed
        right = powers.gather(1, targets[:, None])[:, 0]
        total = total - (right / powers.sum(1)).log().mean()
    return total / 2


def by_finite_numbers(start_logits, end_logits, starts, ends, allowed):
    """Right: −1e9 for hidden places, log-softmax and indexing."""
    rows = torch.arange(len(starts))
    hidden = torch.full_like(start_logits, -1e9)
    first = torch.where(allowed, start_logits, hidden).log_softmax(dim=1)[rows, starts]
    last = torch.where(allowed, end_logits, hidden).log_softmax(dim=1)[rows, ends]
    return -(first + last).mean() / 2


def both_in_one_call(start_logits, end_logits, starts, ends, allowed):
    """Right: starts and ends as one batch."""
    logits = torch.cat([start_logits, end_logits])
    fill = torch.finfo(logits.dtype).min
    return F.cross_entropy(
        logits.masked_fill(~allowed.repeat(2, 1), fill), torch.cat([starts, ends])
    )


def sentence_by_sentence(start_logits, end_logits, starts, ends, allowed):
    """Right: a loop with log-sum-exp."""
    total = start_logits.new_zeros(())
    for row, seen in enumerate(allowed):
        for logits, target in ((start_logits[row], starts[row]), (end_logits[row], ends[row])):
            total = total + logits[seen].logsumexp(0) - logits[target]
    return total / (2 * len(allowed))


SPAN_LOSS = Exercise(
    id="span_loss",
    title="The loss of a span",
    asks="Give the mean of two cross-entropies: of the answer's start and of its end.",
    parameters=("start_logits", "end_logits", "starts", "ends", "allowed"),
    outputs=("loss", "gradient of start_logits", "gradient of end_logits"),
    driver="tensor_function",
    groups={
        "values": Group(2, "unequal lengths"),
        "large": Group(1, "large scores"),
    },
    cases=span_loss_cases,
    reference=span_loss_reference,
    misconceptions=(
        Misconception(
            loss_not_halved,
            "The two losses are added up; their mean is asked for.",
            "By what does point 3 divide?",
        ),
        Misconception(
            every_place_allowed,
            "Places where no answer may lie take part in the softmax.",
            "Where does `allowed` enter your computation?",
        ),
        Misconception(
            scores_multiplied,
            "Hidden scores were set to 0, and exp(0) = 1 still takes a share.",
            "Which score has the share 0 after a softmax?",
        ),
        Misconception(
            same_targets_twice,
            "The end scores are compared with the starts.",
            "Which targets belong to `end_logits`?",
        ),
        Misconception(
            targets_exchanged,
            "Starts and ends are exchanged.",
            "Which targets belong to `start_logits`?",
        ),
        Misconception(
            summed_over_the_batch,
            "The losses of the batch are added up; their mean is asked for.",
            "What happens to the loss when the batch grows?",
        ),
        Misconception(
            start_alone,
            "Only the start has a loss.",
            "What does the model learn about `end_logits`?",
        ),
        Misconception(
            each_token_by_itself,
            "Each token is asked by itself (a sigmoid); here one choice is made among all tokens.",
            "Do the probabilities of all places sum to 1?",
        ),
        Misconception(
            softmax_twice,
            "A softmax was taken before a loss that takes another one.",
            "Does your loss function expect logits or probabilities?",
        ),
        Misconception(
            exp_without_maximum,
            "exp overflows for large scores, or a probability vanishes and its logarithm is "
            "infinite.",
            "Is there one function for the logarithm of the softmax?",
        ),
    ),
    accepted=(by_finite_numbers, both_in_one_call, sentence_by_sentence),
)
