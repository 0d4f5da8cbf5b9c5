"""Make the run that `decoder_stepper()` shows: train a translator, record greedy steps and beams.

Run `python -m autograder.record_translation`; it takes about a minute and writes
`attention_course/explorers/recorded_run.json`. It stands here and not in the student's package,
since beam search is an exercise.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import attention_course.explorers
from attention_course.data.fragment import translation_splits
from attention_course.translation import (
    TransformerTranslator,
    Vocabulary,
    read_prefixes,
    record_greedy,
    share_right,
    train,
)
from attention_course.translation.text import END

RUN = Path(attention_course.explorers.__file__).parent / "recorded_run.json"
BEAMS, POWER, LONGEST = 3, 1.0, 24
SENTENCE = "est-ce que la vieille actrice n' a pas caché son parapluie rouge ?"


def record_beams(model, sentence, source: Vocabulary, target: Vocabulary) -> list[list[dict]]:
    """Record every step of a beam search: its beams, best first, each with where it looks."""
    ids, live, steps = torch.tensor([source.ids(sentence)]), [([], 0.0)], []
    while live and len(steps) < LONGEST:
        following, weights = read_prefixes(model, [words for words, _ in live], ids)
        totals = following + torch.tensor([[total] for _, total in live])
        best, places = totals.flatten().topk(BEAMS)
        step, live_next = [], []
        for total, place in zip(best.tolist(), places.tolist(), strict=True):
            beam, word = divmod(place, following.shape[1])
            words = [*live[beam][0], word]
            step.append(
                {
                    "words": [target.words[i] for i in words],
                    "sum": round(total, 3),
                    "score": round(total / len(words) ** POWER, 3),
                    "finished": word == END,
                    "weights": [round(weight, 2) for weight in weights[beam].tolist()],
                }
            )
            if word != END:
                live_next.append((words, total))
        live = live_next
        steps.append(step)
        finished = [beam["score"] for step in steps for beam in step if beam["finished"]]
        # A live sum can only fall; once even its mean over the longest length is worse, stop.
        if finished and all(total / LONGEST**POWER < max(finished) for _, total in live):
            break
    return steps


def record() -> dict[str, Any]:
    """Train for three epochs, so that the model is still unsure here and there, and record."""
    torch.set_num_threads(1)
    pairs = translation_splits(seed=7, train=8000, test=200)
    source = Vocabulary(pair.source for pair in pairs["train"])
    target = Vocabulary(pair.target for pair in pairs["train"])
    torch.manual_seed(0)
    model = TransformerTranslator(len(source), len(target))
    for progress in train(model, pairs["train"], source, target, epochs=3, seed=0):
        print(progress)
    print(f"{share_right(model, pairs['test'], source, target):.1%} right")
    sentence = SENTENCE.split()
    run = record_greedy(model, sentence, source, target, LONGEST)
    return {**run, "beams": record_beams(model, sentence, source, target)}


if __name__ == "__main__":
    RUN.write_text(json.dumps(record(), ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
