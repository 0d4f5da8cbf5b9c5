"""Chapter 08: a small GPT made of PyTorch's blocks."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


class _Parts(nn.Module):
    """The parameters of the contract. Every answer below adds a `forward`."""

    def __init__(self, vocabulary, context, d_model, heads, layers):
        super().__init__()
        self.context, self.heads = context, heads
        self.token_embedding = nn.Embedding(vocabulary, d_model)
        self.position_embedding = nn.Embedding(context, d_model)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d_model, heads, 4 * d_model, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.final_norm = nn.LayerNorm(d_model)


def draw_weights(rng, build) -> dict[str, np.ndarray]:
    """Draw every parameter, gains and biases too."""
    drawn = {}
    for name, parameter in _Parts(**build).named_parameters():
        shape = tuple(parameter.shape)
        scale = 1.0 if "embedding" in name else shape[-1] ** -0.5 if len(shape) > 1 else 0.3
        is_gain = "norm" in name and name.endswith("weight")
        drawn[name] = is_gain + scale * rng.normal(size=shape)
    return drawn


def gpt_cases(rng):
    """One block and two; short and full contexts; rows that share a beginning; too long a text."""

    def case(group, about, batch, length, layers=1, shared=0, training=False):
        vocabulary, d_model, context = int(rng.integers(7, 9)), 6, 5
        build = {
            "vocabulary": vocabulary,
            "context": context,
            "d_model": d_model,
            "heads": int(rng.choice([2, 3])),
            "layers": layers,
        }
        tokens = rng.integers(0, vocabulary, size=(batch, length))
        tokens[:, :shared] = tokens[:1, :shared]
        inputs = {"build": build, "inputs": {"tokens": tokens}, "training": training}
        if length <= context:
            inputs["weights"] = draw_weights(rng, build)
            inputs["upstream"] = rng.normal(size=(batch, length, vocabulary))
        return Case(group, inputs, about)

    yield case("values", "one block, a short text", 3, 2)
    yield case("values", "one block, rows with the same beginning", 2, 4, shared=2)
    yield case("training", "one block, in training mode", 2, 3, training=True)
    yield case("deep", "two blocks, a text that fills the context", 1, 5, layers=2)
    yield case("deep", "two blocks, single tokens", 2, 1, layers=2)
    yield case("refused", "a text longer than the context", 2, 6)


class GPTReference(_Parts):
    """Every step by hand, from the weights."""

    def forward(self, tokens):
        """Logits of all next tokens."""
        length = tokens.shape[1]
        if length > self.context:
            raise ValueError("too long")
        x = self.token_embedding.weight[tokens] + self.position_embedding.weight[:length]
        hidden = torch.ones(length, length).triu(1).bool()
        for block in self.blocks:
            y = block.norm1(x)
            fused = y @ block.self_attn.in_proj_weight.T + block.self_attn.in_proj_bias
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for part in fused.chunk(3, dim=-1)
            )
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
            weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
            attended = (weights @ v).transpose(1, 2).flatten(2)
            x = x + block.self_attn.out_proj(attended)
            x = x + block.linear2(F.gelu(block.linear1(block.norm2(x))))
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
        x = (x - mean) / torch.sqrt(variance + self.final_norm.eps)
        x = x * self.final_norm.weight + self.final_norm.bias
        return torch.einsum("bld,vd->blv", x, self.token_embedding.weight)


class _Steps(_Parts):
    """A GPT in steps, so that each mistake changes one of them."""

    def embed(self, tokens):
        """Tokens and positions."""
        if tokens.shape[1] > self.context:
            raise ValueError("too long")
        positions = torch.arange(tokens.shape[1])
        return self.token_embedding(tokens) + self.position_embedding(positions)

    def mask(self, length):
        """True = hidden, as PyTorch's blocks want it."""
        return torch.ones(length, length).triu(1).bool()

    def apply_blocks(self, x):
        """All blocks in turn."""
        for block in self.blocks:
            x = block(x, src_mask=self.mask(x.shape[1]))
        return x

    def head(self, x):
        """Logits."""
        return self.final_norm(x) @ self.token_embedding.weight.T

    def forward(self, tokens):
        """Logits of all next tokens."""
        return self.head(self.apply_blocks(self.embed(tokens)))


class no_causal_mask(_Steps):
    """Every token sees the whole text."""

    def mask(self, length):
        """Nothing hidden."""
        return None


class mask_turned_round(_Steps):
    """Hides the past: True was taken for "may be seen"."""

    def mask(self, length):
        """The past is hidden, and the token itself."""
        return torch.ones(length, length).tril().bool()


class itself_hidden_too(_Steps):
    """Hides the diagonal."""

    def mask(self, length):
        """The token itself is hidden as well."""
        return torch.ones(length, length).triu(0).bool()


class next_token_visible(_Steps):
    """The triangle is one too wide."""

    def mask(self, length):
        """The next token can be seen."""
        return torch.ones(length, length).triu(2).bool()


class positions_forgotten(_Steps):
    """No positions."""

    def embed(self, tokens):
        """Tokens only."""
        return super().embed(tokens) - self.position_embedding.weight[: tokens.shape[1]]


class one_position_for_all(_Steps):
    """Every token gets the first position."""

    def embed(self, tokens):
        """Position 0 everywhere."""
        return self.embed_with(tokens, torch.zeros(tokens.shape[1], dtype=torch.long))

    def embed_with(self, tokens, positions):
        """Other positions."""
        if tokens.shape[1] > self.context:
            raise ValueError("too long")
        return self.token_embedding(tokens) + self.position_embedding(positions)


class embedding_scaled(_Steps):
    """Multiplies embeddings by √d_model, as the first Transformer did."""

    def embed(self, tokens):
        """Scaled tokens."""
        scale = self.token_embedding.weight.shape[1] ** 0.5 - 1
        return super().embed(tokens) + scale * self.token_embedding(tokens)


class final_norm_forgotten(_Steps):
    """No LayerNorm before the logits."""

    def head(self, x):
        """Straight to the logits."""
        return x @ self.token_embedding.weight.T


class tie_cut(_Steps):
    """The output uses a copy of the embedding that gets no gradient."""

    def head(self, x):
        """Logits from detached weights."""
        return self.final_norm(x) @ self.token_embedding.weight.detach().T


class first_block_only(_Steps):
    """The first block does the work of all."""

    def apply_blocks(self, x):
        """The first block again and again."""
        for _ in self.blocks:
            x = self.blocks[0](x, src_mask=self.mask(x.shape[1]))
        return x


class norms_after(_Steps):
    """Blocks with the norm behind each step."""

    def apply_blocks(self, x):
        """Post-norm."""
        for block in self.blocks:
            block.norm_first = False
        return super().apply_blocks(x)


class relu_for_gelu(_Steps):
    """ReLU, PyTorch's default."""

    def apply_blocks(self, x):
        """ReLU in every block."""
        for block in self.blocks:
            block.activation = F.relu
            block.activation_relu_or_gelu = 1
        return super().apply_blocks(x)


class dropout_by_default(_Steps):
    """Leaves dropout at PyTorch's 0.1."""

    def apply_blocks(self, x):
        """Dropout in every block."""
        for block in self.blocks:
            block.self_attn.dropout = 0.1
            for dropout in (block.dropout, block.dropout1, block.dropout2):
                dropout.p = 0.1
        return super().apply_blocks(x)


class probabilities_as_logits(_Steps):
    """A softmax at the end."""

    def head(self, x):
        """Probabilities."""
        return super().head(x).softmax(dim=-1)


class only_the_last_place(_Steps):
    """Gives the logits of the last place only."""

    def head(self, x):
        """The last place."""
        return super().head(x[:, -1:])


class too_long_texts_cropped(_Steps):
    """Drops the beginning of a text that is too long."""

    def forward(self, tokens):
        """Reads the last tokens."""
        return super().forward(tokens[:, -self.context :])


class gpt_with_float_mask(_Parts):
    """Right: −inf above the diagonal, as `generate_square_subsequent_mask` makes it."""

    def forward(self, tokens):
        """Logits of all next tokens."""
        length = tokens.size(1)
        if length > self.position_embedding.num_embeddings:
            raise ValueError("text longer than the context")
        x = self.token_embedding(tokens) + self.position_embedding.weight[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=x.dtype)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return F.linear(self.final_norm(x), self.token_embedding.weight)


class gpt_with_head(_Parts):
    """Right: a linear layer that shares the embedding's weight."""

    def __init__(self, vocabulary, context, d_model, heads, layers):
        super().__init__(vocabulary, context, d_model, heads, layers)
        self.output = nn.Linear(d_model, vocabulary, bias=False)
        self.output.weight = self.token_embedding.weight

    def forward(self, tokens):
        """Logits of all next tokens."""
        if tokens.shape[-1] > self.context:
            raise ValueError("text longer than the context")
        positions = torch.arange(tokens.shape[-1]).expand_as(tokens)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        mask = ~torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        for block in self.blocks:
            x = block(x, mask)
        return self.output(self.final_norm(x))


class gpt_with_fused_attention(_Parts):
    """Right: PyTorch's fused attention with `is_causal`, the rest of each block by hand."""

    def forward(self, tokens):
        """Logits of all next tokens."""
        length = tokens.shape[1]
        if length > self.context:
            raise ValueError("text longer than the context")
        x = self.token_embedding(tokens) + self.position_embedding(torch.arange(length))
        for block in self.blocks:
            attention = block.self_attn
            fused = F.linear(block.norm1(x), attention.in_proj_weight, attention.in_proj_bias)
            parts = [
                p.unflatten(-1, (self.heads, -1)).mT.mT.transpose(1, 2) for p in fused.chunk(3, -1)
            ]
            attended = F.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + attention.out_proj(attended.transpose(1, 2).flatten(2))
            x = x + block.linear2(F.gelu(block.linear1(block.norm2(x))))
        return self.final_norm(x) @ self.token_embedding.weight.mT


GPT = Exercise(
    id="gpt",
    title="A small GPT",
    asks="Stack PyTorch's blocks with a causal mask between an embedding and the same embedding.",
    parameters=("build", "weights", "inputs", "upstream", "training"),
    outputs=("logits", "gradient of token_embedding.weight"),
    driver="module",
    seconds=5.0,
    groups={
        "values": Group(2, "one block"),
        "training": Group(1, "the same in training mode: no dropout"),
        "deep": Group(1, "two blocks, full context, single tokens"),
        "refused": Group(1, "texts longer than the context"),
    },
    cases=gpt_cases,
    reference=GPTReference,
    misconceptions=(
        Misconception(
            no_causal_mask,
            "There is no causal mask: each place sees the token that it should predict.",
            "What does a block need besides `x`?",
        ),
        Misconception(
            mask_turned_round,
            "The mask hides the past: in PyTorch's blocks True means *hidden*.",
            "Print your mask: what may place 0 see?",
        ),
        Misconception(
            itself_hidden_too,
            "The mask hides the diagonal too, so that the first place sees nothing.",
            "Which diagonal does `triu` begin with?",
        ),
        Misconception(
            next_token_visible,
            "The mask is off by one: each place sees the token that it should predict.",
            "Which diagonal does `triu` begin with?",
        ),
        Misconception(
            positions_forgotten,
            "The positions are not added.",
            "How would the first block tell “dog bites man” from “man bites dog”?",
        ),
        Misconception(
            one_position_for_all,
            "Every token gets position 0.",
            "Which position belongs to token i?",
        ),
        Misconception(
            embedding_scaled,
            "The embeddings are multiplied by √d_model; this model does not do that.",
            "Read the contract's point on the input of the first block.",
        ),
        Misconception(
            final_norm_forgotten,
            "The last LayerNorm is not applied.",
            "What stands between the last block and the logits?",
        ),
        Misconception(
            tie_cut,
            "The embedding gets no gradient from the output: the tie is cut.",
            "`.data` and `.detach()` cut the way back.",
        ),
        Misconception(
            first_block_only,
            "All layers use the weights of the first block.",
            "Does your loop use its own variable?",
        ),
        Misconception(
            norms_after,
            "The blocks apply their norms behind each step (post-norm).",
            "Which argument of the block puts the norm first?",
        ),
        Misconception(
            relu_for_gelu,
            "The blocks use ReLU, PyTorch's default.",
            "Which argument of the block names the activation?",
        ),
        Misconception(
            dropout_by_default,
            "While training, the blocks drop entries: PyTorch's default is a dropout of 0.1.",
            "Which argument of the block sets dropout?",
        ),
        Misconception(
            probabilities_as_logits,
            "The result holds probabilities; logits are expected.",
            "Who applies the softmax, the model or the loss?",
        ),
        Misconception(
            only_the_last_place,
            "Only the last place's logits are returned.",
            "For how many places does training need a prediction?",
        ),
        Misconception(
            too_long_texts_cropped,
            "A text that is too long is cropped without a word.",
            "The contract says what to do with it.",
        ),
    ),
    accepted=(gpt_with_float_mask, gpt_with_head, gpt_with_fused_attention),
)
