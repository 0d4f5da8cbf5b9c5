"""One pre-training step for each objective: ELECTRA, its ablations, and a masked language model.

K. Clark et al. (2020), "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than
Generators", Section 2 and "Efficiency Analysis" in Section 3. What differs between them is data:
what the model reads, what it says, and where it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.electra.corpus import FIRST_WORD, MASK
from attention_course.electra.model import Encoder, ReplacedHead, WordHead

SHARE = 0.15  # of the words that are chosen
FORWARD_AND_BACKWARD = 3  # the backward pass costs about twice the forward pass


@dataclass(frozen=True)
class Objective:
    """What the model that is kept reads, what it has to say, and on which words it is asked."""

    corrupted: bool  # reads the generator's samples; else [MASK] as BERT has it
    says_words: bool  # else: original or replaced
    everywhere: bool  # loss on every word; else on the chosen ones
    only_masks: bool = False  # without samples, every chosen word becomes [MASK]
    fools: bool = False  # the generator is paid for the discriminator's mistakes


OBJECTIVES = {  # those of the paper's Table 5
    "BERT": Objective(corrupted=False, says_words=True, everywhere=False),
    "Replace MLM": Objective(corrupted=True, says_words=True, everywhere=False),
    "ELECTRA 15%": Objective(corrupted=True, says_words=False, everywhere=False),
    "All-Tokens MLM": Objective(corrupted=True, says_words=True, everywhere=True),
    "ELECTRA": Objective(corrupted=True, says_words=False, everywhere=True),
}
VARIANTS = {
    "MLM, only [MASK]": Objective(
        corrupted=False, says_words=True, everywhere=False, only_masks=True
    ),
    "adversarial": Objective(corrupted=True, says_words=False, everywhere=True, fools=True),
}


class Pretraining(nn.Module):
    """An encoder and what one objective needs beside it. Call it with tokens to get a loss.

    Args:
        objective: a key of `OBJECTIVES` or `VARIANTS`.
        words: size of the vocabulary.
        d_model: width of the encoder that is kept.
        generator_share: the generator's width as a share of it; embeddings are shared, always.
        weight: λ, what the discriminator's loss is multiplied with.
        seed: of the positions and the samples.

    Raises:
        ValueError: for an unknown objective.
    """

    def __init__(
        self,
        objective: str,
        words: int,
        d_model: int = 64,
        generator_share: float = 0.5,
        weight: float = 5.0,
        seed: int = 0,
    ):
        super().__init__()
        known = OBJECTIVES | VARIANTS
        if objective not in known:
            raise ValueError(f"objective must be one of {list(known)}; got {objective!r}.")
        self.objective, self.weight = known[objective], weight
        self.random = torch.Generator().manual_seed(seed)
        self.encoder = Encoder(words, d_model)
        shared = self.encoder.embeddings
        if self.objective.says_words:
            self.head = WordHead(d_model, shared)
        else:
            self.head = ReplacedHead(d_model)
        if self.objective.corrupted:
            width, heads = int(d_model * generator_share), max(1, int(4 * generator_share))
            self.generator = Encoder(words, width, heads, embeddings=shared)
            self.generator_head = WordHead(width, shared)
            self.generator_learns, self.baseline = True, 0.0
        if self.objective.says_words and self.objective.everywhere:
            self.copy = nn.Linear(d_model, 1)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, dict[str, float], int]:
        """Give (loss, its parts, floating-point operations forward and backward)."""
        real = tokens >= FIRST_WORD
        chosen = self.choose(real)
        parts, flops, generator_flops = {}, self.encoder.flops(*tokens.shape), 0
        if self.objective.corrupted:
            logits = self.generator_logits(tokens, chosen)
            samples = self.sample(logits.detach())
            generator_loss = F.cross_entropy(logits, tokens[chosen])
            parts["generator"] = generator_loss.item()
            given = tokens.masked_scatter(chosen, samples)
            generator_flops = self.generator.flops(*tokens.shape)
            generator_flops += self.generator_head.flops(len(logits))
        else:
            generator_loss = torch.zeros(())
            given = self.masked(tokens, chosen)
        asked = real if self.objective.everywhere else chosen
        states = self.encoder(given)[asked]
        if self.objective.says_words:
            own = self._word_loss(states, tokens[asked], given[asked])
            # Every chosen word has the weight 1 / (number chosen), also among all words.
            own = own / SHARE if self.objective.everywhere else own
        else:
            scores, replaced = self.head(states), (given != tokens)[asked].float()
            own = F.binary_cross_entropy_with_logits(scores, replaced)
            if self.objective.fools:
                drawn = chosen[asked]
                generator_loss = self._fooling_loss(logits, samples, scores[drawn], replaced[drawn])
        parts["own"] = own.item()
        flops += self.head.flops(len(states))
        scale = 1.0 if self.objective.says_words else self.weight
        cost = FORWARD_AND_BACKWARD * flops
        if self.objective.corrupted:
            cost += (FORWARD_AND_BACKWARD if self.generator_learns else 1) * generator_flops
        return generator_loss + scale * own, parts, cost

    def choose(self, real: torch.Tensor) -> torch.Tensor:
        """Choose 15 % of the words, at least one in the batch; bool like `real`."""
        draws = torch.rand(real.shape, generator=self.random).masked_fill(~real, 2.0)
        return draws < max(SHARE, draws.min().item() + 1e-9)

    def masked(self, tokens: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Of the chosen words 80 % become [MASK], 10 % some word, 10 % stay; or all [MASK]."""
        if self.objective.only_masks:
            return tokens.masked_fill(chosen, MASK)
        draws = torch.rand(tokens.shape, generator=self.random)
        some = torch.randint(
            FIRST_WORD,
            self.encoder.embeddings.words.num_embeddings,
            tokens.shape,
            generator=self.random,
        )
        given = tokens.masked_fill(chosen & (draws < 0.8), MASK)
        return torch.where(chosen & (draws >= 0.9), some, given)

    def generator_logits(self, tokens: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Scores of all words at the chosen places, (chosen, words)."""
        return self.generator_head(self.generator(tokens.masked_fill(chosen, MASK))[chosen])

    def sample(self, logits: torch.Tensor) -> torch.Tensor:
        """Draw a word from each row of logits."""
        weights = logits.softmax(-1)
        return torch.multinomial(weights, 1, generator=self.random)[:, 0]

    def _word_loss(self, states, wanted, given) -> torch.Tensor:
        log_words = self.head(states).log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
        if not self.objective.everywhere:
            return -log_words.mean()
        copied = self.copy(states)[:, 0]
        invented = F.logsigmoid(-copied) + log_words
        both = torch.logaddexp(F.logsigmoid(copied), invented)
        return -torch.where(given == wanted, both, invented).mean()

    def _fooling_loss(self, logits, samples, scores, replaced) -> torch.Tensor:
        """REINFORCE: samples become likelier the more the discriminator was wrong about them."""
        mistakes = F.binary_cross_entropy_with_logits(scores.detach(), replaced, reduction="none")
        log_words = logits.log_softmax(-1).gather(-1, samples[:, None])[:, 0]
        loss = -((mistakes - self.baseline) * log_words).mean()
        self.baseline += 0.01 * (mistakes.mean().item() - self.baseline)  # a running mean
        return loss


def second_stage(first: Pretraining, seed: int) -> Pretraining:
    """Make an ELECTRA whose generator is a trained masked LM, frozen; its encoder starts as that.

    The second of two stages (Clark et al. 2020, "Training Algorithms" in Section 3.2). Weights are
    copied, so nothing is shared, embeddings included.
    """
    words, d_model = first.encoder.embeddings.words.weight.shape
    model = Pretraining("ELECTRA", words, d_model, generator_share=1.0, seed=seed)
    model.generator, model.generator_head = first.encoder, first.head
    model.generator.requires_grad_(False)
    model.generator_head.requires_grad_(False)
    model.generator_learns = False
    model.encoder.load_state_dict(first.encoder.state_dict())
    return model
