"""Exercise of chapter 07: beam search with a length penalty."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from attention_course.drivers.decoding import TableModel
from attention_course.drivers.tensors import as_tensors
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_greedy import SOURCE_WORDS, WORDS, draw_model


def _run(function, inputs):
    given = as_tensors({name: value for name, value in inputs.items() if name != "counted"})
    tokens, score = function(model=TableModel(**given.pop("model")), **given)
    return tokens.tolist(), round(float(score), 6)


def beam_search_cases(rng):
    """Beams that matter: the result is neither greedy's nor that of the tempting wrong rules."""
    early = (one_beam, stops_at_the_first_end)
    for group, beams, longest, power, differs, about in (
        ("plain", 3, 7, 0.0, (one_beam, one_beam_more), "no length penalty"),
        ("plain", 2, 6, 0.0, (one_beam, each_beam_for_itself), "two beams"),
        ("length", 3, 8, 1.0, (*early, stops_when_the_best_ends), "mean log-probability"),
        ("length", 2, 8, 0.7, (*early, stops_when_enough_have_ended), "a weaker penalty"),
        ("limits", 3, 4, 1.0, (unfinished_forgotten, finished_stay), "the limit is reached"),
        ("limits", 1, 7, 0.5, (), "one beam"),
    ):
        for _ in range(2000):
            start, end = (int(i) for i in rng.choice(WORDS, 2, replace=False))
            inputs = {
                "model": draw_model(rng, (start,), sharpness=0.9),
                "source": rng.integers(0, SOURCE_WORDS, size=(1, int(rng.choice([3, 5, 6])))),
                "start": start,
                "end": end,
                "beams": beams,
                "longest": longest,
                "power": power,
            }
            tokens, score = _run(beam_search_reference, inputs)
            others = [_run(wrong, inputs) for wrong in differs]
            apart = len({str(words) for words, _ in [(tokens, score), *others]}) == 1 + len(others)
            ends_early = tokens[-1] == end and 1 < len(tokens) < longest
            if apart and (tokens[-1] != end if "limit" in about else ends_early):
                break
        yield Case(group, inputs, about)


def _log_probabilities(model, memory, prefixes):
    """Log-probabilities of the next word of each prefix, as nested lists, by hand."""
    scores = model.decode(torch.tensor(prefixes), memory)[:, -1].numpy()
    return (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)).tolist()


def _search(
    model,
    source,
    start,
    end,
    beams,
    longest,
    power,
    add=lambda total, log_probability: total + log_probability,
    rank=lambda total, length: total,
    final=lambda total, length, power: total / length**power,
    keep_unfinished=True,
    stop_at=math.inf,
    stop_at_best=False,
    stay=False,
):
    """Beam search on Python lists, with the parts that wrong versions exchange."""
    memory = model.encode(source)
    live, finished = [(0.0, [start])], []
    for _ in range(longest):
        following = _log_probabilities(model, memory, [words for _, words in live])
        candidates = [
            (add(total, log_probability), [*words, word])
            for (total, words), row in zip(live, following, strict=True)
            for word, log_probability in enumerate(row)
        ]
        candidates.sort(key=lambda pair: rank(pair[0], len(pair[1]) - 1), reverse=True)
        best = candidates[:beams]
        finished += [pair for pair in best if pair[1][-1] == end]
        live = [pair for pair in best if pair[1][-2 if stay else -1] != end]
        if not live or len(finished) >= stop_at or (stop_at_best and best[0] in finished):
            break
    if keep_unfinished or not finished:
        finished += live
    scored = [(final(total, len(words) - 1, power), words[1:]) for total, words in finished]
    score, words = max(scored)
    return torch.tensor(words), score


def beam_search_reference(model, source, start, end, beams, longest, power):
    """Beam search on Python lists."""
    return _search(model, source, start, end, beams, longest, power)


def one_beam(model, source, start, end, beams, longest, power):
    """Greedy, whatever the number of beams."""
    return _search(model, source, start, end, 1, longest, power)


def one_beam_more(model, source, start, end, beams, longest, power):
    """Keeps one beam more than asked for. (Only for the choice of cases.)"""
    return _search(model, source, start, end, beams + 1, longest, power)


def finished_stay(model, source, start, end, beams, longest, power):
    """Sets finished sentences aside and extends them once more. (Only for the choice of cases.)"""
    return _search(model, source, start, end, beams, longest, power, stay=True)


def stops_at_the_first_end(model, source, start, end, beams, longest, power):
    """Gives the first sentence that ends."""
    options = {"stop_at": 1, "keep_unfinished": False}
    return _search(model, source, start, end, beams, longest, power, **options)


def stops_at_the_first_end_and_compares(model, source, start, end, beams, longest, power):
    """Stops at the first end, and compares that sentence with those alive."""
    return _search(model, source, start, end, beams, longest, power, stop_at=1)


def stops_when_enough_have_ended(model, source, start, end, beams, longest, power):
    """Stops as soon as `beams` sentences have ended."""
    return _search(model, source, start, end, beams, longest, power, stop_at=beams)


def stops_when_the_best_ends(model, source, start, end, beams, longest, power):
    """Stops as soon as the sentence with the largest sum has ended."""
    return _search(model, source, start, end, beams, longest, power, stop_at_best=True)


def sum_returned(model, source, start, end, beams, longest, power):
    """Chooses by the score, but returns the sum."""
    tokens, score = beam_search_reference(model, source, start, end, beams, longest, power)
    return tokens, score * len(tokens) ** power


def unfinished_forgotten(model, source, start, end, beams, longest, power):
    """Leaves out sentences that have not ended at the limit."""
    return _search(model, source, start, end, beams, longest, power, keep_unfinished=False)


def penalty_forgotten(model, source, start, end, beams, longest, power):
    """Compares sums."""
    return _search(model, source, start, end, beams, longest, 0.0)


def multiplied_by_the_length(model, source, start, end, beams, longest, power):
    """Multiplies by length^power."""
    return _search(
        model,
        source,
        start,
        end,
        beams,
        longest,
        power,
        final=lambda total, length, power: total * length**power,
    )


def start_counted(model, source, start, end, beams, longest, power):
    """Counts the start token into the length."""

    def final(total, length, power):
        return total / (length + 1) ** power

    return _search(model, source, start, end, beams, longest, power, final=final)


def end_not_counted(model, source, start, end, beams, longest, power):
    """Leaves the end token out of the length."""

    def final(total, length, power):
        return total / max(length - 1, 1) ** power

    return _search(model, source, start, end, beams, longest, power, final=final)


def probabilities_added(model, source, start, end, beams, longest, power):
    """Adds probabilities."""

    def add(total, log_probability):
        return total + math.exp(log_probability)

    return _search(model, source, start, end, beams, longest, power, add=add)


def only_the_last_word_counts(model, source, start, end, beams, longest, power):
    """Does not add up."""

    def add(total, log_probability):
        return log_probability

    return _search(model, source, start, end, beams, longest, power, add=add)


def raw_scores_added(model, source, start, end, beams, longest, power):
    """Adds logits."""
    memory = model.encode(source)
    live, finished = [(0.0, [start])], []
    for _ in range(longest):
        rows = model.decode(torch.tensor([words for _, words in live]), memory)[:, -1].tolist()
        candidates = [
            (total + score, [*words, word])
            for (total, words), row in zip(live, rows, strict=True)
            for word, score in enumerate(row)
        ]
        best = sorted(candidates, reverse=True)[:beams]
        finished += [pair for pair in best if pair[1][-1] == end]
        live = [pair for pair in best if pair[1][-1] != end]
        if not live:
            break
    total, words = max((t / (len(w) - 1) ** power, w[1:]) for t, w in finished + live)
    return torch.tensor(words), total


def each_beam_for_itself(model, source, start, end, beams, longest, power):
    """After the first step every beam goes on greedily by itself."""
    memory = model.encode(source)
    (first,) = _log_probabilities(model, memory, [[start]])
    order = sorted(range(len(first)), key=lambda word: -first[word])[:beams]
    results = []
    for word in order:
        total, words = first[word], [start, word]
        while words[-1] != end and len(words) <= longest:
            (row,) = _log_probabilities(model, memory, [words])
            best = int(np.argmax(row))
            total, words = total + row[best], [*words, best]
        results.append((total / (len(words) - 1) ** power, words[1:]))
    score, words = max(results)
    return torch.tensor(words), score


def finished_go_on(model, source, start, end, beams, longest, power):
    """Goes on writing after the end token."""
    memory = model.encode(source)
    live = [(0.0, [start])]
    for _ in range(longest):
        following = _log_probabilities(model, memory, [words for _, words in live])
        candidates = [
            (total + log_probability, [*words, word])
            for (total, words), row in zip(live, following, strict=True)
            for word, log_probability in enumerate(row)
        ]
        live = sorted(candidates, reverse=True)[:beams]
    total, words = live[0]
    return torch.tensor(words[1:]), total / longest**power


def start_in_the_result(model, source, start, end, beams, longest, power):
    """Leaves the start token in the result."""
    tokens, score = beam_search_reference(model, source, start, end, beams, longest, power)
    return torch.cat([torch.tensor([start]), tokens]), score


def with_tensors(model, source, start, end, beams, longest, power):
    """Right: topk over all beams and words at once."""
    memory = model.encode(source)
    prefixes, totals = torch.tensor([[start]]), torch.zeros(1, dtype=torch.float64)
    results = []
    for length in range(1, longest + 1):
        logits = model.decode(prefixes, memory.expand(len(prefixes), -1, -1))[:, -1]
        sums = (totals[:, None] + logits.log_softmax(dim=-1)).flatten()
        totals, picked = sums.topk(min(beams, len(sums)))
        beam, word = picked // logits.shape[-1], picked % logits.shape[-1]
        prefixes = torch.cat([prefixes[beam], word[:, None]], dim=1)
        done = (word == end) | (length == longest)
        for total, prefix in zip(totals[done], prefixes[done], strict=True):
            results.append((total.item() / length**power, prefix[1:]))
        prefixes, totals = prefixes[~done], totals[~done]
        if not len(prefixes):
            break
    return max(results, key=lambda pair: pair[0])[::-1]


def with_a_best_so_far(model, source, start, end, beams, longest, power):
    """Right: keeps the best finished sentence only; one decoder call for each prefix."""
    memory, live = model.encode(source), {(start,): 0.0}
    best, best_score = None, -math.inf
    for step in range(longest):
        grown = {}
        for words, total in live.items():
            row = model.decode(torch.tensor([words]), memory)[0, -1].softmax(-1).log()
            grown |= {(*words, i): total + p.item() for i, p in enumerate(row)}
        kept = sorted(grown, key=grown.get)[-beams:]
        live = {}
        for words in kept:
            if words[-1] == end or step + 1 == longest:
                score = grown[words] / (len(words) - 1) ** power
                if score > best_score:
                    best, best_score = words[1:], score
            else:
                live[words] = grown[words]
        if not live:
            break
    return torch.tensor(best), best_score


def with_products(model, source, start, end, beams, longest, power):
    """Right: multiplies probabilities and takes the logarithm in the end."""
    memory = model.encode(source)
    live, over = [((start,), 1.0)], []
    for _ in range(longest):
        if not live:
            break
        rows = model.decode(torch.tensor([words for words, _ in live]), memory)[:, -1].softmax(-1)
        pairs = itertools.product(range(len(live)), range(rows.shape[1]))
        grown = [((*live[i][0], j), live[i][1] * rows[i, j].item()) for i, j in pairs]
        grown = sorted(grown, key=lambda pair: -pair[1])[:beams]
        over += [pair for pair in grown if pair[0][-1] == end]
        live = [pair for pair in grown if pair[0][-1] != end]
    final = {words[1:]: math.log(p) / (len(words) - 1) ** power for words, p in over + live}
    best = max(final, key=final.get)
    return torch.tensor(best), torch.tensor(final[best])


BEAM_SEARCH = Exercise(
    id="beam_search",
    title="Beam search",
    asks="Keep several half-written sentences, and choose among the finished by length-normalised "
    "log-probability.",
    parameters=("model", "source", "start", "end", "beams", "longest", "power"),
    outputs=("tokens", "score"),
    driver="search",
    seconds=5.0,
    groups={
        "plain": Group(2, "without length penalty"),
        "length": Group(1, "with length penalty"),
        "limits": Group(1, "the limit, and a single beam"),
    },
    cases=beam_search_cases,
    reference=beam_search_reference,
    misconceptions=(
        Misconception(
            one_beam,
            "Only one sentence is kept: this is greedy decoding.",
            "How many prefixes does your decoder get in step 2?",
        ),
        Misconception(
            stops_at_the_first_end,
            "The search stops with the first sentence that ends; a better one may end later.",
            "When may the loop stop? Look at what is still alive.",
        ),
        Misconception(
            stops_at_the_first_end_and_compares,
            "The search stops when the first sentence ends; those alive may still end better.",
            "When may the loop stop? Look at what is still alive.",
        ),
        Misconception(
            stops_when_enough_have_ended,
            "The search stops when `beams` sentences have ended, though others are still alive.",
            "When may the loop stop? Read point 4 of the contract again.",
        ),
        Misconception(
            stops_when_the_best_ends,
            "The search stops as soon as its best sentence ends. Those still alive have smaller "
            "sums, but divided by their length they may win.",
            "When may the loop stop? Compare points 4 and 5 of the contract.",
        ),
        Misconception(
            unfinished_forgotten,
            "Sentences that have not ended at the limit take no part in the final choice.",
            "Which sentences does point 5 of the contract compare?",
        ),
        Misconception(
            penalty_forgotten,
            "The sums are compared as they are, so that short sentences win.",
            "Where does `power` enter your code?",
        ),
        Misconception(
            sum_returned,
            "The sentence is right, but its sum is returned, not its score.",
            "By what is the sum divided in point 5 of the contract?",
        ),
        Misconception(
            multiplied_by_the_length,
            "The sum is multiplied by length^power; log-probabilities are negative, so this makes "
            "long sentences worse still.",
            "Should a long sentence gain or lose by the penalty?",
        ),
        Misconception(
            start_counted,
            "The start token is counted into the length.",
            "How long is a sentence that consists of the end token only?",
        ),
        Misconception(
            end_not_counted,
            "The end token is not counted into the length.",
            "How long is a sentence that consists of the end token only?",
        ),
        Misconception(
            probabilities_added,
            "Probabilities are added; they would have to be multiplied, and logarithms added.",
            "How does one get the probability of a sentence from those of its words?",
        ),
        Misconception(
            only_the_last_word_counts,
            "The score of a sentence is that of its last word: nothing is added up.",
            "What does a beam carry along besides its words?",
        ),
        Misconception(
            raw_scores_added,
            "Logits are added; they are no log-probabilities, and each step has another offset.",
            "What turns logits into log-probabilities?",
        ),
        Misconception(
            each_beam_for_itself,
            "Each beam goes on by itself. All extensions of all beams must compete.",
            "From how many candidates are the best chosen in step 2?",
        ),
        Misconception(
            finished_go_on,
            "Sentences go on after their end token.",
            "What happens in your code to a beam whose last word is `end`?",
        ),
        Misconception(
            start_in_the_result,
            "The start token stands in the result.",
            "Is the start token a word of the translation?",
        ),
    ),
    accepted=(with_tensors, with_a_best_so_far, with_products),
    equivalent_mutants={
        "`model.decode(prefixes, memory)[:, -1].log_softmax(dim=-1)` → "
        "`model.decode(prefixes, memory)[:, -1].log_softmax(dim=1)`": "two axes are left",
    },
)
