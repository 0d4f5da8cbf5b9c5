"""Exercise of chapter 07: a decoder block, equal to PyTorch's."""

from __future__ import annotations

import torch
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_source_mask, draw_weights, shapes_of


class DecoderBlockReference(nn.TransformerDecoderLayer):
    """PyTorch's own layer, with masks the other way round."""

    def __init__(self, d_model, heads, d_hidden):
        super().__init__(d_model, heads, d_hidden, dropout=0.0, batch_first=True)

    def forward(self, x, memory, memory_mask):
        """Post-LN decoder layer."""
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        return super().forward(x, memory, tgt_mask=future, memory_key_padding_mask=~memory_mask)


def decoder_block_cases(rng):
    """Unequal lengths; padded sources with poison; a longer and a shorter source; one place."""
    for group, batch, target, source, heads, d_head, d_hidden, about in (
        ("values", 2, 3, 4, 3, 2, 7, "no padding, a longer source"),
        ("padding", 2, 5, 4, 2, 3, 8, "padded sources, shorter than the target"),
        ("edges", 2, 1, 5, 3, 2, 7, "one place"),
    ):
        d_model = heads * d_head
        build = {"d_model": d_model, "heads": heads, "d_hidden": d_hidden}
        memory = rng.normal(size=(batch, source, d_model))
        mask = draw_source_mask(rng, batch, source)
        if group != "padding":
            mask[:] = True
        memory[~mask] *= 40.0  # poison
        x = 2 * rng.normal(size=(batch, target, d_model))
        yield Case(
            group,
            {
                "build": build,
                "weights": draw_weights(rng, shapes_of(DecoderBlockReference(**build))),
                "inputs": {"x": x, "memory": memory, "memory_mask": mask},
                "upstream": rng.normal(size=x.shape),
            },
            about,
        )


class _Block(nn.Module):
    """Right unless something is overridden; the wrong versions are made of it."""

    activation = staticmethod(torch.relu)

    def __init__(self, d_model, heads, d_hidden):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.multihead_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def hidden_places(self, length):
        """What self-attention must not see: True for hidden."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def look_at_target(self, x):
        """Causal self-attention."""
        future = self.hidden_places(x.shape[1])
        return self.self_attn(x, x, x, attn_mask=future)[0]

    def look_at_source(self, x, memory, mask):
        """Cross-attention."""
        return self.multihead_attn(x, memory, memory, key_padding_mask=~mask)[0]

    def think(self, x):
        """The two linear layers."""
        return self.linear2(self.activation(self.linear1(x)))

    def forward(self, x, memory, memory_mask):
        """Three times: add, then norm."""
        x = self.norm1(x + self.look_at_target(x))
        x = self.norm2(x + self.look_at_source(x, memory, memory_mask))
        return self.norm3(x + self.think(x))


class future_seen(_Block):
    """No causal mask."""

    def hidden_places(self, length):
        return None


class past_hidden(_Block):
    """A causal mask that says True for visible."""

    def hidden_places(self, length):
        return torch.ones(length, length, dtype=torch.bool).tril(-1)


class source_padding_seen(_Block):
    """No padding mask."""

    def look_at_source(self, x, memory, mask):
        return self.multihead_attn(x, memory, memory)[0]


class source_words_hidden(_Block):
    """Hands the mask on without turning it round: NaN where everything is visible."""

    def look_at_source(self, x, memory, mask):
        return self.multihead_attn(x, memory, memory, key_padding_mask=mask)[0]


class causal_mask_as_visible(_Block):
    """Hands on a triangle of what may be seen: the last place sees nothing, NaN."""

    def hidden_places(self, length):
        return torch.ones(length, length, dtype=torch.bool).tril()


class looks_at_itself_twice(_Block):
    """Cross-attention with the decoder's own keys and values."""

    def look_at_source(self, x, memory, mask):
        return self.multihead_attn(x, x, x)[0]


class source_asked_by_the_block_input(_Block):
    """Cross-attention's queries are made before self-attention has spoken."""

    def forward(self, x, memory, memory_mask):
        y = self.norm1(x + self.look_at_target(x))
        z = self.norm2(y + self.look_at_source(x, memory, memory_mask))
        return self.norm3(z + self.think(z))


class first_residual_missing(_Block):
    """No residual round self-attention."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(self.look_at_target(x))
        x = self.norm2(x + self.look_at_source(x, memory, memory_mask))
        return self.norm3(x + self.think(x))


class second_residual_missing(_Block):
    """No residual round cross-attention."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_target(x))
        x = self.norm2(self.look_at_source(x, memory, memory_mask))
        return self.norm3(x + self.think(x))


class third_residual_missing(_Block):
    """No residual round the linear layers."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_target(x))
        x = self.norm2(x + self.look_at_source(x, memory, memory_mask))
        return self.norm3(self.think(x))


class block_input_added_each_time(_Block):
    """Every residual starts at the block's input."""

    def forward(self, x, memory, memory_mask):
        y = self.norm1(x + self.look_at_target(x))
        z = self.norm2(x + self.look_at_source(y, memory, memory_mask))
        return self.norm3(x + self.think(z))


class norm_before_each_part(_Block):
    """Pre-LN."""

    def forward(self, x, memory, memory_mask):
        x = x + self.look_at_target(self.norm1(x))
        x = x + self.look_at_source(self.norm2(x), memory, memory_mask)
        return x + self.think(self.norm3(x))


class source_before_target(_Block):
    """Cross-attention first."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_source(x, memory, memory_mask))
        x = self.norm2(x + self.look_at_target(x))
        return self.norm3(x + self.think(x))


class one_norm_for_all(_Block):
    """The same norm three times."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_target(x))
        x = self.norm1(x + self.look_at_source(x, memory, memory_mask))
        return self.norm1(x + self.think(x))


class last_norm_missing(_Block):
    """Two norms for three residuals."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_target(x))
        x = self.norm2(x + self.look_at_source(x, memory, memory_mask))
        return x + self.think(x)


class cross_attention_missing(_Block):
    """An encoder's layer."""

    def forward(self, x, memory, memory_mask):
        x = self.norm1(x + self.look_at_target(x))
        return self.norm3(x + self.think(x))


class gelu_for_relu(_Block):
    """GELU."""

    activation = staticmethod(nn.functional.gelu)


class no_activation(_Block):
    """Two linear layers in a row."""

    activation = staticmethod(lambda x: x)


class with_float_masks(_Block):
    """Right: masks of 0 and −inf that are added."""

    def look_at_target(self, x):
        future = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        return self.self_attn(x, x, x, attn_mask=future)[0]

    def look_at_source(self, x, memory, mask):
        low = torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -torch.inf)
        return self.multihead_attn(x, memory, memory, key_padding_mask=low)[0]


class with_a_mask_for_all_heads(_Block):
    """Right: one mask (batch · heads, target, source) for cross-attention."""

    def look_at_source(self, x, memory, mask):
        heads = self.multihead_attn.num_heads
        hidden = ~mask[:, None].expand(-1, x.shape[1], -1).repeat_interleave(heads, dim=0)
        return self.multihead_attn(x, memory, memory, attn_mask=hidden)[0]


class one_place_at_a_time(_Block):
    """Right: each place attends to the places up to itself, by a loop."""

    def look_at_target(self, x):
        seen = (x[:, : place + 1] for place in range(x.shape[1]))
        return torch.cat([self.self_attn(y[:, -1:], y, y)[0] for y in seen], dim=1)


DECODER_BLOCK = Exercise(
    id="decoder_block",
    title="A decoder block",
    asks="Build a post-LN decoder block that equals `nn.TransformerDecoderLayer`.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("output", "gradient of memory"),
    driver="module",
    seconds=30.0,  # with a padding mask, PyTorch first imports SymPy
    # Its `forward` always calls this; the name "forward" itself would be found in any answer.
    forbidden=("torch.nn.TransformerDecoderLayer._mha_block",),
    groups={
        "values": Group(2, "without padding"),
        "padding": Group(1, "padded sources"),
        "edges": Group(1, "one place"),
    },
    cases=decoder_block_cases,
    reference=DecoderBlockReference,
    misconceptions=(
        Misconception(
            future_seen,
            "Self-attention sees the future.",
            "Which attention needs a causal mask, and did it get one?",
        ),
        Misconception(
            past_hidden,
            "The causal mask is the wrong way round: `nn.MultiheadAttention` hides what is True.",
            "Which side of the triangle must be True for `attn_mask`?",
        ),
        Misconception(
            causal_mask_as_visible,
            "The lower triangle is hidden, the diagonal too, so the last place sees nothing: NaN.",
            "`attn_mask` says True = hidden. On which side of the diagonal is the future?",
        ),
        Misconception(
            source_padding_seen,
            "Padding of the source can be seen.",
            "Which argument of `nn.MultiheadAttention` hides keys of a whole sentence?",
        ),
        Misconception(
            source_words_hidden,
            "The source mask is the wrong way round: `key_padding_mask` hides what is True.",
            "True means 'may be seen' in `memory_mask`. And in `key_padding_mask`?",
        ),
        Misconception(
            looks_at_itself_twice,
            "The second attention takes its keys and values from the target, too.",
            "Where does `memory` enter your block?",
        ),
        Misconception(
            source_asked_by_the_block_input,
            "The queries of cross-attention are made from the block's input.",
            "What does the second line of the contract start from?",
        ),
        Misconception(
            first_residual_missing,
            "The residual round self-attention is missing.",
            "Count the plus signs: there should be three.",
        ),
        Misconception(
            second_residual_missing,
            "The residual round cross-attention is missing.",
            "Count the plus signs: there should be three.",
        ),
        Misconception(
            third_residual_missing,
            "The residual round the two linear layers is missing.",
            "Count the plus signs: there should be three.",
        ),
        Misconception(
            block_input_added_each_time,
            "Every residual adds the block's input; it should add what its own part started from.",
            "What does the third part get as input, and what is added to its output?",
        ),
        Misconception(
            norm_before_each_part,
            "This is pre-LN: each norm stands before its part. The contract asks for post-LN.",
            "Add first, then normalise.",
        ),
        Misconception(
            source_before_target,
            "Cross-attention comes before self-attention.",
            "Which of the two comes first in the contract?",
        ),
        Misconception(
            one_norm_for_all,
            "One norm is used three times; each residual has its own.",
            "Does your forward use `norm2` and `norm3`?",
        ),
        Misconception(
            last_norm_missing,
            "The norm after the last residual is missing.",
            "Count the norms.",
        ),
        Misconception(
            cross_attention_missing,
            "There is no cross-attention: the source has no effect.",
            "Where does `memory` enter your block?",
        ),
        Misconception(
            gelu_for_relu,
            "The activation is GELU; the contract asks for ReLU.",
            "Which function stands between the two linear layers?",
        ),
        Misconception(
            no_activation,
            "There is nothing between the two linear layers, so they are one linear map.",
            "Which function stands between the two linear layers?",
        ),
    ),
    accepted=(with_float_masks, with_a_mask_for_all_heads, one_place_at_a_time),
)
