"""Exercises of chapter 10 on fine-tuning: rates of layers, when to stop, pieces of languages."""

from __future__ import annotations

import re

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_telling

# --- learning_rates ------------------------------------------------------------------------------

PARTS = ("attention.self.query.weight", "intermediate.dense.bias", "output.LayerNorm.weight")
BELOW = ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.bias")
ABOVE = ("pooler.dense.weight", "classifier.bias")


def learning_rates_cases(rng):
    """Twelve layers (10 begins like 1); layers in any order; frozen ones."""
    for group, layers, frozen, about in (
        ("rates", 12, 0, "twelve layers"),
        ("rates", int(rng.choice([3, 5, 7])), 0, "fewer layers"),
        ("frozen", 12, 1, "frozen embeddings"),
        ("frozen", 12, int(rng.choice([3, 4])), "embeddings and some layers frozen"),
    ):
        names = [
            f"encoder.layer.{n}.{PARTS[place]}"
            for place, n in enumerate(int(n) for n in rng.choice(layers, 3, replace=False))
        ]
        names += [f"encoder.layer.{n}.{PARTS[n % 3]}" for n in (0, 1, 2, layers - 1)]
        names += [f"encoder.layer.10.{PARTS[0]}"] * (layers > 10)
        inputs = {
            "names": [str(name) for name in rng.permutation([*names, *BELOW, *ABOVE])],
            "layers": layers,
            "rate": round(float(rng.uniform(1e-3, 5e-3)), 6),
            "decay": round(float(rng.uniform(0.5, 0.9)), 3),
            "frozen": frozen,
        }
        yield Case(group, inputs, about)


def _depth(name, layers):
    """How many steps of decay a parameter is below the head."""
    if name.startswith("embeddings."):
        return layers + 1
    found = re.match(r"encoder\.layer\.(\d+)\.", name)
    return layers - int(found[1]) if found else 0


def _rates(names, layers, rate, decay, frozen, depth=_depth, value=None, is_frozen=None):
    """Right rates, with parts that wrong versions exchange."""
    value = value or (lambda steps: rate * decay**steps)
    is_frozen = is_frozen or (lambda steps: steps > layers + 1 - frozen)
    return [
        0.0 if is_frozen(steps) else value(steps) for steps in (depth(n, layers) for n in names)
    ]


def learning_rates_reference(names, layers, rate, decay, frozen):
    """A table of prefixes, from the bottom up."""
    prefixes = ["embeddings.", *(f"encoder.layer.{n}." for n in range(layers))]
    table = {
        prefix: 0.0 if place < frozen else rate * decay ** (len(prefixes) - place)
        for place, prefix in enumerate(prefixes)
    }
    return [next((r for p, r in table.items() if name.startswith(p)), rate) for name in names]


def first_digit_read(names, layers, rate, decay, frozen):
    """Takes layer 10 for layer 1."""

    def depth(name, layers):
        return layers - int(name[14]) if name.startswith("encoder") else _depth(name, layers)

    return _rates(names, layers, rate, decay, frozen, depth)


def upside_down(names, layers, rate, decay, frozen):
    """Gives low layers the larger rates."""

    def depth(name, layers):
        steps = _depth(name, layers)
        return steps if steps in (0, layers + 1) else layers + 1 - steps

    return _rates(names, layers, rate, decay, frozen, depth)


def top_layer_not_decayed(names, layers, rate, decay, frozen):
    """One step too few."""
    right = learning_rates_reference(names, layers, rate, decay, frozen)
    return [r if r == rate else r / decay for r in right]


def head_decayed_too(names, layers, rate, decay, frozen):
    """One step too many."""
    return [decay * r for r in learning_rates_reference(names, layers, rate, decay, frozen)]


def embeddings_with_the_head(names, layers, rate, decay, frozen):
    """Gives embeddings the full rate, as if only layers were decayed."""
    right = learning_rates_reference(names, layers, rate, decay, frozen)
    return [
        rate if name.startswith("embeddings") and r else r
        for name, r in zip(names, right, strict=True)
    ]


def embeddings_with_layer_zero(names, layers, rate, decay, frozen):
    """Gives embeddings the rate of the lowest layer."""

    def depth(name, layers):
        return min(_depth(name, layers), layers)

    def is_frozen(steps):
        return False

    right = learning_rates_reference(names, layers, rate, decay, frozen)
    shared = _rates(names, layers, rate, decay, frozen, depth, is_frozen=is_frozen)
    return [s if r else 0.0 for r, s in zip(right, shared, strict=True)]


def decayed_in_equal_steps(names, layers, rate, decay, frozen):
    """Subtracts instead of multiplying."""
    return _rates(
        *(names, layers, rate, decay, frozen),
        value=lambda steps: rate * (1 - (1 - decay) * steps / layers),
    )


def nothing_frozen(names, layers, rate, decay, frozen):
    """Ignores `frozen`."""
    return _rates(names, layers, rate, decay, 0)


def embeddings_not_counted(names, layers, rate, decay, frozen):
    """Freezes as many layers, and the embeddings."""
    return _rates(names, layers, rate, decay, frozen + (frozen > 0))


def embeddings_left_trainable(names, layers, rate, decay, frozen):
    """Freezes layers only."""
    full = learning_rates_reference(names, layers, rate, decay, 0)
    some = learning_rates_reference(names, layers, rate, decay, frozen)
    return [
        a if name.startswith("embeddings") else b
        for name, a, b in zip(names, full, some, strict=True)
    ]


def by_numbers(names, layers, rate, decay, frozen):
    """Right: the height of each part, as an array."""
    heights = []
    for name in names:
        words = name.split(".")
        is_layer = words[:2] == ["encoder", "layer"]
        heights.append(
            int(words[2]) + 1 if is_layer else 0 if words[0] == "embeddings" else layers + 1
        )
    heights = np.array(heights)
    return np.where(heights < frozen, 0.0, rate * decay ** (layers + 1.0 - heights))


def by_multiplying(names, layers, rate, decay, frozen):
    """Right: walks down and multiplies."""
    groups, now = {}, rate
    for layer in reversed(range(layers)):
        now *= decay
        groups[f"encoder.layer.{layer}."] = now if layer + 1 >= frozen else 0.0
    groups["embeddings."] = 0.0 if frozen else now * decay
    rates = []
    for name in names:
        mine = [value for prefix, value in groups.items() if name.startswith(prefix)]
        rates.append(mine[0] if mine else rate)
    return rates


def by_expression(names, layers, rate, decay, frozen):
    """Right: a regular expression."""
    return tuple(_rates(names, layers, rate, decay, frozen))


LEARNING_RATES = Exercise(
    id="learning_rates",
    title="A learning rate for each layer",
    asks="Give each parameter the rate of its depth: smaller below, 0 where it is frozen.",
    parameters=("names", "layers", "rate", "decay", "frozen"),
    groups={
        "rates": Group(1, "rates that shrink with depth"),
        "frozen": Group(1, "frozen parts"),
    },
    cases=learning_rates_cases,
    reference=learning_rates_reference,
    misconceptions=(
        Misconception(
            first_digit_read,
            "Layer 10 was taken for layer 1: its name begins the same way.",
            "Which character ends the layer's number in a name?",
        ),
        Misconception(
            upside_down,
            "Low layers have the larger rates.",
            "Which layers hold serves every task: the low or the high ones?",
        ),
        Misconception(
            top_layer_not_decayed,
            "Each rate is one step of decay too large: the highest layer already has one.",
            "Which rate has the highest layer, by point 2?",
        ),
        Misconception(
            head_decayed_too,
            "Each rate is one step of decay too small: the head is not decayed.",
            "Which rate has the head?",
        ),
        Misconception(
            embeddings_with_the_head,
            "The embeddings have the head's rate.",
            "Are the embeddings above or below the layers?",
        ),
        Misconception(
            embeddings_with_layer_zero,
            "The embeddings have the rate of layer 0; they are one step below it.",
            "How many steps below the head are the embeddings?",
        ),
        Misconception(
            decayed_in_equal_steps,
            "Rates fall by equal steps; each step should multiply.",
            "What is the ratio of the rates of neighbouring layers?",
        ),
        Misconception(
            nothing_frozen,
            "Nothing is frozen.",
            "Where does `frozen` enter your code?",
        ),
        Misconception(
            embeddings_not_counted,
            "One layer too many is frozen: the embeddings count as the first part.",
            "What is frozen if `frozen` is 1?",
        ),
        Misconception(
            embeddings_left_trainable,
            "The embeddings are not frozen, though layers above them are.",
            "What is frozen if `frozen` is 1?",
        ),
    ),
    accepted=(by_numbers, by_multiplying, by_expression),
)

# --- early_stop ----------------------------------------------------------------------------------


def early_stop_cases(rng):
    """Scores that fall, rise again too late, creep up; no stop at all."""

    def telling(*wrong, epochs=9, stops=True):
        def draw():
            steps = rng.integers(-6, 7, size=epochs) / 16
            return {
                "scores": (0.5 + steps).tolist(),
                "patience": int(rng.choice([2, 3])),
                "least": float(rng.choice([0.0625, 0.125])),
            }

        while True:
            inputs = draw_telling(draw, early_stop_reference, wrong)
            best, stop = early_stop_reference(**inputs)
            ended = stop - best == inputs["patience"]
            if ended == stops and best < stop:
                return inputs

    yield Case("stop", telling(best_of_all, last_for_best), "a better score comes too late")
    yield Case("stop", telling(patience_never_reset, compared_with_the_one_before), "ups and downs")
    yield Case("stop", telling(lower_is_better, one_epoch_late), "ups and downs again")
    yield Case("stop", telling(one_epoch_early, least_forgotten), "small gains")
    top = round(float(rng.uniform(0.6, 0.8)), 3)
    scores = [top, top - 0.03, *(top - rng.uniform(0.1, 0.4, 4).round(3)).tolist()]
    inputs = {"scores": scores, "patience": int(rng.choice([2, 3])), "least": 0.0625}
    yield Case("stop", inputs, "the first epoch is the best")
    yield Case("least", telling(equal_counts, least_forgotten), "gains that equal the least one")
    yield Case("least", telling(small_gains_kept), "small gains that add up")
    yield Case("least", telling(best_is_one_late, epochs=4, stops=False), "no stop")


def _stop(scores, patience, least, better=None, keep=None, reset=True):
    """(best, stop), with parts that wrong versions exchange."""
    better = better or (lambda score, best: score > best + least)
    best, bad, mark = 0, 0, scores[0]
    for epoch, score in enumerate(scores[1:], 1):
        if better(score, mark):
            best, mark, bad = epoch, score, 0 if reset else bad
        else:
            bad += 1
            mark = keep(score, mark) if keep else mark
        if bad >= patience:
            return best, epoch
    return best, len(scores) - 1


def early_stop_reference(scores, patience, least):
    """Looks from each best epoch for the next one within reach."""
    best = 0
    while True:
        ahead = range(best + 1, min(best + patience + 1, len(scores)))
        gains = [epoch for epoch in ahead if scores[epoch] - scores[best] > least]
        if not gains:
            return best, min(best + patience, len(scores) - 1)
        best = gains[0]


def best_of_all(scores, patience, least):
    """Takes the best of all scores, also of those after the stop."""
    return int(np.argmax(scores)), early_stop_reference(scores, patience, least)[1]


def last_for_best(scores, patience, least):
    """Keeps the last epoch's weights."""
    _, stop = early_stop_reference(scores, patience, least)
    return stop, stop


def patience_never_reset(scores, patience, least):
    """Counts all epochs without a gain."""
    return _stop(scores, patience, least, reset=False)


def compared_with_the_one_before(scores, patience, least):
    """Compares with the epoch before."""
    return _stop(scores, patience, least, keep=lambda score, mark: score)


def lower_is_better(scores, patience, least):
    """Reads scores as losses."""
    return _stop(scores, patience, least, better=lambda score, best: score < best - least)


def one_epoch_late(scores, patience, least):
    """More than `patience` epochs."""
    return _stop(scores, patience + 1, least)


def one_epoch_early(scores, patience, least):
    """Counts the best epoch itself."""
    return _stop(scores, patience - 1, least)


def least_forgotten(scores, patience, least):
    """Every gain counts."""
    return _stop(scores, patience, 0.0)


def equal_counts(scores, patience, least):
    """At least `least`."""
    return _stop(scores, patience, least, better=lambda score, best: score >= best + least)


def small_gains_kept(scores, patience, least):
    """Moves the mark with every small gain, so that creeping up never counts."""
    return _stop(scores, patience, least, keep=max)


def best_is_one_late(scores, patience, least):
    """Counts the best epoch from 1."""
    best, stop = early_stop_reference(scores, patience, least)
    return best + 1, stop


def by_counting(scores, patience, least):
    """Right: a counter."""
    return _stop(scores, patience, least)


def by_arrays(scores, patience, least):
    """Right: arrays, and the epoch of the last gain."""
    values, best, epoch = np.asarray(scores), 0, 0
    while epoch + 1 < len(values) and epoch - best < patience:
        epoch += 1
        if values[epoch] > values[best] + least:
            best = epoch
    return np.int64(best), np.int64(epoch)


def by_remaining_patience(scores, patience, least):
    """Right: counts down."""
    left, mark, best, epoch = patience, -np.inf, -1, -1
    for epoch, score in enumerate(scores):
        if score > mark + least:
            left, mark, best = patience, score, epoch
            continue
        left -= 1
        if not left:
            break
    return [best, epoch]


EARLY_STOP = Exercise(
    id="early_stop",
    title="When to stop",
    asks="Find the epoch to keep and the epoch after which to stop.",
    parameters=("scores", "patience", "least"),
    outputs=("best", "stop"),
    groups={
        "stop": Group(1, "ups and downs"),
        "least": Group(1, "small gains, and no stop"),
    },
    cases=early_stop_cases,
    reference=early_stop_reference,
    misconceptions=(
        Misconception(
            best_of_all,
            "The best epoch lies after the stop: it was never trained.",
            "Which scores exist when training stops?",
        ),
        Misconception(
            last_for_best,
            "The last epoch is kept; by then the score had fallen.",
            "Which epoch's weights do you want to use?",
        ),
        Misconception(
            patience_never_reset,
            "Epochs without a gain are counted in all; they have to come in a row.",
            "What happens to your counter when there is a gain?",
        ),
        Misconception(
            compared_with_the_one_before,
            "Each score is compared with the one before, not with the best.",
            "With which score does point 2 compare?",
        ),
        Misconception(
            lower_is_better,
            "Lower scores count as better: that would be right for losses.",
            "Is an accuracy of 0.9 better than one of 0.8?",
        ),
        Misconception(
            one_epoch_late,
            "Training stops one epoch too late.",
            "After how many epochs in a row without a gain does point 3 stop?",
        ),
        Misconception(
            one_epoch_early,
            "Training stops one epoch too early.",
            "After how many epochs in a row without a gain does point 3 stop?",
        ),
        Misconception(
            least_forgotten,
            "Every small gain counts.",
            "Where does `least` enter your code?",
        ),
        Misconception(
            equal_counts,
            "A gain that equals `least` counts; it has to be larger.",
            "Does the contract say “more than” or “at least”?",
        ),
        Misconception(
            small_gains_kept,
            "Small gains move the mark, so that a score that creeps up never counts as a gain.",
            "Which score is compared with, when the last gain was too small?",
        ),
        Misconception(
            best_is_one_late,
            "The best epoch is counted from 1.",
            "Which number does the first epoch have?",
        ),
    ),
    accepted=(by_counting, by_arrays, by_remaining_patience),
)

# --- fertility -----------------------------------------------------------------------------------

STEMS = ["bar", "lo", "mi", "tu", "ken", "sa", "por", "ti", "el", "na"]


def fertility_cases(rng):
    """Sentences of unequal lengths, words of one to four pieces."""
    for about in ("three sentences", "five sentences"):
        sentences = []
        for words in rng.permutation([2, 3, 5, 7, 8])[: 3 if about[0] == "t" else 5]:
            sentence = []
            for count in rng.choice([1, 1, 2, 3, 4], size=words):
                pieces = [str(piece) for piece in rng.choice(STEMS, count)]
                sentence.append([pieces[0], *(f"##{piece}" for piece in pieces[1:])])
            sentences.append(sentence)
        sentences[0][0] = [STEMS[0], "##lo", "##mi"]
        sentences[-1][-1] = ["[UNK]"]
        yield Case("fertility", {"sentences": sentences}, about)


def fertility_reference(sentences):
    """Counts."""
    counts = np.array([len(word) for sentence in sentences for word in sentence])
    return float(counts.mean()), float((counts > 1).mean())


def mean_of_sentence_means(sentences):
    """Averages each sentence first."""
    rows = [fertility_reference([sentence]) for sentence in sentences]
    return tuple(np.mean(rows, axis=0).tolist())


def later_pieces_only(sentences):
    """Counts pieces that begin with ##."""
    pieces, split = fertility_reference(sentences)
    return pieces - 1, split


def words_per_piece(sentences):
    """Divides the wrong way round."""
    pieces, split = fertility_reference(sentences)
    return 1 / pieces, split


def pieces_per_sentence(sentences):
    """Divides by sentences."""
    pieces, split = fertility_reference(sentences)
    words = sum(len(sentence) for sentence in sentences) / len(sentences)
    return pieces * words, split


def whole_words(sentences):
    """Gives the share of words that are whole."""
    pieces, split = fertility_reference(sentences)
    return pieces, 1 - split


def share_of_later_pieces(sentences):
    """Gives the share of pieces that begin with ##."""
    pieces, _ = fertility_reference(sentences)
    return pieces, 1 - 1 / pieces


def unknown_words_left_out(sentences):
    """Does not count [UNK]."""
    return fertility_reference([[w for w in s if w != ["[UNK]"]] for s in sentences])


def different_pieces_only(sentences):
    """Counts each piece of the vocabulary once."""
    words = [word for sentence in sentences for word in sentence]
    pieces = {piece for word in words for piece in word}
    return len(pieces) / len(words), fertility_reference(sentences)[1]


def by_sums(sentences):
    """Right: sums."""
    words = sum(map(len, sentences))
    pieces = sum(len(word) for sentence in sentences for word in sentence)
    return pieces / words, sum(len(w) != 1 for s in sentences for w in s) / words


def by_prefix(sentences):
    """Right: looks at ##."""
    words = [word for sentence in sentences for word in sentence]
    later = sum(piece.startswith("##") for word in words for piece in word)
    return 1 + later / len(words), sum("##" in "".join(w) for w in words) / len(words)


def by_loop(sentences):
    """Right: a loop."""
    words = pieces = split = 0
    for sentence in sentences:
        for word in sentence:
            words, pieces, split = words + 1, pieces + len(word), split + bool(word[1:])
    return np.float64(pieces / words), np.float64(split / words)


FERTILITY = Exercise(
    id="pieces_per_word",
    title="Pieces for a word",
    asks="Give the number of pieces per word, and the share of words that are split.",
    parameters=("sentences",),
    outputs=("fertility", "split"),
    groups={"fertility": Group(1, "sentences of unequal lengths")},
    cases=fertility_cases,
    reference=fertility_reference,
    misconceptions=(
        Misconception(
            mean_of_sentence_means,
            "Each sentence is averaged first, so that words of short ones weigh more.",
            "How many divisions does each number need?",
        ),
        Misconception(
            later_pieces_only,
            "Only pieces after the first are counted.",
            "What is the fertility if no word is split?",
        ),
        Misconception(
            words_per_piece,
            "This is words per piece.",
            "Can fertility be smaller than 1?",
        ),
        Misconception(
            pieces_per_sentence,
            "This is pieces per sentence.",
            "By what do you divide?",
        ),
        Misconception(
            whole_words,
            "This is the share of whole words.",
            "How many pieces has a word that is split?",
        ),
        Misconception(
            share_of_later_pieces,
            "This is a share of pieces; a share of words is asked for.",
            "How often does a word of four pieces count?",
        ),
        Misconception(
            unknown_words_left_out,
            "Words that became [UNK] are left out; each is a word of one piece.",
            "How many words does the text have?",
        ),
        Misconception(
            different_pieces_only,
            "Pieces that come again are counted once.",
            "Do you count pieces of the text or of the vocabulary?",
        ),
    ),
    accepted=(by_sums, by_prefix, by_loop),
)
