"""Chapter 11: the joint loss, the ablations as switches, a loss with copying, REINFORCE."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_parts import (
    FIRST_WORD,
    MASK,
    VOCABULARY,
    draw_chosen,
    draw_corrupted,
    draw_tokens,
)

# --- electra_loss --------------------------------------------------------------------------------


def electra_loss_cases(rng):
    """Two weights; poison in the scores of places that have no loss."""
    for group, weight, batch, length, about in (
        ("values", 50.0, 2, 7, "weight 50"),
        ("values", 6.5, 3, 6, "another weight"),
    ):
        tokens = draw_tokens(rng, batch, length)
        tokens[0, 1] = FIRST_WORD  # the smallest id of a word is one, too
        chosen = draw_chosen(rng, tokens)
        generator = rng.normal(size=(*tokens.shape, VOCABULARY))
        generator[~chosen] *= 9.0
        discriminator = rng.normal(size=tokens.shape)
        discriminator[tokens < FIRST_WORD] += 30.0
        yield Case(
            group,
            {
                "generator_logits": generator,
                "discriminator_logits": discriminator,
                "tokens": tokens,
                "chosen": chosen,
                "corrupted": draw_corrupted(rng, tokens, chosen),
                "first_word": FIRST_WORD,
                "weight": weight,
            },
            about,
        )


def electra_loss_reference(
    generator_logits, discriminator_logits, tokens, chosen, corrupted, first_word, weight
):
    """Both losses from logsumexp and softplus."""
    rows = generator_logits[chosen]
    mlm = (rows.logsumexp(-1) - rows.gather(-1, tokens[chosen][:, None])[:, 0]).mean()
    words = tokens >= first_word
    scores = discriminator_logits[words]
    scores = torch.where((corrupted != tokens)[words], -scores, scores)
    replaced = F.softplus(scores).mean()
    return mlm + weight * replaced, mlm, replaced


def _electra(
    generator_logits,
    discriminator_logits,
    tokens,
    chosen,
    corrupted,
    first_word,
    weight,
    asked=None,
    aims=None,
    counted=None,
    replaced=None,
    combine=None,
):
    asked = chosen if asked is None else asked
    aims = tokens if aims is None else aims
    counted = tokens >= first_word if counted is None else counted
    replaced = corrupted != tokens if replaced is None else replaced
    mlm = F.cross_entropy(generator_logits[asked], aims[asked])
    scores = discriminator_logits[counted]
    disc = F.binary_cross_entropy_with_logits(scores, replaced[counted].to(scores.dtype))
    total = combine(mlm, disc) if combine else mlm + weight * disc
    return total, mlm, disc


def weight_on_the_generator(weight, **rest):
    """λ in front of the wrong loss."""
    return _electra(weight=weight, **rest, combine=lambda mlm, disc: weight * mlm + disc)


def weight_without_effect(weight, **rest):
    """Plain sum."""
    return _electra(weight=weight, **rest, combine=lambda mlm, disc: mlm + disc)


def against_each_other(weight, **rest):
    """Subtracts the discriminator's loss, as a GAN's generator would."""
    return _electra(weight=weight, **rest, combine=lambda mlm, disc: mlm - weight * disc)


def weighted_mean(weight, **rest):
    """Divides by 1 + λ."""
    return _electra(
        weight=weight, **rest, combine=lambda mlm, disc: (mlm + weight * disc) / (1 + weight)
    )


def generator_asked_everywhere(tokens, first_word, **rest):
    """MLM loss on all words."""
    words = tokens >= first_word
    return _electra(tokens=tokens, first_word=first_word, **rest, asked=words)


def generator_learns_its_samples(corrupted, **rest):
    """The generator's aims are its own samples."""
    return _electra(corrupted=corrupted, **rest, aims=corrupted)


def chosen_called_replaced(chosen, **rest):
    """Labels from chosen."""
    return _electra(chosen=chosen, **rest, replaced=chosen)


def discriminator_asked_on_chosen(chosen, **rest):
    """ELECTRA 15 %."""
    return _electra(chosen=chosen, **rest, counted=chosen)


def padding_counts(tokens, **rest):
    """All places."""
    return _electra(tokens=tokens, **rest, counted=torch.ones_like(tokens, dtype=torch.bool))


def generator_not_trained(weight, **rest):
    """The generator's loss is detached."""
    return _electra(weight=weight, **rest, combine=lambda mlm, disc: mlm.detach() + weight * disc)


def losses_multiplied(
    generator_logits, discriminator_logits, tokens, chosen, corrupted, first_word, weight
):
    """Right: one-hot targets and means of products."""
    log_p = generator_logits.log_softmax(-1)
    aims = F.one_hot(tokens, generator_logits.shape[-1]).to(log_p.dtype)
    mlm = -((log_p * aims).sum(-1) * chosen).sum() / chosen.sum()
    words = (tokens >= first_word).to(log_p.dtype)
    labels = (tokens != corrupted).to(log_p.dtype)
    losses = F.binary_cross_entropy_with_logits(discriminator_logits, labels, reduction="none")
    disc = (losses * words).sum() / words.sum()
    return mlm + weight * disc, mlm, disc


def losses_ignored(
    generator_logits, discriminator_logits, tokens, chosen, corrupted, first_word, weight
):
    """Right: −100 marks what is not asked."""
    aims = tokens.masked_fill(~chosen, -100)
    mlm = F.cross_entropy(generator_logits.mT, aims)
    both = torch.stack([torch.zeros_like(discriminator_logits), discriminator_logits], dim=1)
    labels = (tokens != corrupted).long().masked_fill(tokens < first_word, -100)
    disc = F.cross_entropy(both, labels)
    return disc * weight + mlm, mlm, disc


def losses_selected(
    generator_logits, discriminator_logits, tokens, chosen, corrupted, first_word, weight
):
    """Right: selects first; logsigmoid."""
    mlm = F.nll_loss(generator_logits[chosen].log_softmax(dim=1), tokens[chosen])
    real = tokens >= first_word
    z, same = discriminator_logits[real], (tokens == corrupted)[real]
    disc = -F.logsigmoid(torch.where(same, -z, z)).mean()
    return torch.add(mlm, disc, alpha=weight), mlm, disc


ELECTRA_LOSS = Exercise(
    id="electra_loss",
    title="The joint loss",
    asks="Give generator's loss + weight · discriminator's loss, and the two losses.",
    parameters=(
        *("generator_logits", "discriminator_logits", "tokens", "chosen"),
        *("corrupted", "first_word", "weight"),
    ),
    outputs=(
        *("total", "generator_loss", "discriminator_loss"),
        *("gradient of generator_logits", "gradient of discriminator_logits"),
    ),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(3, "losses and gradients")},
    cases=electra_loss_cases,
    reference=electra_loss_reference,
    tolerance=Tolerance(1e-5, 1e-6),
    misconceptions=(
        Misconception(
            weight_on_the_generator,
            "The weight stands before the generator's loss.",
            "Which of the two losses is small by nature, and so gets the large weight?",
        ),
        Misconception(
            weight_without_effect,
            "The weight has no effect.",
            "Where does `weight` enter your computation?",
        ),
        Misconception(
            against_each_other,
            "The discriminator's loss is subtracted: then the discriminator would learn to be "
            "wrong. ELECTRA is no GAN.",
            "What does the optimiser do with the sum?",
        ),
        Misconception(
            weighted_mean,
            "The sum is divided by 1 + weight; the contract asks for the sum.",
            "Compute the total from your two losses by hand.",
        ),
        Misconception(
            generator_asked_everywhere,
            "The generator has a loss on every word; it is asked for the chosen ones.",
            "Which words does the generator not see?",
        ),
        Misconception(
            generator_learns_its_samples,
            "The generator is trained to say what it drew, right or wrong.",
            "Which sentence holds the words that it should have said?",
        ),
        Misconception(
            chosen_called_replaced,
            "Every chosen word is labelled replaced, also if the sample is the original word.",
            "When is a word replaced?",
        ),
        Misconception(
            discriminator_asked_on_chosen,
            "The discriminator has a loss on chosen words only: that is the ablation ELECTRA 15 %.",
            "For which words is the discriminator asked?",
        ),
        Misconception(
            padding_counts,
            "The discriminator has a loss on padding and special tokens.",
            "Which ids are words?",
        ),
        Misconception(
            generator_not_trained,
            "No gradient reaches the generator: it would never learn.",
            "Is something detached that should not be?",
        ),
    ),
    accepted=(losses_multiplied, losses_ignored, losses_selected),
)

# --- step_plan -----------------------------------------------------------------------------------

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

# --- copy_losses ---------------------------------------------------------------------------------


def copy_losses_cases(rng):
    """Words that are there already and words that are not; large scores."""
    for group, scale, about in (
        ("values", 1.0, "three rows"),
        ("values", 2.0, "other sizes"),
        ("large", 500.0, "scores in the hundreds"),
    ):
        s = draw_sizes(rng, "batch", "length", among=(2, 3, 5))
        shape = (s.batch, s.length)
        tokens = rng.integers(0, 6, size=shape)
        other = (tokens + rng.integers(1, 6, size=shape)) % 6
        same = rng.random(shape) < 0.5
        same[0, :2] = (True, False)
        given = tokens * same + other * ~same
        yield Case(
            group,
            {
                "word_logits": scale * rng.normal(size=(*shape, 6)),
                "copy_logits": scale * rng.normal(size=shape),
                "given": given,
                "tokens": tokens,
            },
            about,
        )


def copy_losses_reference(word_logits, copy_logits, given, tokens):
    """Puts both ways side by side as log-probabilities and takes their logsumexp."""
    words = word_logits - word_logits.logsumexp(-1, keepdim=True)
    words = words.gather(-1, tokens[..., None])[..., 0] - F.softplus(copy_logits)
    copied = -F.softplus(-copy_logits)
    copied = torch.where(given == tokens, copied, torch.full_like(copied, -torch.inf))
    return -torch.stack([words, copied], -1).logsumexp(-1)


def _mixture(word_logits, copy_logits, given, tokens, same=None):
    p_copy = copy_logits.sigmoid()
    words = word_logits.softmax(-1).gather(-1, tokens[..., None])[..., 0]
    same = (given == tokens).to(words.dtype) if same is None else same
    return p_copy, words, same


def copying_switched_round(word_logits, copy_logits, given, tokens):
    """1 − σ copies."""
    return copy_losses_reference(word_logits, -copy_logits, given, tokens)


def copied_without_looking(word_logits, copy_logits, given, tokens):
    """Copies the right word, whatever the model reads."""
    return copy_losses_reference(word_logits, copy_logits, tokens, tokens)


def never_copied(word_logits, copy_logits, given, tokens):
    """No copying at all."""
    return F.cross_entropy(word_logits.mT, tokens, reduction="none")


def only_copied_if_there(word_logits, copy_logits, given, tokens):
    """A word that is there can only be copied."""
    words = F.cross_entropy(word_logits.mT, tokens, reduction="none")
    return torch.where(given == tokens, F.softplus(-copy_logits), words + F.softplus(copy_logits))


def losses_mixed(word_logits, copy_logits, given, tokens):
    """Mixes logarithms instead of probabilities."""
    p_copy = copy_logits.sigmoid()
    words = F.cross_entropy(word_logits.mT, tokens, reduction="none")
    copied = F.softplus(-copy_logits) * (given == tokens)
    return p_copy * copied + (1 - p_copy) * words


def word_not_weighted(word_logits, copy_logits, given, tokens):
    """softmax + σ: more than 1 in all."""
    p_copy, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(p_copy * same + words).log()


def word_of_the_input(word_logits, copy_logits, given, tokens):
    """Asks for the given word."""
    return copy_losses_reference(word_logits, copy_logits, given, given)


def probabilities_mixed(word_logits, copy_logits, given, tokens):
    """Right in small numbers; logarithm of 0."""
    p_copy, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(p_copy * same + (1 - p_copy) * words).log()


def sigmoid_forgotten(word_logits, copy_logits, given, tokens):
    """The score itself is the weight."""
    _, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(copy_logits * same + (1 - copy_logits) * words).abs().clamp(min=1e-9).log()


def averaged_over_words(word_logits, copy_logits, given, tokens):
    """One number."""
    return copy_losses_reference(word_logits, copy_logits, given, tokens).mean()


def copy_by_logaddexp(word_logits, copy_logits, given, tokens):
    """Right: logaddexp, then a choice."""
    log_word = -F.cross_entropy(word_logits.mT, tokens, reduction="none")
    invented = F.logsigmoid(-copy_logits) + log_word
    both = torch.logaddexp(F.logsigmoid(copy_logits), invented)
    return -torch.where(given == tokens, both, invented)


def copy_over_all_words(word_logits, copy_logits, given, tokens):
    """Right: the log-probability of every word, then picks."""
    log_words = word_logits.log_softmax(-1) + F.logsigmoid(-copy_logits)[..., None]
    at_given = F.one_hot(given, word_logits.shape[-1]).bool()
    copied = F.logsigmoid(copy_logits)[..., None].masked_fill(~at_given, -torch.inf)
    return F.nll_loss(torch.logaddexp(log_words, copied).mT, tokens, reduction="none")


def copy_place_by_place(word_logits, copy_logits, given, tokens):
    """Right: a loop."""
    losses = torch.empty_like(copy_logits)
    for place in torch.ones_like(tokens).nonzero().tolist():
        at = tuple(place)
        ways = [word_logits[at].log_softmax(0)[tokens[at]] + F.logsigmoid(-copy_logits[at])]
        if given[at] == tokens[at]:
            ways.append(F.logsigmoid(copy_logits[at]))
        losses[at] = -torch.stack(ways).logsumexp(0)
    return losses


COPY_LOSSES = Exercise(
    id="copy_losses",
    title="A language model that may copy",
    asks="Give −log p of the right word, when a word may also be copied from the input.",
    parameters=("word_logits", "copy_logits", "given", "tokens"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(2, "losses"), "large": Group(1, "large scores")},
    cases=copy_losses_cases,
    reference=copy_losses_reference,
    misconceptions=(
        Misconception(
            copying_switched_round,
            "The probability of copying and its complement are exchanged.",
            "What should a large `copy_logits` make likely?",
        ),
        Misconception(
            copied_without_looking,
            "The right word is copied even where the input holds another one.",
            "Which word can be copied in a place?",
        ),
        Misconception(
            never_copied,
            "Copying has no effect.",
            "Where does `copy_logits` enter your computation?",
        ),
        Misconception(
            only_copied_if_there,
            "Where the input holds the right word only copying counts; the model may also say it "
            "by itself.",
            "In how many ways can the right word come about?",
        ),
        Misconception(
            losses_mixed,
            "Logarithms are mixed; the probabilities are to be mixed, and then the logarithm "
            "taken.",
            "Where does the logarithm stand in the formula?",
        ),
        Misconception(
            word_not_weighted,
            "The model's own probability is not weighted with 1 − c; all words together get more "
            "than 1.",
            "Add up the probabilities of all words.",
        ),
        Misconception(
            word_of_the_input,
            "The loss asks for the word of the input; the original one is wanted.",
            "Which sentence holds the right answers?",
        ),
        Misconception(
            probabilities_mixed,
            "A probability becomes 0, and its logarithm infinite.",
            "Which function adds two probabilities that are given as logarithms?",
        ),
        Misconception(
            sigmoid_forgotten,
            "The score for copying is used as if it were a probability.",
            "What makes a probability out of `copy_logits`?",
        ),
        Misconception(
            averaged_over_words,
            "One mean is given; one loss for each place is asked.",
            "Which shape does the contract ask for?",
        ),
    ),
    accepted=(copy_by_logaddexp, copy_over_all_words, copy_place_by_place),
    equivalent_mutants={
        "`word_logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., 0]` → "
        "`word_logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., -1]`": "the last axis "
        "has one entry",
    },
)

# --- adversarial_loss ----------------------------------------------------------------------------


def adversarial_loss_cases(rng):
    """Samples that are original and samples that are not; two baselines."""
    for size, about in ((7, "seven samples"), (5, "five samples"), (9, "another baseline")):
        replaced = rng.random(size) < 0.6
        replaced[:2] = (True, False)
        yield Case(
            "values",
            {
                "log_probabilities": -3 * rng.random(size) - 0.1,
                "discriminator_logits": 1.5 * rng.normal(size=size),
                "replaced": replaced,
                "baseline": round(float(rng.uniform(0.4, 1.2)), 3),
            },
            about,
        )


def adversarial_loss_reference(log_probabilities, discriminator_logits, replaced, baseline):
    """The reward in NumPy, where no gradient can flow."""
    scores = discriminator_logits.detach().numpy()
    losses = F.softplus(torch.from_numpy(scores * (1 - 2 * replaced.numpy())))
    return ((baseline - losses) * log_probabilities).mean()


def _reward(logits, replaced):
    return F.binary_cross_entropy_with_logits(logits, replaced.to(logits.dtype), reduction="none")


def reward_not_detached(log_probabilities, discriminator_logits, replaced, baseline):
    """Gradient through the reward."""
    reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean()


def helps_the_discriminator(log_probabilities, discriminator_logits, replaced, baseline):
    """Sign."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return (reward * log_probabilities).mean()


def baseline_forgotten(log_probabilities, discriminator_logits, replaced, baseline):
    """Without baseline."""
    return -(_reward(discriminator_logits, replaced).detach() * log_probabilities).mean()


def baseline_added(log_probabilities, discriminator_logits, replaced, baseline):
    """Adds it."""
    reward = _reward(discriminator_logits, replaced).detach() + baseline
    return -(reward * log_probabilities).mean()


def probability_instead(log_probabilities, discriminator_logits, replaced, baseline):
    """p for log p: the true gradient of the expectation only if all words are summed over."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities.exp()).mean()


def summed_samples(log_probabilities, discriminator_logits, replaced, baseline):
    """Sum."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities).sum()


def replaced_only_rewarded(log_probabilities, discriminator_logits, replaced, baseline):
    """Replaced samples only."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities)[replaced].mean()


def rewarded_for_looking_real(log_probabilities, discriminator_logits, replaced, baseline):
    """The score for "original" is the reward, as in a GAN, whether it is replaced or not."""
    reward = F.softplus(discriminator_logits).detach() - baseline
    return -(reward * log_probabilities).mean()


def nothing_flows(log_probabilities, discriminator_logits, replaced, baseline):
    """Detaches all."""
    reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean().detach()


def reinforce_no_grad(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: no_grad."""
    with torch.no_grad():
        reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean()


def reinforce_dot(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: a dot product."""
    z = discriminator_logits.detach()
    reward = torch.where(replaced, -F.logsigmoid(z), -F.logsigmoid(-z)) - baseline
    return -torch.dot(reward, log_probabilities) / len(reward)


def reinforce_loop(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: sample by sample with plain numbers."""
    rewards = _reward(discriminator_logits.detach(), replaced).tolist()
    terms = [(baseline - r) * p for r, p in zip(rewards, log_probabilities, strict=True)]
    return sum(terms) / len(terms)


ADVERSARIAL_LOSS = Exercise(
    id="adversarial_loss",
    title="Challenge: a generator that wants to fool",
    asks="Give the REINFORCE loss of a generator rewarded for the discriminator's mistakes.",
    parameters=("log_probabilities", "discriminator_logits", "replaced", "baseline"),
    outputs=("loss", "gradient of log_probabilities", "gradient of discriminator_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(3, "loss and gradients")},
    cases=adversarial_loss_cases,
    reference=adversarial_loss_reference,
    tolerance=Tolerance(1e-5, 1e-6),
    misconceptions=(
        Misconception(
            reward_not_detached,
            "The gradient flows into the discriminator as well, and teaches it to be wrong.",
            "Is the reward a plain number for autograd?",
        ),
        Misconception(
            helps_the_discriminator,
            "The sign is turned round: samples that are found out become more likely.",
            "A loss goes *down*. What should then happen to log p of a rewarded sample?",
        ),
        Misconception(
            baseline_forgotten,
            "The baseline has no effect.",
            "What is subtracted from the reward?",
        ),
        Misconception(
            baseline_added,
            "The baseline is added to the reward.",
            "What is subtracted from the reward?",
        ),
        Misconception(
            probability_instead,
            "Probabilities are weighted; REINFORCE weights log-probabilities, since the samples "
            "were drawn.",
            "Is there an exp that should not be there?",
        ),
        Misconception(
            summed_samples,
            "The terms are added up; the mean is asked.",
            "By what do you divide?",
        ),
        Misconception(
            replaced_only_rewarded,
            "Samples that equal the original word are left out.",
            "For which samples does the contract ask?",
        ),
        Misconception(
            rewarded_for_looking_real,
            "The reward looks at the score only, not at whether the discriminator was wrong.",
            "What is the discriminator's loss for a sample that is the original word?",
        ),
        Misconception(
            nothing_flows,
            "No gradient reaches the generator.",
            "Detach the reward, and nothing else.",
        ),
    ),
    accepted=(reinforce_no_grad, reinforce_dot, reinforce_loop),
)
