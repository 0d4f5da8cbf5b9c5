"""Train chapter 09's blank filler: `nice -n 15 python experiments/bert_filler.py`.

Some minutes of computing on one thread. Writes `bert_filler.safetensors` and `.json` (hash, seed,
losses, date, machine) into `attention_course/data/checkpoints/`.

The network is the BERT of Hugging Face's `transformers`, small: so its weights have the names that
the chapter uses, and the chapter's code is compared with another one. It learns from the English
side of the course's fragment of grammar. All blanks are [MASK], since nobody fine-tunes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from attention_course.bert.filler import FILLER
from attention_course.bert.reading import piece_tokenizer
from attention_course.bert.tiny import english, optimise, random_blanks
from attention_course.checkpoints import CHECKPOINTS, save
from attention_course.data.runs import RECORDS, recording_options

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BLANK = SPECIAL.index("[MASK]")
SEED, TEXT_SEED = 9, 5
TRAIN, NEW = 20_000, 2_000  # sentences
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.05,
}
STEPS, BATCH = 4000, 64  # sentences in a batch
SHARE, RATE = 0.25, 2e-3
EVERY = 250  # steps between two entries of the log


def texts(train: int = TRAIN, new: int = NEW) -> tuple[list[str], list[str]]:
    """Draw sentences to learn from and others to test with; none is in both."""
    drawn = [" ".join(sentence) for sentence in english(TEXT_SEED, train + new)]
    return drawn[:train], drawn[train:]


def by_length(pieces: list[str], sentences: list[str]) -> dict[int, Tensor]:
    """Group sentences by the number of their tokens: length → int64 (count, length)."""
    tokenizer = piece_tokenizer(pieces)
    tokenizer.no_padding()
    groups: dict[int, list[list[int]]] = {}
    for one in tokenizer.encode_batch(sentences):
        groups.setdefault(len(one), []).append(one.ids)
    return {length: torch.tensor(group) for length, group in sorted(groups.items())}


# --- training ------------------------------------------------------------------------------------


def logits_at(model: BertForMaskedLM, tokens: Tensor, places: Tensor) -> Tensor:
    """Logits (rows, count, pieces) at `places` (rows, count) only: the head is the larger half."""
    states = model.bert(input_ids=tokens)[0]
    return model.cls(states.gather(1, places[..., None].expand(-1, -1, states.shape[-1])))


def losses(model: BertForMaskedLM, groups: dict[int, Tensor], seed: int) -> Iterator[Tensor]:
    """Yield the loss of one batch after the other; every sentence is as likely as any other."""
    generator = torch.Generator().manual_seed(seed)
    lengths = list(groups)
    chances = torch.tensor([float(len(tokens)) for tokens in groups.values()])
    while True:
        length = lengths[int(torch.multinomial(chances, 1, generator=generator))]
        group = groups[length]
        tokens = group[torch.randint(len(group), (BATCH,), generator=generator)]
        # `random_blanks` leaves the last place alone; here the first one is special, too.
        places = 1 + random_blanks(length - 1, BATCH, SHARE, generator)
        logits = logits_at(model, tokens.scatter(1, places, BLANK), places)
        yield F.cross_entropy(logits.flatten(0, 1), tokens.gather(1, places).flatten())


# --- what it knows -------------------------------------------------------------------------------


def one_blank_each(groups: dict[int, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (sentences, place of a blank in each, (rows, 1)) of each length; always the same.

    The full stop is never asked for.
    """
    generator = torch.Generator().manual_seed(0)
    for length, tokens in groups.items():
        yield tokens, torch.randint(1, length - 2, (len(tokens), 1), generator=generator)


@torch.no_grad()
def model_logs(model: BertForMaskedLM, tokens: Tensor, places: Tensor) -> Tensor:
    """The model's log p of all pieces at a blank, (rows, pieces)."""
    return logits_at(model, tokens.scatter(1, places, BLANK), places)[:, 0].log_softmax(-1)


def score(predict, blanks: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Nats per blank and share of blanks found of `predict(tokens, places)` → (rows, pieces)."""
    nats, right = [], []
    for tokens, places in blanks:
        for rows, place in zip(tokens.split(512), places.split(512), strict=True):
            logs, wanted = predict(rows, place), rows.gather(1, place)
            nats.append(-logs.gather(1, wanted))
            right.append(logs.argmax(-1, keepdim=True) == wanted)
    return {
        "nats": round(float(torch.cat(nats).mean()), 4),
        "found": round(float(torch.cat(right).double().mean()), 4),
    }


class Counts:
    """Counts of pieces and of neighbours, as log-probabilities of a blank."""

    def __init__(self, groups: dict[int, Tensor]):
        size = 1 + max(int(tokens.max()) for tokens in groups.values())
        self.one = torch.zeros(size)
        two = torch.zeros(size * size)
        for tokens in groups.values():
            self.one += torch.bincount(tokens[:, 1:-2].flatten(), minlength=size)
            pairs = (tokens[:, :-1] * size + tokens[:, 1:]).flatten()
            two += torch.bincount(pairs, minlength=size * size)
        self.one = (self.one + 0.1) / (self.one + 0.1).sum()
        self.two = two.view(size, size)

    def _neighbour(self, counts: Tensor, known: float) -> Tensor:
        """Mix the counts beside a neighbour, (rows, pieces), with the frequencies."""
        total = counts.sum(-1, keepdim=True)
        share = total / (total + known)  # the more was counted, the more it is trusted
        return share * counts / total.clamp(min=1) + (1 - share) * self.one

    def frequencies(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Log p of each piece, whatever stands around."""
        return self.one.log().expand(len(tokens), -1)

    def left(self, known: float, tokens: Tensor, places: Tensor) -> Tensor:
        """Log p given the piece before the blank."""
        return self._neighbour(self.two[tokens.gather(1, places - 1)[:, 0]], known).log()

    def both(self, known: float, tokens: Tensor, places: Tensor) -> Tensor:
        """Log p given the pieces before and behind, as if these were independent of each other."""
        after = self.two[:, tokens.gather(1, places + 1)[:, 0]].T
        behind = self._neighbour(after, known).log() - self.one.log()
        return (self.left(known, tokens, places) + behind).log_softmax(-1)


KNOWN = (1.0, 10.0, 100.0)


def baselines(groups: dict[int, Tensor], blanks: list[tuple[Tensor, Tensor]]) -> dict[str, dict]:
    """Score counts of words and of neighbours; the best mixture is chosen on the test itself."""
    counts = Counts(groups)
    found = {"frequencies": score(counts.frequencies, blanks)}
    for name, way in (("left neighbour", counts.left), ("both neighbours", counts.both)):
        tried = [score(lambda t, p, w=way, k=k: w(k, t, p), blanks) for k in KNOWN]
        found[name] = min(tried, key=lambda result: result["nats"])
    return found


def trained(pieces: list[str], groups: dict[int, Tensor], blanks, steps: int):
    """Train a model; give it, its log and the seconds of computing."""
    torch.manual_seed(SEED)
    model, log = BertForMaskedLM(BertConfig(**SIZES, vocab_size=len(pieces))), []
    begin = time.process_time()
    for step in optimise(model, losses(model, groups, SEED), steps, RATE):
        if step % EVERY == 0:
            log.append({"step": step, **score(lambda t, p: model_logs(model, t, p), blanks)})
            print(log[-1], f"{time.process_time() - begin:.0f} s", flush=True)
    return model, log, time.process_time() - begin


def main() -> None:
    """Train, measure, and write the checkpoint."""
    options = recording_options(__doc__.splitlines()[0])
    torch.set_num_threads(1)
    steps = EVERY if options.small else STEPS
    learned, new = texts()
    pieces = [*SPECIAL, *sorted({word for line in learned + new for word in line.split()})]
    groups, blanks = by_length(pieces, learned), list(one_blank_each(by_length(pieces, new)))
    known = baselines(groups, blanks)
    model, log, seconds = trained(pieces, groups, blanks[::3], steps)

    model = model.half().float().eval()  # measured as it will be stored
    known["this BERT"] = score(lambda t, p: model_logs(model, t, p), blanks)
    print(known, flush=True)
    weights = {
        name: weight
        for name, weight in model.state_dict().items()
        # The output matrix is the word table; the numbers of places are no weights.
        if ".decoder." not in name and weight.is_floating_point()
    }
    sizes = {**SIZES, "vocab_size": len(pieces)}
    about = {"sizes": sizes, "pieces": pieces, "new_text": known}
    how = {"command": "python experiments/bert_filler.py", "seed": SEED, "steps": steps}
    path = (CHECKPOINTS if options.folder == RECORDS else options.folder) / FILLER.name
    print(save(path, weights, about=about, seconds=seconds, losses=log, **how))


if __name__ == "__main__":
    main()
