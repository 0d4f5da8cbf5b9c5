"""Do noun and verb agree when both are blanks? Measured on the tiny BERT.

Chapter 13 measures two other ways of training on the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attention_course.bert.tiny import BLANK, Corpus, TinyBert
from attention_course.data import _fragment_words as words

NOUNS = {noun.english for noun in words.NOUNS if noun.english[0] != noun.english[1]}
VERBS = {verb.english[:2] for verb in [*words.TRANSITIVE, *words.INTRANSITIVE]}
MOST = 100  # sentences that are measured
NOUN, VERB = 1, 2  # their places in `subjects`


def numbers(corpus: Corpus) -> tuple[list[Tensor], list[Tensor]]:
    """Ids of nouns and of verbs, each as (those of singular subjects, those of plural ones)."""
    known = set(corpus.words)
    nouns = [[noun[form] for noun in NOUNS if noun[form] in known] for form in (0, 1)]
    verbs = [[verb[form] for verb in VERBS if verb[form] in known] for form in (1, 0)]
    return tuple(
        [torch.tensor(corpus.ids(sorted(group))) for group in pair] for pair in (nouns, verbs)
    )


def subjects(corpus: Corpus, sentences: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """Ids of those sentences that begin with "the", a noun and a present form of its verb."""
    nouns = {form for noun in NOUNS for form in noun}
    verbs = {form for verb in VERBS for form in verb}
    for sentence in sentences:
        if sentence[0] == "the" and sentence[NOUN] in nouns and sentence[VERB] in verbs:
            yield corpus.ids(sentence)


def number_shares(logits: Tensor, groups: list[Tensor]) -> Tensor:
    """Probabilities of singular and plural among the words of a kind, (..., 2)."""
    parts = torch.stack([logits[..., group].logsumexp(-1) for group in groups], dim=-1)
    return parts.softmax(-1)


@torch.no_grad()
def shares(model: TinyBert, corpus: Corpus, seed: int) -> tuple[float, float]:
    """How often noun and verb agree in number: drawn at once, and one after the other.

    Only nouns count at the noun's place and present forms at the verb's. The first number is exact,
    the second follows one drawn noun for each sentence.
    """
    nouns, verbs = numbers(corpus)
    every = torch.cat(nouns)
    generator = torch.Generator().manual_seed(seed)
    at_once, in_turn = [], []
    for ids in list(subjects(corpus, corpus.new))[:MOST]:
        tokens = torch.tensor([ids])
        tokens[0, [NOUN, VERB]] = BLANK
        logits = model(tokens)[0]
        noun, verb = number_shares(logits[NOUN], nouns), number_shares(logits[VERB], verbs)
        at_once.append(float(noun @ verb))
        chances = logits[NOUN, every].softmax(-1)
        drawn = every[torch.multinomial(chances, 1, generator=generator)]
        tokens[0, NOUN] = drawn
        verb = number_shares(model(tokens)[0, VERB], verbs)
        in_turn.append(float(verb[int(drawn in nouns[1])]))
    return sum(at_once) / len(at_once), sum(in_turn) / len(in_turn)


@torch.no_grad()
def examples(model: TinyBert, corpus: Corpus, count: int = 3) -> Iterator[str]:
    """What the model thinks of noun and verb, for some sentences, in words."""
    nouns, verbs = numbers(corpus)
    for ids in list(subjects(corpus, corpus.new))[:count]:
        tokens = torch.tensor([ids])
        tokens[0, [NOUN, VERB]] = BLANK
        logits = model(tokens)[0]
        noun, verb = number_shares(logits[NOUN], nouns), number_shares(logits[VERB], verbs)
        text = " ".join(corpus.words[token] for token in tokens[0])
        yield f"{text}  noun singular: {noun[0]:.2f}, verb singular: {verb[0]:.2f}"
