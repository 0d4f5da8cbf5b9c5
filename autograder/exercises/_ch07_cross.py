"""Exercise of chapter 07: cross-attention as a module."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_source_mask, draw_weights

LAYERS = ("to_queries", "to_keys", "to_values", "to_output")


def cross_attention_cases(rng):
    """Source longer and shorter than the target; padding with poison; large scores; one place."""
    for group, batch, target, source, heads, d_head, about in (
        ("values", 2, 3, 4, 2, 3, "no padding, a longer source"),
        ("padding", 2, 3, 4, 3, 2, "padded sources"),
        ("padding", 2, 5, 3, 2, 3, "padded sources, shorter than the target"),
        ("edges", 1, 1, 4, 2, 3, "one step of one sentence"),
        ("edges", 2, 1, 4, 3, 2, "large scores"),
    ):
        d_model = heads * d_head
        x = rng.normal(size=(batch, target, d_model))
        memory = rng.normal(size=(batch, source, d_model))
        mask = draw_source_mask(rng, batch, source)
        if group != "padding":
            mask[:] = True
        memory[~mask] *= 40.0  # poison
        if about == "large scores":
            x, memory = 60 * x, 60 * memory
        shapes = {f"{name}.weight": (d_model, d_model) for name in LAYERS}
        shapes |= {f"{name}.bias": (d_model,) for name in LAYERS}
        yield Case(
            group,
            {
                "build": {"d_model": d_model, "heads": heads},
                "weights": draw_weights(rng, shapes),
                "inputs": {"x": x, "memory": memory, "memory_mask": mask},
                "upstream": rng.normal(size=x.shape),
            },
            about,
        )


class _Projections(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        for name in LAYERS:
            setattr(self, name, nn.Linear(d_model, d_model))


class CrossAttentionReference(_Projections):
    """PyTorch's own function, given the four layers."""

    def forward(self, x, memory, memory_mask):
        """Give output and weights of each head."""
        output, weights = F.multi_head_attention_forward(
            x.transpose(0, 1),
            memory.transpose(0, 1),
            memory.transpose(0, 1),
            x.shape[-1],
            self.heads,
            None,
            torch.cat([self.to_queries.bias, self.to_keys.bias, self.to_values.bias]),
            None,
            None,
            False,
            0.0,
            self.to_output.weight,
            self.to_output.bias,
            training=False,
            key_padding_mask=~memory_mask,
            need_weights=True,
            use_separate_proj_weight=True,
            q_proj_weight=self.to_queries.weight,
            k_proj_weight=self.to_keys.weight,
            v_proj_weight=self.to_values.weight,
            average_attn_weights=False,
        )
        return output.transpose(0, 1), weights


class _Cross(_Projections):
    """Right unless a method is overridden; the wrong versions are made of it."""

    def sources(self, x, memory):
        """What queries, keys and values are made from."""
        return x, memory, memory

    def split(self, x):
        """(batch, length, d_model) to (batch, heads, length, d_head)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def merge(self, x):
        """The way back."""
        return x.transpose(1, 2).flatten(2)

    def scale(self, queries, x):
        """What scores are divided by."""
        return queries.shape[-1] ** 0.5

    def weigh(self, scores, mask):
        """Weights from scores and a mask (batch, 1, 1, source)."""
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def finish(self, merged):
        """The last projection."""
        return self.to_output(merged)

    def forward(self, x, memory, memory_mask):
        """Give output and weights of each head."""
        maps = (self.to_queries, self.to_keys, self.to_values)
        made = zip(maps, self.sources(x, memory), strict=True)
        queries, keys, values = (self.split(to(source)) for to, source in made)
        scores = queries @ keys.mT / self.scale(queries, x)
        weights = self.weigh(scores, memory_mask[:, None, None, :])
        return self.finish(self.merge(weights @ values)), weights


class keys_and_values_from_below(_Cross):
    """Attends to the decoder itself."""

    def sources(self, x, memory):
        return x, x, x

    def weigh(self, scores, mask):
        return scores.softmax(-1)


class queries_from_the_encoder(_Cross):
    """The source asks and the target answers."""

    def sources(self, x, memory):
        return memory, x, x

    def weigh(self, scores, mask):
        return scores.softmax(-1)


class source_padding_seen(_Cross):
    """Ignores the mask."""

    def weigh(self, scores, mask):
        return scores.softmax(-1)


class true_taken_for_hidden(_Cross):
    """The mask the wrong way round, as nn.MultiheadAttention reads it."""

    def weigh(self, scores, mask):
        return scores.masked_fill(mask, -1e9).softmax(-1)


class visible_filled_with_infinity(_Cross):
    """The mask the wrong way round with −∞: NaN where everything is visible."""

    def weigh(self, scores, mask):
        return scores.masked_fill(mask, -torch.inf).softmax(-1)


class masked_after_the_softmax(_Cross):
    """Rows no longer sum to 1."""

    def weigh(self, scores, mask):
        return scores.softmax(-1) * mask


class causal_on_the_source(_Cross):
    """Hides the later source words as well."""

    def weigh(self, scores, mask):
        return scores.masked_fill(~(mask & torch.ones_like(scores).tril().bool()), -1e9).softmax(-1)


class softmax_over_the_target(_Cross):
    """Columns sum to 1."""

    def weigh(self, scores, mask):
        return scores.masked_fill(~mask, -1e9).softmax(-2)


class scaled_by_d_model(_Cross):
    """√d_model for √d_head."""

    def scale(self, queries, x):
        return x.shape[-1] ** 0.5


class scores_unscaled(_Cross):
    """No scaling."""

    def scale(self, queries, x):
        return 1.0


class heads_cut_across(_Cross):
    """Feature i belongs to head i modulo heads."""

    def split(self, x):
        return x.unflatten(-1, (-1, self.heads)).movedim(-1, 1)


class heads_by_view(_Cross):
    """Reshapes to (batch, heads, length, d_head) without a transpose, and back."""

    def split(self, x):
        return x.reshape(len(x), self.heads, x.shape[1], -1)

    def merge(self, x):
        return x.reshape(len(x), x.shape[2], -1)


class merged_without_transpose(_Cross):
    """Merges heads by a reshape only."""

    def merge(self, x):
        return x.reshape(len(x), x.shape[2], -1)


class output_not_projected(_Cross):
    """Forgets the last projection."""

    def finish(self, merged):
        return merged


class weights_averaged(_Cross):
    """Gives the mean over heads, as nn.MultiheadAttention does unless told otherwise."""

    def forward(self, x, memory, memory_mask):
        output, weights = super().forward(x, memory, memory_mask)
        return output, weights.mean(1)


class memory_detached(_Cross):
    """No gradient reaches the encoder."""

    def sources(self, x, memory):
        return x, memory.detach(), memory.detach()


class by_pytorch(_Projections):
    """Right: fused attention, and the weights apart from it."""

    def forward(self, x, memory, memory_mask):
        def heads(to, y):
            return to(y).view(*y.shape[:2], self.heads, -1).transpose(1, 2)

        q, k, v = (
            heads(self.to_queries, x),
            heads(self.to_keys, memory),
            heads(self.to_values, memory),
        )
        mask = memory_mask[:, None, None]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        weights = ((q * k.shape[-1] ** -0.5) @ k.mT).masked_fill(~mask, -1e9).softmax(-1)
        return self.to_output(mixed.transpose(1, 2).reshape(x.shape)), weights


class by_einsum(_Projections):
    """Right: einsum, and a mask that is added."""

    def forward(self, x, memory, memory_mask):
        q, k, v = (
            to(y).unflatten(-1, (self.heads, -1))
            for to, y in ((self.to_queries, x), (self.to_keys, memory), (self.to_values, memory))
        )
        scores = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        low = torch.zeros(memory_mask.shape, dtype=x.dtype).masked_fill(~memory_mask, -1e9)
        weights = torch.softmax(scores + low[:, None, None], dim=-1)
        return self.to_output(torch.einsum("bhts,bshd->bthd", weights, v).flatten(2)), weights


class head_by_head(_Projections):
    """Right: a loop over heads and chunks."""

    def forward(self, x, memory, memory_mask):
        parts = (self.to_queries(x), self.to_keys(memory), self.to_values(memory))
        outputs, all_weights = [], []
        for q, k, v in zip(*(part.chunk(self.heads, dim=-1) for part in parts), strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) / k.shape[-1] ** 0.5
            scores[~memory_mask[:, None].expand(scores.shape)] = -torch.inf
            all_weights.append(scores.softmax(dim=-1))
            outputs.append(all_weights[-1] @ v)
        return self.to_output(torch.cat(outputs, dim=-1)), torch.stack(all_weights, dim=1)


CROSS_ATTENTION = Exercise(
    id="cross_attention",
    title="Cross-attention",
    asks="Let the target's queries attend to the source's keys and values, with several heads.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("output", "weights", "gradient of memory"),
    driver="module",
    seconds=30.0,  # with a padding mask, PyTorch first imports SymPy
    groups={
        "values": Group(1, "without padding"),
        "padding": Group(1, "padded sources"),
        "edges": Group(1, "one step; large scores"),
    },
    cases=cross_attention_cases,
    reference=CrossAttentionReference,
    misconceptions=(
        Misconception(
            keys_and_values_from_below,
            "Keys and values are made from the decoder's own `x`: this is self-attention.",
            "What does the decoder want to look at here?",
        ),
        Misconception(
            queries_from_the_encoder,
            "Queries are made from `memory`, keys and values from `x`: the two changed places.",
            "For which words should an output come out, source or target?",
        ),
        Misconception(
            source_padding_seen,
            "Padding of the source can be seen.",
            "Where does `memory_mask` enter your computation?",
        ),
        Misconception(
            true_taken_for_hidden,
            "The mask is read the wrong way round: here True means that a word may be seen.",
            "Some of PyTorch's arguments say True for hidden. What does the contract say?",
        ),
        Misconception(
            visible_filled_with_infinity,
            "The mask is the wrong way round: visible words get the score −∞, and a row of −∞ "
            "becomes NaN.",
            "`masked_fill` fills where its mask is True. Which words should be filled?",
        ),
        Misconception(
            masked_after_the_softmax,
            "Weights of padding are set to zero after the softmax, and rows no longer sum to 1.",
            "Hide the scores before the softmax.",
        ),
        Misconception(
            causal_on_the_source,
            "A causal mask hides source words. The whole source is known from the start.",
            "Which attention of the decoder needs the causal mask?",
        ),
        Misconception(
            softmax_over_the_target,
            "The softmax runs over the target words, so columns sum to 1.",
            "Which axis holds the keys?",
        ),
        Misconception(
            scaled_by_d_model,
            "The scores are divided by √d_model; each head is only d_model / heads wide.",
            "How many products does one score sum up?",
        ),
        Misconception(
            scores_unscaled,
            "The scores are not scaled.",
            "By what are the products divided?",
        ),
        Misconception(
            heads_cut_across,
            "The features of a head do not lie side by side in your split.",
            "Head 0 gets the features 0, 1, … up to the width of a head.",
        ),
        Misconception(
            heads_by_view,
            "The length and the heads are mixed up: a reshape alone does not exchange axes.",
            "Split the last axis first, then exchange two axes.",
        ),
        Misconception(
            merged_without_transpose,
            "The heads are merged without bringing their axis back to the end.",
            "Which two axes must lie side by side before they can become one?",
        ),
        Misconception(
            output_not_projected,
            "The last projection, `to_output`, is missing.",
            "Which of the four layers does your code not use?",
        ),
        Misconception(
            weights_averaged,
            "The weights are averaged over the heads: the axis of the heads is gone.",
            "Which shape of the weights does the contract ask for?",
        ),
        Misconception(
            memory_detached,
            "No gradient reaches `memory`: the encoder would never learn.",
            "Look for `detach`, `data` or `no_grad`.",
        ),
    ),
    accepted=(by_pytorch, by_einsum, head_by_head),
)
