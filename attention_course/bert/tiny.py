"""A BERT small enough to be trained in a cell, and the sentences that it learns from.

Sentences are the English side of `attention_course.data.fragment`. A batch holds sentences of one
length, so there is no padding. Blanks are always [MASK]: nothing is fine-tuned afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_course.data.fragment import sentences

BLANK, CLS, SEP = range(3)
SPECIAL = ("[MASK]", "[CLS]", "[SEP]")
LONGEST = 64
SHARE = 0.25  # of the words that are blanked: 15 % of these short sentences would be a single one
RATE = 5e-3


def english(seed: int, count: int) -> list[tuple[str, ...]]:
    """Draw different English sentences."""
    found: dict[tuple[str, ...], None] = {}
    for pair in sentences(seed):
        found.setdefault(pair.target)
        if len(found) == count:
            break
    return list(found)


class Corpus:
    """English sentences for training, and blanks in new ones to test with.

    `words` are the vocabulary, `groups` hold the training sentences of each length, int64 (count,
    length). `blanks` lists (tokens with one blank each, places, words that stood there).
    """

    def __init__(self, seed: int, train: int = 8000, test: int = 1000):
        drawn = english(seed, train + test)
        self.sentences, self.new = drawn[:train], drawn[train:]
        self.words = [*SPECIAL, *sorted({word for sentence in drawn for word in sentence})]
        self._ids = {word: number for number, word in enumerate(self.words)}
        self.groups = self.by_length(self.sentences)
        generator = torch.Generator().manual_seed(seed)
        self.blanks = [
            one_blank_each(tokens, generator) for tokens in self.by_length(self.new).values()
        ]

    def ids(self, sentence: Sequence[str]) -> list[int]:
        """Numbers of words. Raises ValueError for a word that the corpus does not have."""
        unknown = [word for word in sentence if word not in self._ids]
        if unknown:
            raise ValueError(f"the tiny BERT does not know {', '.join(unknown)}: use other words.")
        return [self._ids[word] for word in sentence]

    def by_length(self, lines: Sequence[Sequence[str]]) -> dict[int, Tensor]:
        """Group sentences by their lengths."""
        rows: dict[int, list[list[int]]] = {}
        for line in lines:
            rows.setdefault(len(line), []).append(self.ids(line))
        return {length: torch.tensor(group) for length, group in sorted(rows.items())}

    @property
    def _frequencies(self) -> Tensor:
        counts = torch.zeros(len(self.words), dtype=torch.float64)
        for tokens in self.groups.values():
            # The full stop is never asked for.
            counts += torch.bincount(tokens[:, :-1].flatten(), minlength=len(self.words))
        return (counts + 1) / (counts + 1).sum()

    @property
    def frequency_loss(self) -> float:
        """Nats per blank of somebody who knows how frequent words are and nothing else."""
        words = torch.cat([words for _, _, words in self.blanks])
        return float(-self._frequencies[words].log().mean())

    @property
    def most_frequent(self) -> int:
        """Number of the most frequent word."""
        return int(self._frequencies.argmax())

    @torch.no_grad()
    def fill(self, model: TinyBert, sentence: str, most: int = 4) -> list[tuple[str, float]]:
        """The model's best words for the first [MASK] of a sentence, with their probabilities."""
        tokens = torch.tensor([self.ids(sentence.split())])
        place = int((tokens[0] == BLANK).int().argmax())
        best, words = model(tokens)[0, place].softmax(-1).topk(most)
        return [(self.words[word], float(p)) for word, p in zip(words, best, strict=True)]


def one_blank_each(tokens: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Blank one word of each sentence, never its full stop: (tokens, places, words)."""
    places = torch.randint(tokens.shape[1] - 1, (len(tokens),), generator=generator)
    rows = torch.arange(len(tokens))
    blanked = tokens.clone()
    blanked[rows, places] = BLANK
    return blanked, places, tokens[rows, places]


class TinyBert(nn.Module):
    """PyTorch's pre-LN encoder between an embedding and a tied output."""

    def __init__(self, words: int, seed: int, d_model: int = 64, heads: int = 4, layers: int = 2):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.words = nn.Embedding(words, d_model)
            self.places = nn.Embedding(LONGEST, d_model)
            self.kinds = nn.Embedding(2, d_model)
            for table in (self.words, self.places, self.kinds):
                nn.init.normal_(table.weight, std=d_model**-0.5)
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    *(d_model, heads, 4 * d_model),
                    dropout=0.0,
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(layers)
            )
            self.norm = nn.LayerNorm(d_model)
            self.bias = nn.Parameter(torch.zeros(words))

    def embed(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """Vectors of tokens and their places, (batch, length, d_model)."""
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return x if segments is None else x + self.kinds(segments)

    def states(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """What comes out of the encoder, (batch, length, d_model)."""
        x = self.embed(tokens, segments)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """Scores of all words, (..., words)."""
        return states @ self.words.weight.T + self.bias

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """Logits (batch, length, words) of tokens (batch, length)."""
        return self.logits(self.states(tokens, segments))


@torch.no_grad()
def attention(model: TinyBert, tokens: Tensor) -> Tensor:
    """The weights of all layers and heads: (layers, batch, heads, length, length)."""
    x, found = model.embed(tokens), []
    for layer in model.layers:
        y = layer.norm1(x)
        found.append(layer.self_attn(y, y, y, average_attn_weights=False)[1])
        x = layer(x)
    return torch.stack(found)


def random_blanks(length: int, rows: int, share: float, generator: torch.Generator) -> Tensor:
    """Places of blanks, (rows, count): a share of each sentence, at least one."""
    count = max(1, round(share * (length - 1)))
    return torch.rand(rows, length - 1, generator=generator).topk(count, dim=1).indices


def loss_of_blanks(model: TinyBert, tokens: Tensor, places: Tensor, asked: int = 0) -> Tensor:
    """Mean cross-entropy of what stood at `places`; with `asked`, at the first so many of them."""
    answers = tokens.gather(1, places)
    states = model.states(tokens.scatter(1, places, BLANK))
    wanted = places[:, : asked or None]
    index = wanted[..., None].expand(-1, -1, states.shape[-1])
    logits = model.logits(states.gather(1, index))
    return F.cross_entropy(logits.flatten(0, 1), answers[:, : asked or None].flatten())


def optimise(model: nn.Module, losses: Iterator[Tensor], steps: int, rate: float) -> Iterator[int]:
    """Train with AdamW, the rate rising over 50 steps and then falling; yield after each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / 50) * max(0.05, 1 - step / steps)
        loss = next(losses)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield step


def _losses(model, corpus, generator, share, size, asked) -> Iterator[Tensor]:
    lengths = torch.tensor([len(sentence) for sentence in corpus.sentences])
    while True:
        length = int(lengths[torch.randint(len(lengths), (1,), generator=generator)])
        group = corpus.groups[length]
        tokens = group[torch.randint(len(group), (size,), generator=generator)]
        yield loss_of_blanks(
            model, tokens, random_blanks(length, size, share, generator), asked=asked
        )


def train(
    model: TinyBert,
    corpus: Corpus,
    seed: int,
    steps: int,
    *,
    share: float = SHARE,
    size: int = 32,
    rate: float = RATE,
    asked: int = 0,
) -> Iterator[int]:
    """Train the model in place on random blanks; yield the number of each step.

    With `asked`, only so many blanks of a sentence have a loss.
    """
    generator = torch.Generator().manual_seed(seed)
    return optimise(model, _losses(model, corpus, generator, share, size, asked), steps, rate)


@torch.no_grad()
def _answers(model: TinyBert, corpus: Corpus) -> tuple[Tensor, Tensor]:
    logits, words = [], []
    for tokens, places, wanted in corpus.blanks:
        logits.append(model(tokens)[torch.arange(len(tokens)), places])
        words.append(wanted)
    return torch.cat(logits), torch.cat(words)


def blank_loss(model: TinyBert, corpus: Corpus) -> float:
    """Nats per blank, one blank in each new sentence."""
    return float(F.cross_entropy(*_answers(model, corpus)))


def share_found(model: TinyBert, corpus: Corpus) -> float:
    """Share of these blanks that the first guess fills rightly."""
    logits, words = _answers(model, corpus)
    return float((logits.argmax(-1) == words).double().mean())


def share_of_the_most_frequent(corpus: Corpus) -> float:
    """Share of these blanks that the most frequent word fills rightly."""
    words = torch.cat([words for _, _, words in corpus.blanks])
    return float((words == corpus.most_frequent).double().mean())
