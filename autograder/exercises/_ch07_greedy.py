"""Exercise of chapter 07: greedy decoding of a batch."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.drivers.decoding import TableModel
from attention_course.drivers.tensors import as_tensors
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

SOURCE_WORDS, WORDS, PLACES = 9, 8, 12


def draw_model(rng, forbidden, sharpness=1.5):
    """Draw the tables of a `TableModel` that never gives a word of `forbidden`."""
    follow = sharpness * rng.normal(size=(WORDS, WORDS))
    follow[:, list(forbidden)] -= 40.0
    return {
        "sources": sharpness * rng.normal(size=(SOURCE_WORDS, WORDS)) / 2,
        "follow": follow,
        "places": sharpness * rng.normal(size=(PLACES, WORDS)) / 2,
    }


def _first_ends(tokens, end):
    """Length of each row, its end token included; one more than the width without an end."""
    found = tokens == end
    return torch.where(found.any(1), found.long().argmax(1) + 1, tokens.shape[1] + 1).tolist()


def greedy_decode_cases(rng):
    """Rows that end at different steps; rows that never end; counted calls."""
    for group, batch, longest, never, about in (
        ("tokens", 3, 9, 0, "sentences that end at different steps"),
        ("tokens", 2, 8, 0, "another batch"),
        ("limits", 3, 6, 1, "a sentence that reaches the limit"),
        ("limits", 1, 9, 0, "one sentence"),
        ("once", 3, 9, 0, "calls of encoder and decoder are counted"),
    ):
        while True:
            start, end, padding = (int(i) for i in rng.choice(WORDS, 3, replace=False))
            source = rng.integers(0, SOURCE_WORDS, size=(batch, int(rng.choice([4, 5, 6]))))
            inputs = {
                "model": draw_model(rng, (start, padding)),
                "source": source,
                "start": start,
                "end": end,
                "padding": padding,
                "longest": longest,
                "counted": group == "once",
            }
            given = as_tensors({name: value for name, value in inputs.items() if name != "counted"})
            model = TableModel(**given.pop("model"))
            tokens = greedy_decode_reference(model=model, **given)
            lengths = _first_ends(tokens, end)
            unended = sum(length > tokens.shape[1] for length in lengths)
            ended = [length for length in lengths if length <= tokens.shape[1]]
            apart = len(set(ended)) == len(ended) and min(ended, default=0) >= 2
            if unended == never and apart and (never or max(lengths) < longest - 1):
                break
        yield Case(group, inputs, about)


def greedy_decode_reference(model, source, start, end, padding, longest):
    """Python lists, one sentence after the other in every step."""
    memory = model.encode(source)
    rows = [[start] for _ in source]
    for _ in range(longest):
        if all(row[-1] in (end, padding) for row in rows):
            break
        scores = model.decode(torch.tensor(rows), memory)
        for row, last in zip(rows, scores[:, -1].tolist(), strict=True):
            over = row[-1] in (end, padding)
            row.append(padding if over else int(np.argmax(last)))
    return torch.tensor([row[1:] for row in rows])


def _write(model, source, start, end, padding, longest, pick=None, stop=None, after=None):
    """Greedy decoding with parts that wrong versions exchange."""
    memory = model.encode(source)
    tokens = torch.full((len(source), 1), start)
    ended = torch.zeros(len(source), dtype=torch.bool)
    stop = stop or (lambda ended: bool(ended.all()))
    for _ in range(longest):
        scores = model.decode(tokens, memory)
        new = pick(scores) if pick else scores[:, -1].argmax(-1)
        new = after(new, ended) if after is not None else torch.where(ended, padding, new)
        tokens = torch.cat([tokens, new[:, None]], dim=1)
        ended = ended | (new == end)
        if stop(ended):
            break
    return tokens[:, 1:]


def scores_of_the_first_place(model, source, start, end, padding, longest):
    """Reads the scores at place 0 in every step."""
    return _write(
        model, source, start, end, padding, longest, lambda scores: scores[:, 0].argmax(-1)
    )


def all_stop_at_the_first_end(model, source, start, end, padding, longest):
    """Stops the whole batch when one sentence ends."""

    def stop(ended):
        return bool(ended.any())

    return _write(model, source, start, end, padding, longest, stop=stop)


def never_stops(model, source, start, end, padding, longest):
    """Always makes `longest` steps."""
    return _write(model, source, start, end, padding, longest, stop=lambda ended: False)


def goes_on_after_the_end(model, source, start, end, padding, longest):
    """Keeps writing words in sentences that have ended."""
    return _write(model, source, start, end, padding, longest, after=lambda new, ended: new)


def end_repeated(model, source, start, end, padding, longest):
    """Fills up with the end token."""

    def after(new, ended):
        return torch.where(ended, end, new)

    return _write(model, source, start, end, padding, longest, after=after)


def start_kept(model, source, start, end, padding, longest):
    """Leaves the start token in the result."""
    tokens = _write(model, source, start, end, padding, longest)
    return torch.cat([torch.full((len(source), 1), start), tokens], dim=1)


def end_left_out(model, source, start, end, padding, longest):
    """Replaces the end token by padding."""
    tokens = _write(model, source, start, end, padding, longest)
    return tokens.masked_fill(tokens == end, padding)


def least_likely_word(model, source, start, end, padding, longest):
    """argmin."""

    def pick(scores):
        return scores[:, -1].argmin(-1)

    return _write(model, source, start, end, padding, longest, pick)


def only_the_last_word_read(model, source, start, end, padding, longest):
    """Gives the decoder the last word instead of the prefix."""
    memory, new = model.encode(source), torch.full((len(source), 1), start)
    ended, words = torch.zeros(len(source), dtype=torch.bool), []
    for _ in range(longest):
        new = torch.where(ended, padding, model.decode(new, memory)[:, -1].argmax(-1))[:, None]
        words.append(new)
        ended = ended | (new[:, 0] == end)
        if ended.all():
            break
    return torch.cat(words, dim=1)


def one_step_short(model, source, start, end, padding, longest):
    """Counts the start token into the limit."""
    return _write(model, source, start, end, padding, longest - 1)


def encoder_in_the_loop(model, source, start, end, padding, longest):
    """Encodes the source again in every step."""

    class Again:
        def encode(self, source):
            return None

        def decode(self, tokens, memory):
            return model.decode(tokens, model.encode(source))

    return _write(Again(), source, start, end, padding, longest)


def sentence_by_sentence(model, source, start, end, padding, longest):
    """Decodes one sentence after the other: as many decoder calls as words."""
    rows = [_write(model, row[None], start, end, padding, longest)[0] for row in source]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding)


def into_a_full_tensor(model, source, start, end, padding, longest):
    """Right: writes into a tensor of padding, cuts it in the end."""
    memory = model.encode(source)
    tokens = torch.full((len(source), longest + 1), padding)
    tokens[:, 0] = start
    open_rows, made = torch.ones(len(source), dtype=torch.bool), 0
    while made < longest and open_rows.any():
        new = model.decode(tokens[:, : made + 1], memory)[:, made].max(dim=-1).indices
        made += 1
        tokens[open_rows, made] = new[open_rows]
        open_rows &= new != end
    return tokens[:, 1 : made + 1]


def with_lists(model, source, start, end, padding, longest):
    """Right: a list of columns, joined in the end."""
    memory, columns = model.encode(source), []
    prefix = source.new_full((source.shape[0], 1), start)
    over = torch.zeros(source.shape[0], dtype=torch.bool)
    while len(columns) < longest and not over.all():
        probabilities = model.decode(prefix, memory)[:, -1, :].softmax(dim=-1)
        column = probabilities.argmax(dim=-1).masked_fill(over, padding)
        columns.append(column)
        over = over.logical_or(column == end)
        prefix = torch.cat([prefix, column.unsqueeze(1)], dim=-1)
    return torch.stack(columns, dim=1)


def only_open_rows_decoded(model, source, start, end, padding, longest):
    """Right: hands only unfinished rows to the decoder."""
    memory, rows = model.encode(source), [[start] for _ in source]
    for step in range(longest):
        live = [i for i, row in enumerate(rows) if row[-1] != end and len(row) == step + 1]
        if not live:
            break
        prefixes = torch.tensor([rows[i] for i in live])
        best = model.decode(prefixes, memory[live])[:, -1].argmax(-1).tolist()
        for i, word in zip(live, best, strict=True):
            rows[i].append(word)
    width = max(map(len, rows))
    return torch.tensor([row[1:] + [padding] * (width - len(row)) for row in rows])


GREEDY_DECODE = Exercise(
    id="greedy_decode",
    title="Greedy decoding of a batch",
    asks="Write word after word, the best each time; stop each sentence at its end; encode once.",
    parameters=("model", "source", "start", "end", "padding", "longest", "counted"),
    outputs=("tokens", "encoder calls", "decoder calls"),
    driver="search",
    seconds=5.0,
    groups={
        "tokens": Group(2, "sentences that end at different steps"),
        "limits": Group(1, "the limit, and a single sentence"),
        "once": Group(1, "the encoder runs once, the decoder once a step"),
    },
    cases=greedy_decode_cases,
    reference=greedy_decode_reference,
    misconceptions=(
        Misconception(
            scores_of_the_first_place,
            "The scores are read at place 0 in every step; the new word's stand at the last place.",
            "Which row of the logits has seen the whole prefix?",
        ),
        Misconception(
            all_stop_at_the_first_end,
            "The whole batch stops when its first sentence ends.",
            "When may the loop stop: when any or when all have ended?",
        ),
        Misconception(
            never_stops,
            "The loop goes on after all sentences have ended.",
            "Which condition ends your loop?",
        ),
        Misconception(
            goes_on_after_the_end,
            "Sentences that have ended keep getting words; there should be padding.",
            "Who remembers which rows have ended?",
        ),
        Misconception(
            end_repeated,
            "Rows are filled up with the end token; the contract asks for padding.",
            "Which id comes after the end token?",
        ),
        Misconception(
            start_kept,
            "The start token stands in the result.",
            "Is the start token a word of the translation?",
        ),
        Misconception(
            end_left_out,
            "The end token is missing in the result.",
            "Which is the last token of a sentence by the contract?",
        ),
        Misconception(
            least_likely_word,
            "The word with the lowest score is taken.",
            "Does a better word have a higher or a lower logit?",
        ),
        Misconception(
            only_the_last_word_read,
            "The decoder gets the last word only; it needs the whole prefix to know its place.",
            "What is the shape of the `target` that you hand over in step 3?",
        ),
        Misconception(
            one_step_short,
            "One word too few is written when the limit is reached.",
            "Does the start token count as one of the `longest` words?",
        ),
        Misconception(
            encoder_in_the_loop,
            "The encoder runs in every step. The source does not change: once is enough.",
            "Which call can stand before the loop?",
        ),
        Misconception(
            sentence_by_sentence,
            "Sentences are decoded one after the other; one call of the decoder serves the whole "
            "batch.",
            "How many rows does your `target` have?",
        ),
    ),
    accepted=(into_a_full_tensor, with_lists, only_open_rows_decoded),
    equivalent_mutants={
        "`model.decode(words, memory)[:, -1].argmax(dim=-1)` → "
        "`model.decode(words, memory)[:, -1].argmax(dim=1)`": "two axes are left",
    },
)
