"""Chapter 05: one encoder block that agrees with `nn.TransformerEncoderLayer`."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_block_sizes, draw_layer_weights


def encoder_block_cases(rng):
    """Both norm orders, one of them in training mode: nothing may be dropped."""

    def inputs(norm_first, training):
        s = draw_block_sizes(rng)
        build = {"d_model": s.d_model, "heads": s.heads, "d_hidden": s.d_hidden}
        return {
            "build": {**build, "norm_first": norm_first},
            "weights": draw_layer_weights(rng, s.d_model, s.d_hidden),
            "inputs": {"x": 0.3 + rng.normal(size=(s.batch, s.length, s.d_model))},
            "training": training,
        }

    yield Case("pre", inputs(True, training=False), "norm_first=True")
    yield Case("post", inputs(False, training=True), "norm_first=False, in training mode")


class EncoderBlockReference(nn.TransformerEncoderLayer):
    """PyTorch's own layer, with the exercise's signature."""

    def __init__(self, d_model: int, heads: int, d_hidden: int, norm_first: bool):
        super().__init__(
            d_model,
            heads,
            d_hidden,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=norm_first,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, d_model)."""
        return super().forward(x)


class Block(nn.Module):
    """A right block in small parts, which the wrong versions exchange one by one."""

    batch_first = True

    def __init__(self, d_model: int, heads: int, d_hidden: int, norm_first: bool):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, batch_first=self.batch_first)
        self.linear1, self.linear2 = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def attend(self, tokens: torch.Tensor) -> torch.Tensor:
        """Self-attention."""
        return self.self_attn(tokens, tokens, tokens, need_weights=False)[0]

    def bend(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the activation."""
        return functional.gelu(hidden)

    def mlp(self, tokens: torch.Tensor) -> torch.Tensor:
        """Widen, bend, narrow."""
        return self.linear2(self.bend(self.linear1(tokens)))

    def pre(self, x: torch.Tensor) -> torch.Tensor:
        """Norm first."""
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def post(self, x: torch.Tensor) -> torch.Tensor:
        """Norm last."""
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.mlp(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, d_model)."""
        return self.pre(x) if self.norm_first else self.post(x)


class BlockOrdersExchanged(Block):
    """Reads the switch the wrong way round."""

    def forward(self, x):
        return self.post(x) if self.norm_first else self.pre(x)


class BlockAlwaysPost(Block):
    """Ignores the switch."""

    pre = Block.post


class BlockAlwaysPre(Block):
    """Ignores the switch."""

    post = Block.pre


class BlockWithRelu(Block):
    """ReLU, the default of PyTorch's layer, for GELU."""

    def bend(self, hidden):
        return functional.relu(hidden)


class BlockWithTanhGelu(Block):
    """The tanh form for the exact GELU."""

    def bend(self, hidden):
        return functional.gelu(hidden, approximate="tanh")


class BlockWithoutActivation(Block):
    """No bend at all."""

    def bend(self, hidden):
        return hidden


class BlockLinksTheNormalised(Block):
    """In the pre order, both links start after the norm."""

    def pre(self, x):
        x = self.norm1(x)
        x = self.norm2(x + self.attend(x))
        return x + self.mlp(x)


class BlockWithoutLinks(Block):
    """No residual links."""

    def pre(self, x):
        return self.mlp(self.norm2(self.attend(self.norm1(x))))

    def post(self, x):
        return self.norm2(self.mlp(self.norm1(self.attend(x))))


class BlockWithoutFirstLink(Block):
    """No residual link around the attention."""

    def pre(self, x):
        x = self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def post(self, x):
        x = self.norm1(self.attend(x))
        return self.norm2(x + self.mlp(x))


class BlockWithoutSecondLink(Block):
    """No residual link around the MLP."""

    def pre(self, x):
        return self.mlp(self.norm2(x + self.attend(self.norm1(x))))

    def post(self, x):
        return self.norm2(self.mlp(self.norm1(x + self.attend(x))))


class BlockSecondLinkFromTheInput(Block):
    """The second link starts at the block's input."""

    def pre(self, x):
        return x + self.mlp(self.norm2(x + self.attend(self.norm1(x))))

    def post(self, x):
        return self.norm2(x + self.mlp(self.norm1(x + self.attend(x))))


class BlockInParallel(Block):
    """Attention and MLP both read the block's input."""

    def pre(self, x):
        return x + self.attend(self.norm1(x)) + self.mlp(self.norm2(x))

    def post(self, x):
        return self.norm2(self.norm1(x + self.attend(x)) + self.mlp(x))


class BlockMlpFirst(Block):
    """The MLP comes before the attention."""

    def pre(self, x):
        x = x + self.mlp(self.norm1(x))
        return x + self.attend(self.norm2(x))

    def post(self, x):
        x = self.norm1(x + self.mlp(x))
        return self.norm2(x + self.attend(x))


class BlockNormsExchanged(Block):
    """`norm2` stands at the attention and `norm1` at the MLP."""

    def forward(self, x):
        self.norm1, self.norm2 = self.norm2, self.norm1
        return super().forward(x)


class BlockOneNormTwice(Block):
    """Uses `norm1` in both places."""

    def forward(self, x):
        self.norm2 = self.norm1
        return super().forward(x)


class BlockOneNormOnly(Block):
    """Has a single norm and uses it twice."""

    def __init__(self, d_model, heads, d_hidden, norm_first):
        super().__init__(d_model, heads, d_hidden, norm_first)
        del self.norm2

    def pre(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm1(x))


class BlockNormsQueriesOnly(Block):
    """In the pre order, keys and values are made of tokens that are not normalised."""

    def pre(self, x):
        x = x + self.self_attn(self.norm1(x), x, x, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class BlockLengthFirst(Block):
    """Leaves `batch_first` at its default: attends along the batch."""

    batch_first = False


class BlockTakesThePair(Block):
    """Adds what `nn.MultiheadAttention` returns, output and weights, to a tensor."""

    def attend(self, tokens):
        return self.self_attn(tokens, tokens, tokens)


class BlockWithDropout(Block):
    """Drops weights of the attention in training."""

    def __init__(self, d_model, heads, d_hidden, norm_first):
        super().__init__(d_model, heads, d_hidden, norm_first)
        self.self_attn.dropout = 0.1


class BlockByHand(Block):
    """Right: attention out of its parts."""

    def attend(self, tokens):
        attention = self.self_attn
        projected = functional.linear(tokens, attention.in_proj_weight, attention.in_proj_bias)
        split = projected.unflatten(-1, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = split
        weights = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
        return attention.out_proj((weights @ values).transpose(1, 2).flatten(2))


class BlockByLoop(Block):
    """Right: one sublayer after the other, in a loop."""

    def forward(self, x):
        for sublayer, norm in ((self.attend, self.norm1), (self.mlp, self.norm2)):
            added = sublayer(norm(x)) if self.norm_first else sublayer(x)
            x = torch.add(x, added)
            x = x if self.norm_first else norm(x)
        return x


class _Projections(nn.Module):
    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * d_model, d_model))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * d_model))
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        parts = functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        output = functional.scaled_dot_product_attention(*heads)
        return self.out_proj(output.transpose(1, 2).flatten(-2))


class BlockOfOwnParts(nn.Module):
    """Right: its own attention module, with the parameters that the exercise names."""

    def __init__(self, d_model, heads, d_hidden, norm_first):
        super().__init__()
        self.first = norm_first
        self.self_attn = _Projections(d_model, heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, d_hidden)
        self.linear2 = nn.Linear(d_hidden, d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        if self.first:
            h = x + self.self_attn(self.norm1(x))
            return h + self.linear2(nn.GELU()(self.linear1(self.norm2(h))))
        h = self.norm1(x + self.self_attn(x))
        return self.norm2(h + self.linear2(nn.GELU()(self.linear1(h))))


ENCODER_BLOCK = Exercise(
    id="encoder_block",
    title="One encoder block",
    asks="Build attention, MLP, two residual links and two norms into one block.",
    parameters=("build", "weights", "inputs", "training"),
    outputs=("result", "gradient of x", "number of parameters"),
    driver="module",
    seconds=10.0,
    forbidden=("torch.nn.TransformerEncoderLayer.forward",),
    groups={
        "pre": Group(2, "norm first (pre-LN)"),
        "post": Group(2, "norm last (post-LN)"),
    },
    cases=encoder_block_cases,
    reference=EncoderBlockReference,
    misconceptions=(
        Misconception(
            BlockOrdersExchanged,
            "The two norm orders are exchanged.",
            "`norm_first=True` means that each sublayer sees normalised tokens.",
        ),
        Misconception(
            BlockAlwaysPost,
            "The block is post-LN whatever `norm_first` says.",
            "Where does `forward` look at `norm_first`?",
        ),
        Misconception(
            BlockAlwaysPre,
            "The block is pre-LN whatever `norm_first` says.",
            "Where does `forward` look at `norm_first`?",
        ),
        Misconception(
            BlockWithRelu,
            "The MLP bends with ReLU; GELU is asked.",
            "Point 4 of the contract names the activation.",
        ),
        Misconception(
            BlockWithTanhGelu,
            "The MLP uses the tanh form of GELU; the exact one is asked.",
            "Point 4 of the contract names the activation.",
        ),
        Misconception(
            BlockWithoutActivation,
            "The MLP has no activation: two linear maps in a row are one.",
            "What stands between `linear1` and `linear2`?",
        ),
        Misconception(
            BlockLinksTheNormalised,
            "In the pre order the residual links start after the norm.",
            "In pre-LN nothing stands on the straight way from input to output. Look at yours.",
        ),
        Misconception(
            BlockWithoutLinks,
            "There are no residual links.",
            "Count the plus signs in the picture of the block.",
        ),
        Misconception(
            BlockWithoutFirstLink,
            "The residual link around the attention is missing.",
            "Count the plus signs in the picture of the block.",
        ),
        Misconception(
            BlockWithoutSecondLink,
            "The residual link around the MLP is missing.",
            "Count the plus signs in the picture of the block.",
        ),
        Misconception(
            BlockSecondLinkFromTheInput,
            "The second link adds the block's input; what the first half gave is lost.",
            "Which tensor goes *into* the second half?",
        ),
        Misconception(
            BlockInParallel,
            "The MLP reads the block's input instead of what the first half gave.",
            "The two halves come one after the other. What does the second one read?",
        ),
        Misconception(
            BlockMlpFirst,
            "The MLP comes first, the attention second.",
            "In which order does the picture show the two halves?",
        ),
        Misconception(
            BlockNormsExchanged,
            "`norm1` and `norm2` are exchanged. In a fresh block one would not notice.",
            "`norm1` belongs to the attention.",
        ),
        Misconception(
            BlockOneNormTwice,
            "`norm1` is used in both places. In a fresh block one would not notice.",
            "Each half has a norm of its own.",
        ),
        Misconception(
            BlockOneNormOnly,
            "The block has one LayerNorm; it needs two, with parameters of their own.",
            "Each half has a norm of its own: `norm1` and `norm2`.",
        ),
        Misconception(
            BlockNormsQueriesOnly,
            "Only the queries are normalised; keys and values are made of the raw tokens.",
            "*Self*-attention: all three come from the same tensor.",
        ),
        Misconception(
            BlockLengthFirst,
            "`nn.MultiheadAttention` takes the first axis for the length, so sequences of a batch "
            "are mixed.",
            "Look at the arguments of its constructor.",
        ),
        Misconception(
            BlockTakesThePair,
            "`nn.MultiheadAttention` returns a pair, and the pair is taken for the output.",
            "Which of the two things that it returns has the shape of x?",
        ),
        Misconception(
            BlockWithDropout,
            "The attention drops weights in training; no dropout is asked.",
            "What did you pass for `dropout`?",
        ),
    ),
    accepted=(Block, BlockByHand, BlockByLoop, BlockOfOwnParts),
    equivalent_mutants={
        "`self.self_attn(x, x, x, need_weights=False)` → "
        "`self.self_attn(x, x, x, need_weights=True)`": "only the output is used",
    },
)
