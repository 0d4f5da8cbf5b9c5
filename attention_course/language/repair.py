"""Which corruption, undone without labels, prepares a network best for mending misspelt words?

Pre-training: frequent words of the plays are corrupted and restored. Fine-tuning: a few words with
one typing mistake each. Test: other mistakes in all words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_course.language.llama import Llama, Shape
from attention_course.language.training import fit

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MASK = "_"
SYMBOLS = "." + LETTERS + MASK + ">"  # padding first; ">" stands between input and output
NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS)}
LONGEST = 10  # characters of input, and of output
ROW = 2 * LONGEST + 2
SHAPE = Shape(vocabulary=len(SYMBOLS), width=48, layers=2, heads=4, key_heads=4, hidden=96)


def frequent_words(text: str, most: int = 300) -> list[str]:
    """List the most frequent words of 5 to 9 letters, the most frequent one first."""
    counts: dict[str, int] = {}
    for word in re.findall(r"[a-z]+", text.lower()):
        if 5 <= len(word) <= 9:
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def masked(text: str, draw: random.Random) -> str:
    """Every third letter or so becomes a mask."""
    return "".join(MASK if draw.random() < 0.3 else letter for letter in text)


def deleted(text: str, draw: random.Random) -> str:
    """Some letters go, and nothing tells where."""
    return "".join(letter for letter in text if draw.random() > 0.15)


def infilled(text: str, draw: random.Random) -> str:
    """A span of 0 to 4 letters becomes one mask."""
    start = draw.randrange(len(text))
    return text[:start] + MASK + text[start + draw.randrange(5) :]


def rotated(text: str, draw: random.Random) -> str:
    """The word starts anywhere and goes on at the beginning."""
    start = draw.randrange(len(text))
    return text[start:] + text[:start]


def misspelt(word: str, draw: random.Random) -> str:
    """One typing mistake: two letters exchanged, one lost, one doubled, or another letter."""
    i = draw.randrange(len(word) - 1)
    before, here, after, rest = word[:i], word[i], word[i + 1], word[i + 2 :]
    return draw.choice(
        [
            before + after + here + rest,
            before + after + rest,
            before + here + here + after + rest,
            before + draw.choice(LETTERS) + after + rest,
        ]
    )


CORRUPTIONS: dict[str, Callable[[str, random.Random], str]] = {
    "token masking": masked,
    "token deletion": deleted,
    "text infilling": infilled,
    "rotation": rotated,
}


def as_rows(inputs: Sequence[str], outputs: Sequence[str]) -> Tensor:
    """Write "input>output" pairs as rows of numbers, (pairs, ROW): inputs end at the same place.

    Padding stands in front of the input and behind the output.
    """
    lines = [
        f"{given[:LONGEST].replace('.', ''):.>{LONGEST}}>{wanted:.<{LONGEST + 1}}"
        for given, wanted in zip(inputs, outputs, strict=True)
    ]
    return torch.tensor([[NUMBERS[symbol] for symbol in line] for line in lines])


def _mask() -> Tensor:
    """Input in both directions, output in one: True = may be seen."""
    mask = torch.ones(ROW - 1, ROW - 1, dtype=torch.bool).tril()
    mask[:, : LONGEST + 1] = True
    return mask


def _loss(model: Llama, rows: Tensor) -> Tensor:
    """Loss of the outputs and of the first padding behind each."""
    logits = model(rows[:, :-1], _mask())[:, LONGEST:]
    targets = rows[:, LONGEST + 1 :].clone()
    ended = (targets == 0).cumsum(dim=1)
    targets[ended > 1] = -100
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def share_repaired(model: Llama, inputs: Sequence[str], outputs: Sequence[str]) -> float:
    """Share of outputs that the model gets right, all letters and the end.

    Judged with the true letters before each, which for a whole output is the same as greedily.
    """
    rows = as_rows(inputs, outputs)
    with torch.no_grad():
        said = model(rows[:, :-1], _mask())[:, LONGEST:].argmax(dim=-1)
    targets = rows[:, LONGEST + 1 :]
    behind = (targets == 0).cumsum(dim=1) > 1
    return ((said == targets) | behind).all(dim=1).float().mean().item()


def repair_score(
    words: Sequence[str],
    corruption: str | None,
    seed: int,
    *,
    steps: int = 120,
    labelled: int = 30,
    tuning: int = 60,
    batch: int = 16,
) -> float:
    """Pre-train with a corruption (None: not at all), fine-tune on misspellings, test.

    Labelled words, their mistakes and the test's are the same whatever the corruption.
    """
    draw, mistakes = random.Random(seed), random.Random(1_000 + seed)
    generator = torch.Generator().manual_seed(seed)
    model = Llama(SHAPE, generator)

    def restore(step: int) -> Tensor:
        originals = draw.choices(words, k=batch)
        corrupt = CORRUPTIONS[corruption]
        return _loss(model, as_rows([corrupt(word, draw) for word in originals], originals))

    if corruption is not None:
        fit(model, restore, steps, 4e-3)
    labels = mistakes.sample(list(words), labelled)
    rows = as_rows([misspelt(word, mistakes) for word in labels], labels)
    test = mistakes.choices(words, k=500)
    test_inputs = [misspelt(word, mistakes) for word in test]

    def mend(step: int) -> Tensor:
        chosen = torch.randint(labelled, (batch,), generator=generator)
        return _loss(model, rows[chosen])

    fit(model, mend, tuning, 2e-3)
    return share_repaired(model, test_inputs, test)
