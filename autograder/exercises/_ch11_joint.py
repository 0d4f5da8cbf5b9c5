"""Chapter 11: the joint loss of generator and discriminator."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_parts import (
    FIRST_WORD,
    VOCABULARY,
    draw_chosen,
    draw_corrupted,
    draw_tokens,
)


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


def losses_summed(
    generator_logits, discriminator_logits, tokens, chosen, corrupted, first_word, weight
):
    """Sums in place of means: the two losses then have unequal numbers of places."""
    words = tokens >= first_word
    scores = discriminator_logits[words]
    replaced = (corrupted != tokens)[words].to(scores.dtype)
    mlm = F.cross_entropy(generator_logits[chosen], tokens[chosen], reduction="sum")
    disc = F.binary_cross_entropy_with_logits(scores, replaced, reduction="sum")
    return mlm + weight * disc, mlm, disc


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
            losses_summed,
            "Losses are added up over places; each is the mean over its own places.",
            "By what is each of the two losses divided?",
        ),
        Misconception(
            generator_not_trained,
            "No gradient reaches the generator: it would never learn.",
            "Is something detached that should not be?",
        ),
    ),
    accepted=(losses_multiplied, losses_ignored, losses_selected),
)
