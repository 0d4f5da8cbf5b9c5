"""What a pre-trained encoder is good for: tags, acceptability, and wrong words without labels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course.electra.corpus import (
    FIRST_WORD,
    MASK,
    PADDING,
    TAGS,
    UNTAGGED,
    Corpus,
    padded,
)
from attention_course.electra.model import Encoder
from attention_course.electra.objectives import SHARE, Pretraining

PROBE_SENTENCES, RIDGE = 30, 1.0
ACCEPTABILITY_LABELS, EPOCHS, BATCH, RATE = 1_000, 8, 32, 1e-3
TEST_SEED = 7  # which sentences of the test are spoiled, and how: the same for every run


def tagging(encoder: Encoder, corpus: Corpus, seed: int) -> float:
    """Share of test words tagged right by a linear map of frozen states, fitted by least squares.

    It is fitted to 30 labelled sentences, which `seed` chooses.
    """
    rng = np.random.default_rng(seed)
    some = rng.choice(len(corpus.labelled), PROBE_SENTENCES, replace=False)
    states, labels = _tagged(encoder, [corpus.labelled[i] for i in some])
    centre, scale = states.mean(dim=0), states.std(dim=0) + 1e-5
    known = (states - centre) / scale
    wanted = F.one_hot(labels, TAGS).float()
    mean = wanted.mean(dim=0)
    penalty = RIDGE * torch.eye(known.shape[1])
    weights = torch.linalg.solve(known.T @ known + penalty, known.T @ (wanted - mean))
    states, labels = _tagged(encoder, corpus.test)
    guesses = ((states - centre) / scale @ weights + mean).argmax(dim=-1)
    return (guesses == labels).float().mean().item()


@torch.no_grad()
def _tagged(encoder: Encoder, some: Sequence) -> tuple[torch.Tensor, torch.Tensor]:
    labels = padded([tags for _, tags in some], UNTAGGED)
    states = encoder.eval()(padded([ids for ids, _ in some]))
    return states[labels != UNTAGGED], labels[labels != UNTAGGED]


class _Judge(nn.Module):
    """Acceptable or not: the mean state of a sentence's words, then a linear map."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        self.encoder, self.score = copy.deepcopy(encoder), nn.Linear(encoder.d_model, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        real = (ids != PADDING).float()
        mean = torch.einsum("bl,bld->bd", real, self.encoder(ids)) / real.sum(1, keepdim=True)
        return self.score(F.dropout(mean, 0.1, self.training))[:, 0]


def _judged(corpus: Corpus, sentences: Sequence, rng: np.random.Generator) -> list:
    """Spoil every second sentence on average: pairs (ids, 1 if spoiled)."""
    found = []
    for ids, _ in sentences:
        spoiled = corpus.spoiled(ids, rng)
        if spoiled:
            found.append((spoiled[0], 1.0) if rng.random() < 0.5 else (ids, 0.0))
    return found


def acceptability(
    encoder: Encoder, corpus: Corpus, seed: int, count: int = ACCEPTABILITY_LABELS
) -> float:
    """Share of test sentences judged right after fine-tuning a copy of the whole encoder.

    Half of the sentences have one adjective or verb in a form that does not agree. There are
    `count` labels, which `seed` chooses; so does the fine-tuning's own chance.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(corpus.labelled))
    known = _judged(corpus, [corpus.labelled[i] for i in order], rng)[:count]
    asked = _judged(corpus, corpus.test, np.random.default_rng(TEST_SEED))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        judge = _Judge(encoder).train()
        steps = EPOCHS * (len(known) // BATCH)
        optimizer = torch.optim.AdamW(judge.parameters(), lr=RATE, weight_decay=0.01, fused=True)
        for step in range(steps):
            if step % (len(known) // BATCH) == 0:
                order = rng.permutation(len(known))
            first = step * BATCH % (len(known) // BATCH * BATCH)
            rows = [known[i] for i in order[first : first + BATCH]]
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, 10 * (step + 1) / steps) * max(0.02, 1 - step / steps)
            labels = torch.tensor([label for _, label in rows])
            scores = judge(padded([ids for ids, _ in rows]))
            loss = F.binary_cross_entropy_with_logits(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
            optimizer.step()
    with torch.no_grad():
        scores = judge.eval()(padded([ids for ids, _ in asked]))
    labels = torch.tensor([label for _, label in asked])
    return ((scores > 0) == (labels > 0.5)).float().mean().item()


@torch.no_grad()
def replaced_suspicion(model: Pretraining, ids: torch.Tensor) -> torch.Tensor:
    """Score each place of ids (batch, length) by the discriminator: one pass. Large: replaced."""
    model.eval()
    return model.head(model.encoder(ids)).masked_fill(ids < FIRST_WORD, -torch.inf)


@torch.no_grad()
def mlm_suspicion(model: Pretraining, ids: torch.Tensor) -> torch.Tensor:
    """Score each place by −log p(word | the rest): each word is masked in turn, a pass for each."""
    model.eval()
    scores = torch.full(ids.shape, -torch.inf)
    for place in range(ids.shape[1]):
        rows = (ids[:, place] >= FIRST_WORD).nonzero()[:, 0]
        if not len(rows):
            continue
        hidden = ids[rows].clone()
        hidden[:, place] = MASK
        log_p = model.head(model.encoder(hidden)[:, place]).log_softmax(-1)
        scores[rows, place] = -log_p.gather(-1, ids[rows, place][:, None])[:, 0]
    return scores


def detection(
    suspicion: Callable[[Pretraining, torch.Tensor], torch.Tensor],
    model: Pretraining,
    corpus: Corpus,
) -> dict[str, float]:
    """Let a model point at the one wrong form in each test sentence; it never saw a label.

    Returns:
        "points": share of sentences where the wrong word has the highest score; "pairs": share
        where the highest score of the wrong sentence is above that of the right one; "chance":
        what pointing blindly would give for "points".
    """
    rng = np.random.default_rng(TEST_SEED)
    made = [(ids, corpus.spoiled(ids, rng)) for ids, _ in corpus.test]
    made = [(ids, *spoiled) for ids, spoiled in made if spoiled]
    right = suspicion(model, padded([ids for ids, _, _ in made]))
    wrong = suspicion(model, padded([ids for _, ids, _ in made]))
    places = torch.tensor([place for _, _, place in made])
    best_wrong, best_right = wrong.amax(dim=1), right.amax(dim=1)
    return {
        "points": (wrong.argmax(dim=1) == places).float().mean().item(),
        "pairs": (best_wrong > best_right).float().mean().item(),
        "chance": (1 / (wrong > -torch.inf).sum(dim=1)).mean().item(),
    }


@torch.no_grad()
def guessing(model: Pretraining, corpus: Corpus) -> dict[str, float]:
    """How a generator fills 15 % of the test's words, the same ones for every model.

    Returns:
        "guessed": share of words that it thinks likeliest and that are right; "entropy": of its
        distributions, in nats, on average. A low one means that its samples hardly vary.
    """
    tokens = padded([ids for ids, _ in corpus.test])
    draws = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(TEST_SEED))
    chosen = (draws < SHARE) & (tokens >= FIRST_WORD)
    log_words = model.eval().generator_logits(tokens, chosen).log_softmax(-1)
    return {
        "guessed": (log_words.argmax(-1) == tokens[chosen]).float().mean().item(),
        "entropy": -(log_words.exp() * log_words).sum(-1).mean().item(),
    }
