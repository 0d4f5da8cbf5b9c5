"""Chapter 11: five objectives as three switches of one training step."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_parts import (
    FIRST_WORD,
    MASK,
    draw_chosen,
    draw_corrupted,
    draw_tokens,
)

OBJECTIVES = ("BERT", "Replace MLM", "All-Tokens MLM", "ELECTRA 15%", "ELECTRA")


def step_plan_cases(rng):
    """Each objective; a name that is none."""
    for objective in (*OBJECTIVES, "GPT"):
        tokens = draw_tokens(rng, int(rng.integers(2, 4)), int(rng.integers(8, 11)))
        chosen = draw_chosen(rng, tokens)
        yield Case(
            "refused" if objective == "GPT" else "values",
            {
                "objective": objective,
                "tokens": tokens,
                "masked": tokens * ~chosen + MASK * chosen,
                "corrupted": draw_corrupted(rng, tokens, chosen),
                "chosen": chosen,
                "first_word": FIRST_WORD,
            },
            objective,
        )


# objective: (reads the corrupted sentence, is asked for words, on every word)
_PLAN = {
    "BERT": (False, True, False),
    "Replace MLM": (True, True, False),
    "All-Tokens MLM": (True, True, True),
    "ELECTRA 15%": (True, False, False),
    "ELECTRA": (True, False, True),
}


def _plan(objective, tokens, masked, corrupted, chosen, first_word, plan=None, **change):
    table = {**_PLAN, **(plan or {})}
    if objective not in table:
        raise ValueError(f"unknown objective {objective!r}")
    reads, says_words, everywhere = table[objective]
    given = (corrupted if reads else masked).clone()
    wanted = tokens.clone() if says_words else (corrupted != tokens).long()
    asked = tokens >= first_word if everywhere else chosen.clone()
    return given, asked, wanted


def step_plan_reference(objective, tokens, masked, corrupted, chosen, first_word):
    """Asks one question after the other, by NumPy."""
    if objective not in OBJECTIVES:
        raise ValueError("no such objective")
    old, new, hidden = tokens.numpy(), corrupted.numpy(), masked.numpy()
    given = hidden if objective == "BERT" else new
    asked = old >= first_word if objective in OBJECTIVES[2::2] else chosen.numpy()
    wanted = (old != new).astype("int64") if "ELECTRA" in objective else old
    return tuple(torch.from_numpy(part.copy()) for part in (given, asked, wanted))


def _with(name, doc, **change):
    def version(objective, tokens, masked, corrupted, chosen, first_word):
        plan = dict(change)
        return _plan(objective, tokens, masked, corrupted, chosen, first_word, plan=plan)

    version.__name__, version.__doc__ = name, doc
    return version


replace_reads_mask = _with(
    "replace_reads_mask", "Replace MLM as BERT.", **{"Replace MLM": _PLAN["BERT"]}
)
bert_reads_samples = _with(
    "bert_reads_samples", "BERT as Replace MLM.", **{"BERT": _PLAN["Replace MLM"]}
)
all_tokens_on_chosen = _with(
    "all_tokens_on_chosen", "All-Tokens MLM as Replace.", **{"All-Tokens MLM": _PLAN["Replace MLM"]}
)
fifteen_on_all_words = _with(
    "fifteen_on_all_words", "ELECTRA 15 % as ELECTRA.", **{"ELECTRA 15%": _PLAN["ELECTRA"]}
)
electra_on_chosen = _with(
    "electra_on_chosen", "ELECTRA as ELECTRA 15 %.", **{"ELECTRA": _PLAN["ELECTRA 15%"]}
)
fifteen_reads_mask = _with(
    "fifteen_reads_mask", "ELECTRA 15 % sees [MASK].", **{"ELECTRA 15%": (False, False, False)}
)
all_tokens_reads_mask = _with(
    "all_tokens_reads_mask",
    "All-Tokens MLM sees [MASK].",
    **{"All-Tokens MLM": (False, True, True)},
)


def chosen_means_replaced(objective, tokens, masked, corrupted, chosen, first_word):
    """Labels from chosen."""
    given, asked, wanted = _plan(objective, tokens, masked, corrupted, chosen, first_word)
    return given, asked, chosen.long() if "ELECTRA" in objective else wanted


def words_wanted_from_samples(objective, tokens, masked, corrupted, chosen, first_word):
    """Asks for the samples."""
    given, asked, wanted = _plan(objective, tokens, masked, corrupted, chosen, first_word)
    return given, asked, wanted if "ELECTRA" in objective else corrupted.clone()


def wanted_where_asked(objective, tokens, masked, corrupted, chosen, first_word):
    """Leaves 0 where nobody is asked."""
    given, asked, wanted = _plan(objective, tokens, masked, corrupted, chosen, first_word)
    return given, asked, wanted * asked


def every_place_asked(objective, tokens, masked, corrupted, chosen, first_word):
    """Asks on padding."""
    given, asked, wanted = _plan(objective, tokens, masked, corrupted, chosen, first_word)
    everywhere = objective in OBJECTIVES[2::2]
    return given, torch.ones_like(asked) if everywhere else asked, wanted


def anything_accepted(objective, tokens, masked, corrupted, chosen, first_word):
    """Takes every other name for ELECTRA."""
    known = objective if objective in _PLAN else "ELECTRA"
    return _plan(known, tokens, masked, corrupted, chosen, first_word)


def plan_by_questions(objective, tokens, masked, corrupted, chosen, first_word):
    """Right: if after if."""
    if objective not in ("BERT", "Replace MLM", "All-Tokens MLM", "ELECTRA 15%", "ELECTRA"):
        raise ValueError(objective)
    given = masked if objective == "BERT" else corrupted
    asked = chosen
    if objective in ("All-Tokens MLM", "ELECTRA"):
        asked = tokens >= first_word
    wanted = tokens
    if objective.startswith("ELECTRA"):
        wanted = (tokens != corrupted).long()
    return given, asked, wanted


def plan_by_match(objective, tokens, masked, corrupted, chosen, first_word):
    """Right: match."""
    words, replaced = tokens >= first_word, tokens.ne(corrupted).to(torch.int64)
    match objective:
        case "BERT":
            return masked, chosen, tokens
        case "Replace MLM":
            return corrupted, chosen, tokens
        case "All-Tokens MLM":
            return corrupted, words, tokens
        case "ELECTRA 15%":
            return corrupted, chosen, replaced
        case "ELECTRA":
            return corrupted, words, replaced
    raise ValueError(f"{objective} is no objective of this chapter")


def plan_by_table(objective, tokens, masked, corrupted, chosen, first_word):
    """Right: three dictionaries."""
    words = ~(tokens < first_word)
    replaced = torch.where(tokens == corrupted, 0, 1)
    table = {
        "BERT": (masked, chosen, tokens),
        "Replace MLM": (corrupted, chosen, tokens),
        "All-Tokens MLM": (corrupted, words, tokens),
        "ELECTRA 15%": (corrupted, chosen, replaced),
        "ELECTRA": (corrupted, words, replaced),
    }
    try:
        return table[objective]
    except KeyError:
        raise ValueError("unknown objective") from None


STEP_PLAN = Exercise(
    id="step_plan",
    title="Five objectives, three switches",
    asks="Say what the model reads, where it is asked, and what it should say.",
    parameters=("objective", "tokens", "masked", "corrupted", "chosen", "first_word"),
    outputs=("given", "asked", "wanted"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(2, "the five objectives"), "refused": Group(1, "an unknown objective")},
    cases=step_plan_cases,
    reference=step_plan_reference,
    misconceptions=(
        Misconception(
            replace_reads_mask,
            "In Replace MLM the model still reads [MASK].",
            "What is replaced in Replace MLM, and by what?",
        ),
        Misconception(
            bert_reads_samples,
            "BERT reads the generator's samples; it has no generator.",
            "What does BERT read in the chosen places?",
        ),
        Misconception(
            all_tokens_on_chosen,
            "All-Tokens MLM is asked on the chosen words only.",
            "What does its name say?",
        ),
        Misconception(
            fifteen_on_all_words,
            "ELECTRA 15 % is asked on every word.",
            "What does its name say?",
        ),
        Misconception(
            electra_on_chosen,
            "ELECTRA is asked on the chosen words only.",
            "What distinguishes it from ELECTRA 15 %?",
        ),
        Misconception(
            fifteen_reads_mask,
            "In ELECTRA 15 % the model reads [MASK]: what could it call replaced?",
            "Which objectives have a generator?",
        ),
        Misconception(
            all_tokens_reads_mask,
            "In All-Tokens MLM the model reads [MASK].",
            "Which objectives have a generator?",
        ),
        Misconception(
            chosen_means_replaced,
            "Every chosen word is called replaced.",
            "When is a word replaced?",
        ),
        Misconception(
            words_wanted_from_samples,
            "The words asked for are the generator's samples; the original ones are wanted.",
            "Which sentence holds the right answers?",
        ),
        Misconception(
            wanted_where_asked,
            "Where nobody is asked, `wanted` is 0; it should hold an answer in every place.",
            "Read the contract on `wanted`.",
        ),
        Misconception(
            every_place_asked,
            "“Every word” was read as every place: padding and special tokens are asked, too.",
            "Which ids are words?",
        ),
        Misconception(
            anything_accepted,
            "An unknown objective is not refused.",
            "Which error does the contract ask for?",
        ),
    ),
    accepted=(plan_by_questions, plan_by_match, plan_by_table),
)
