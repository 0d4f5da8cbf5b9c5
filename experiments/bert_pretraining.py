"""Make what chapter 09 shows of longer runs: `python experiments/bert_pretraining.py`.

Trains 51 tiny BERTs, some minutes on one thread. Each comparison goes into a file of its own,
`attention_course/data/records/bert_NAME.csv`, with a log beside it and a row for each run:
condition, seed, nats per blank and share of blanks found in new sentences, seconds of computing.
`blank_filler()` shows what is written to `attention_course/explorers/recorded_blanks.json`.
Arguments name what to record: "sentence", "share", "masking", "pairs"; without any, all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from attention_course.bert import tiny
from attention_course.bert.tiny import BLANK, CLS, SEP, Corpus, TinyBert
from attention_course.data import _fragment_words as lexicon
from attention_course.data.runs import RECORDS, record_runs
from attention_course.explorers.blank_filler import RECORDED, blank_sets, key

COLUMNS = ("condition", "seed", "loss", "found", "seconds")
SEEDS = range(5)
STEPS = 400
SENTENCE = "the old king does not eat apples ."


def measured(model: TinyBert, corpus: Corpus) -> tuple[float, float]:
    """Nats per blank, and share of blanks found, one blank in each new sentence."""
    return round(tiny.blank_loss(model, corpus), 4), round(tiny.share_found(model, corpus), 4)


# --- how many words are blanked ------------------------------------------------------------------

SHARES = {
    "15 %": {"share": 0.15},
    "30 %": {"share": 0.30},
    "50 %": {"share": 0.50},
    "80 %": {"share": 0.80},
    "30 %, loss on one blank": {"share": 0.30, "asked": 1},
}


def compare_shares() -> Iterator[tuple]:
    """Several shares of blanks, the same number of steps."""
    corpus = Corpus(seed=5)
    for condition, options in SHARES.items():
        for seed in SEEDS:
            model = TinyBert(len(corpus.words), seed)
            for _ in tiny.train(model, corpus, seed, STEPS, **options):
                pass
            yield condition, seed, *measured(model, corpus)


# --- static and dynamic masking ------------------------------------------------------------------

COPIES = {"static, 1 copy": 1, "static, 10 copies": 10, "dynamic": None}
FEW = 400  # sentences, so that an epoch is short: 400 steps are about 20 epochs


def masked_batches(corpus: Corpus, copies: int | None, seed: int) -> Iterator[tuple]:
    """Yield (tokens, places of blanks), epoch after epoch; `copies` as in RoBERTa's comparison."""
    epoch = 0
    while True:
        order = torch.Generator().manual_seed(1000 * seed + epoch)
        batches = []
        for length, tokens in corpus.groups.items():
            drawn = torch.Generator()
            drawn.manual_seed(
                7919 * seed + 101 * length + (epoch if copies is None else epoch % copies)
            )
            places = tiny.random_blanks(length, len(tokens), tiny.SHARE, drawn)
            shuffled = torch.randperm(len(tokens), generator=order)
            batches += [(tokens[rows], places[rows]) for rows in shuffled.split(32)]
        for number in torch.randperm(len(batches), generator=order):
            yield batches[number]
        epoch += 1


def compare_masking() -> Iterator[tuple]:
    """The same sentences again and again, with the same blanks, ten sets of blanks, or new ones."""
    corpus = Corpus(seed=5, train=FEW)
    for condition, copies in COPIES.items():
        for seed in SEEDS:
            model = TinyBert(len(corpus.words), seed)
            losses = (
                tiny.loss_of_blanks(model, tokens, places)
                for tokens, places in masked_batches(corpus, copies, seed)
            )
            for _ in tiny.optimise(model, losses, STEPS, tiny.RATE):
                pass
            yield condition, seed, *measured(model, corpus)


# --- with and without next-sentence prediction ---------------------------------------------------

PAIRS = 16  # in a batch
PAIR_WEIGHTS = {"with sentence pairs' loss": 1.0, "without": 0.0}


def topic(sentence: tuple[str, ...]) -> str:
    """The first noun of a sentence, in the singular."""
    nouns = {form: noun.english[0] for noun in lexicon.NOUNS for form in noun.english}
    return next((nouns[word] for word in sentence if word in nouns), "")


def sentence_pairs(
    corpus: Corpus, lines: list[tuple[str, ...]], generator: torch.Generator, least: int
) -> dict[int, tuple]:
    """Pairs of `lines` by their length: (tokens, segments, labels), at least `least` of a length.

    Neighbours in a text share a topic, so here the true second sentence begins with the same noun
    (label 0); a random one is any sentence with another one (label 1).
    """
    by_topic: dict[str, list] = {}
    for sentence in lines:
        by_topic.setdefault(topic(sentence), []).append(sentence)

    def draw(options):
        return options[int(torch.randint(len(options), (1,), generator=generator))]

    rows: dict[int, list] = {}
    for first in lines:
        label = int(torch.rand(1, generator=generator) < 0.5)
        second = draw(lines if label else by_topic[topic(first)])
        while label and topic(second) == topic(first):
            second = draw(lines)
        front = [CLS, *corpus.ids(first), SEP]
        back = [*corpus.ids(second), SEP]
        segments = [0] * len(front) + [1] * len(back)
        rows.setdefault(len(segments), []).append((front + back, segments, label))
    return {
        length: tuple(torch.tensor(column) for column in zip(*group, strict=True))
        for length, group in rows.items()
        if len(group) >= least
    }


def _pair_loss(model, classifier, tokens, segments, labels, weight, generator) -> Tensor:
    """Blanks everywhere but in special tokens, and the label of the pair read off [CLS]."""
    scores = torch.rand(tokens.shape, generator=generator).masked_fill(tokens <= SEP, -1)
    places = scores.topk(round(tiny.SHARE * tokens.shape[1]), dim=1).indices
    answers = tokens.gather(1, places)
    states = model.states(tokens.scatter(1, places, BLANK), segments)
    at_blanks = states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))
    words = F.cross_entropy(model.logits(at_blanks).flatten(0, 1), answers.flatten())
    return words + weight * F.cross_entropy(classifier(states[:, 0]), labels)


def compare_pairs() -> Iterator[tuple]:
    """The same pairs, with and without the loss of their labels."""
    corpus = Corpus(seed=5)
    drawn = torch.Generator().manual_seed(0)
    pairs = sentence_pairs(corpus, corpus.sentences, drawn, least=PAIRS)
    new = sentence_pairs(corpus, corpus.new, drawn, least=1)
    lengths = torch.tensor([length for length, group in pairs.items() for _ in group[0]])
    for condition, weight in PAIR_WEIGHTS.items():
        for seed in SEEDS:
            model, generator = TinyBert(len(corpus.words), seed), torch.Generator()
            generator.manual_seed(seed)
            classifier = model.pair = torch.nn.Linear(64, 2)
            for parameter in classifier.parameters():
                torch.nn.init.zeros_(parameter)  # not drawn: the generator of all is not seeded

            def losses(model=model, classifier=classifier, generator=generator, weight=weight):
                while True:
                    group = pairs[
                        int(lengths[torch.randint(len(lengths), (1,), generator=generator)])
                    ]
                    rows = torch.randint(len(group[0]), (PAIRS,), generator=generator)
                    batch = [column[rows] for column in group]
                    yield _pair_loss(model, classifier, *batch, weight, generator)

            for _ in tiny.optimise(model, losses(), 2 * STEPS, tiny.RATE):
                pass
            yield condition, seed, *measured_in_pairs(model, new)


@torch.no_grad()
def measured_in_pairs(model: TinyBert, pairs: dict[int, tuple]) -> tuple[float, float]:
    """As `measured`, one blank in each pair of new sentences."""
    generator, losses, right = torch.Generator().manual_seed(1), [], []
    for tokens, segments, _ in pairs.values():
        scores = torch.rand(tokens.shape, generator=generator).masked_fill(tokens <= SEP, -1)
        places, rows = scores.argmax(dim=1), torch.arange(len(tokens))
        blanked = tokens.clone()
        blanked[rows, places] = BLANK
        logits = model(blanked, segments)[rows, places]
        losses.append(F.cross_entropy(logits, tokens[rows, places], reduction="none"))
        right.append(logits.argmax(-1) == tokens[rows, places])
    found = torch.cat(right).double().mean()
    return round(float(torch.cat(losses).mean()), 4), round(float(found), 4)


# --- the recorded sentence -----------------------------------------------------------------------


@torch.no_grad()
def record_blanks(model: TinyBert, corpus: Corpus, sentence: str) -> dict:
    """All sets of one or two blanks in a sentence: guesses, and where each blank looks."""
    words = sentence.split()
    original, answers = torch.tensor([corpus.ids(words)]), {}
    for places in blank_sets(words):
        tokens = original.clone()
        tokens[0, list(places)] = BLANK
        chances = model(tokens)[0].softmax(-1)
        weights = tiny.attention(model, tokens).mean(dim=(0, 2))[0]
        answers[key(places)] = {
            str(place): {
                "words": [
                    [corpus.words[word], round(float(p), 2)]
                    for p, word in zip(*chances[place].topk(4), strict=True)
                ],
                "weights": [round(float(weight), 2) for weight in weights[place]],
            }
            for place in places
        }
    return {"tokens": words, "answers": answers}


def record_sentence() -> dict:
    """Train one tiny BERT as the notebook does, and record the sentence."""
    corpus = Corpus(seed=5)
    model = TinyBert(len(corpus.words), 0)
    for _ in tiny.train(model, corpus, 0, 900):
        pass
    return record_blanks(model, corpus, SENTENCE)


PARTS = {"share": compare_shares, "masking": compare_masking, "pairs": compare_pairs}


def timed(runs: Iterator[tuple]) -> Iterator[dict]:
    """Make a row of each run, with the seconds of computing that it took."""
    begin = time.process_time()
    for run in runs:
        seconds = round(time.process_time() - begin, 1)
        yield dict(zip(COLUMNS, (*run, seconds), strict=True))
        begin = time.process_time()


def main(names: list[str]) -> None:
    """Record what is named, everything if nothing is."""
    torch.set_num_threads(1)
    for name in names or ["sentence", *PARTS]:
        if name == "sentence":
            text = json.dumps(record_sentence(), ensure_ascii=False, separators=(",", ":"))
            RECORDED.write_text(text + "\n", encoding="utf-8")
            continue
        record_runs(RECORDS / f"bert_{name}.csv", COLUMNS, timed(PARTS[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
