"""Chapter 09: blanks, filled one by one."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import draw
from autograder.exercises._ch09_pseudo import blank_model, logits_at


def fill_one_by_one_cases(rng):
    """Masks side by side, the ends among them; all masked; a tempting mask; none."""

    def case(group, about, length, masked, vocabulary=7, tempting=False):
        mask_token = int(rng.integers(1, vocabulary))
        words = [i for i in range(vocabulary) if i != mask_token]
        tokens = rng.choice(words, size=length)
        tokens[masked] = mask_token
        table = 2.0 * draw(rng, (5, vocabulary, vocabulary))
        # A number for each neighbour: shifts all logits, so it changes no probability.
        table[:2] += draw(rng, (2, vocabulary, 1)) * 6.0
        table[..., mask_token] += 3.0 if tempting else -30.0
        inputs = {"table": table, "tokens": tokens.astype(np.int64), "mask_token": mask_token}
        return Case(group, inputs, about)

    for number in range(4):
        yield case("values", f"sentence {number + 1}", 11, [1, 2, 3, 4, 7, 8, 9])
    yield case("edges", "every word masked", 5, list(range(5)))
    for masked in ([0, 1, 2, 4, 6, 7, 8, 9], [1, 2, 3, 5, 6, 7, 9]):
        yield case("edges", "[MASK] itself is a probable word", 10, masked, tempting=True)
    yield case("edges", "nothing masked", 5, [])


def fill_one_by_one_reference(table, tokens, mask_token):
    """In NumPy, with the model's sums written out."""
    weights, words = table.numpy(), tokens.tolist()
    while mask_token in words:
        options = []
        for place, word in enumerate(words):
            if word != mask_token:
                continue
            logits = logits_at(weights, words, place)
            logits[mask_token] = -np.inf
            best = int(logits.argmax())
            options.append((-np.log(np.exp(logits - logits[best]).sum()), place, best))
        _, place, best = max(options)
        words[place] = best
    return torch.tensor(words)


def _predictions(table, tokens, mask_token, may_mask=False):
    logits = blank_model(table, tokens[None])[0].clone()
    if not may_mask:
        logits[:, mask_token] = -torch.inf
    return logits


def _fill(
    table,
    tokens,
    mask_token,
    confidence=lambda logits: logits.softmax(-1).amax(-1),
    pick=torch.argmax,
    closed=-torch.inf,
):
    tokens = tokens.clone()
    while (tokens == mask_token).any():
        logits = _predictions(table, tokens, mask_token)
        sure = confidence(logits).masked_fill(tokens != mask_token, closed)
        place = pick(sure)
        tokens[place] = logits[place].argmax()
    return tokens


def all_at_once(table, tokens, mask_token):
    """Fills every blank from one call."""
    best = _predictions(table, tokens, mask_token).argmax(-1)
    return torch.where(tokens == mask_token, best, tokens)


def left_to_right(**given):
    """Always fills the first blank."""
    return _fill(**given, confidence=lambda logits: -torch.arange(len(logits)).double())


def right_to_left(**given):
    """Always fills the last blank."""
    return _fill(**given, confidence=lambda logits: torch.arange(len(logits)).double())


def least_sure_first(**given):
    """Fills the blank where the model is the least sure."""
    return _fill(**given, pick=torch.argmin, closed=torch.inf)


def largest_logit_first(**given):
    """Compares logits of different places."""
    return _fill(**given, confidence=lambda logits: logits.amax(-1))


def order_fixed_at_the_start(table, tokens, mask_token):
    """Decides on the order before anything is filled."""
    sure = _predictions(table, tokens, mask_token).softmax(-1).amax(-1)
    places = [i for i in sure.argsort(descending=True).tolist() if tokens[i] == mask_token]
    tokens = tokens.clone()
    for place in places:
        tokens[place] = _predictions(table, tokens, mask_token)[place].argmax()
    return tokens


def words_fixed_in_pairs(table, tokens, mask_token):
    """Fills two blanks for each call."""
    tokens = tokens.clone()
    while (tokens == mask_token).any():
        logits = _predictions(table, tokens, mask_token)
        sure = logits.softmax(-1).amax(-1).masked_fill(tokens != mask_token, -1)
        count = min(2, int((tokens == mask_token).sum()))
        places = sure.topk(count).indices
        tokens[places] = logits[places].argmax(-1)
    return tokens


def mask_may_be_written(table, tokens, mask_token):
    """Lets the model write [MASK] (and gives up then)."""
    tokens = tokens.clone()
    for _ in range(int((tokens == mask_token).sum())):
        logits = _predictions(table, tokens, mask_token, may_mask=True)
        sure = logits.softmax(-1).amax(-1).masked_fill(tokens != mask_token, -1)
        place = sure.argmax()
        tokens[place] = logits[place].argmax()
    return tokens


def mask_left_out_too_late(table, tokens, mask_token):
    """Compares probabilities in which [MASK] still has its share."""
    tokens = tokens.clone()
    while (tokens == mask_token).any():
        chances = _predictions(table, tokens, mask_token, may_mask=True).softmax(-1)
        chances[:, mask_token] = 0.0
        place = chances.amax(-1).masked_fill(tokens != mask_token, -1).argmax()
        tokens[place] = chances[place].argmax()
    return tokens


def one_blank_only(table, tokens, mask_token):
    """Stops after one blank."""
    if not (tokens == mask_token).any():
        return tokens.clone()
    logits, tokens = _predictions(table, tokens, mask_token), tokens.clone()
    sure = logits.softmax(-1).amax(-1).masked_fill(tokens != mask_token, -1)
    tokens[sure.argmax()] = logits[sure.argmax()].argmax()
    return tokens


def known_words_rewritten(table, tokens, mask_token):
    """Writes the model's best word everywhere at the end."""
    tokens = _fill(table, tokens, mask_token)
    return _predictions(table, tokens, mask_token).argmax(-1)


def filled_in_place(table, tokens, mask_token):
    """Changes the caller's tokens."""
    tokens[:] = _fill(table, tokens, mask_token)
    return tokens


def by_flat_maximum(table, tokens, mask_token):
    """Right: one maximum over places and words."""
    tokens = tokens.clone()
    for _ in range(int(tokens.eq(mask_token).sum())):
        logits = blank_model(table, tokens.unsqueeze(0)).squeeze(0)
        logits = logits.index_fill(1, torch.tensor([mask_token]), -1e30)
        logs = logits.log_softmax(-1)
        logs[tokens != mask_token] = -torch.inf
        place, word = divmod(int(logs.argmax()), logs.shape[1])
        tokens[place] = word
    return tokens


def by_list(table, tokens, mask_token):
    """Right: a list of blanks that gets shorter."""
    result = tokens.tolist()
    blanks = [i for i, word in enumerate(result) if word == mask_token]
    while blanks:
        logits = blank_model(table, torch.tensor([result]))[0]
        logits[:, mask_token] = -math.inf
        chances = torch.softmax(logits, dim=1)
        place = max(blanks, key=lambda i: float(chances[i].max()))
        result[place] = int(chances[place].argmax())
        blanks.remove(place)
    return torch.tensor(result)


def by_recursion(table, tokens, mask_token):
    """Right: fills one blank, then calls itself."""
    blanks = torch.nonzero(tokens == mask_token)[:, 0]
    if len(blanks) == 0:
        return tokens.clone()
    logits = blank_model(table, tokens[None])[0, blanks]
    logits = torch.cat([logits[:, :mask_token], logits[:, mask_token + 1 :]], dim=1)
    chance, word = logits.softmax(1).max(dim=1)
    row = chance.argmax()
    filled = tokens.clone()
    filled[blanks[row]] = word[row] + (word[row] >= mask_token)
    return by_recursion(table, filled, mask_token)


FILL_ONE_BY_ONE = Exercise(
    id="fill_one_by_one",
    title="Blanks, one by one",
    asks="Fill the blank where the model is surest; look again; until none is left.",
    parameters=("table", "tokens", "mask_token"),
    outputs=("tokens",),
    driver="tensor_function",
    groups={
        "values": Group(2, "several blanks side by side"),
        "edges": Group(1, "all blank, none blank, a probable [MASK]"),
    },
    cases=fill_one_by_one_cases,
    reference=fill_one_by_one_reference,
    misconceptions=(
        Misconception(
            all_at_once,
            "All blanks were filled from one call: none knows what the others became.",
            "What has changed for the model after the first blank is filled?",
        ),
        Misconception(
            left_to_right,
            "The blanks were filled from left to right.",
            "Which blank is filled first?",
        ),
        Misconception(
            right_to_left,
            "The blanks were filled from right to left.",
            "Which blank is filled first?",
        ),
        Misconception(
            least_sure_first,
            "The blank was filled where the model is the *least* sure.",
            "Largest or smallest probability?",
        ),
        Misconception(
            largest_logit_first,
            "Logits of different places were compared; only probabilities can be.",
            "Add 5 to all logits of one place: what should change?",
        ),
        Misconception(
            order_fixed_at_the_start,
            "The order was fixed before anything was filled.",
            "Where is the model the surest *now*?",
        ),
        Misconception(
            words_fixed_in_pairs,
            "Two blanks were filled for each call of the model.",
            "One by one.",
        ),
        Misconception(
            mask_may_be_written,
            "[MASK] itself was written into a blank.",
            "What does the exercise say about the mask's own logit?",
        ),
        Misconception(
            mask_left_out_too_late,
            "[MASK] was left out after the softmax, so it still had a share of the probability.",
            "Before or after the softmax?",
        ),
        Misconception(
            one_blank_only,
            "Only one blank was filled.",
            "When is the work done?",
        ),
        Misconception(
            known_words_rewritten,
            "Words that were no blanks were changed.",
            "Which places may change?",
        ),
        Misconception(
            filled_in_place,
            "The caller's `tokens` were changed.",
            "Work on a copy.",
        ),
    ),
    accepted=(by_flat_maximum, by_list, by_recursion),
    equivalent_mutants={
        "`blank_model(table, tokens[None])[0]` → `blank_model(table, tokens[None])[-1]`": "a batch "
        "of one sentence: the first is the last",
        "`logits.softmax(dim=-1)` → `logits.softmax(dim=1)`": "two axes: the last is number 1",
        "`probabilities.amax(dim=-1)` → `probabilities.amax(dim=1)`": "two axes: the last is "
        "number 1",
    },
)
