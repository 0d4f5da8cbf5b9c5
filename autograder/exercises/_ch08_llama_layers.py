"""Chapter 08: right and wrong versions of a layer as in Llama."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

EPSILON = 1e-5


class Parts(nn.Module):
    """The parameters that the notebook's cell sets up. Every answer below adds a `forward`."""

    def __init__(self, d_model, heads, key_heads, d_hidden, base):
        super().__init__()
        self.heads, self.key_heads, self.base = heads, key_heads, base
        d_keys = key_heads * (d_model // heads)
        self.input_layernorm = nn.RMSNorm(d_model, EPSILON)
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_keys, bias=False)
        self.v_proj = nn.Linear(d_model, d_keys, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(d_model, EPSILON)
        self.gate_proj = nn.Linear(d_model, d_hidden, bias=False)
        self.up_proj = nn.Linear(d_model, d_hidden, bias=False)
        self.down_proj = nn.Linear(d_hidden, d_model, bias=False)


class LlamaLayerReference(Parts):
    """Head by head and place by place; a pair is a complex number, turned by multiplication."""

    def forward(self, x):
        """Give vectors (batch, length, d_model)."""
        length, d_head = x.shape[1], x.shape[-1] // self.heads
        half = d_head // 2
        rates = self.base ** (-2 * torch.arange(half, dtype=x.dtype) / d_head)
        angles = torch.arange(length)[:, None] * rates
        turn = torch.polar(torch.ones_like(angles), angles)

        def norm(vectors, gain):
            return vectors / (vectors.square().mean(-1, keepdim=True) + EPSILON).sqrt() * gain

        def turned(vectors):
            pairs = torch.complex(vectors[..., :half], vectors[..., half:]) * turn
            return torch.cat([pairs.real, pairs.imag], dim=-1)

        normed, outputs = norm(x, self.input_layernorm.weight), []
        for head in range(self.heads):
            own = slice(head * d_head, (head + 1) * d_head)
            group = head // (self.heads // self.key_heads)
            shared = slice(group * d_head, (group + 1) * d_head)
            queries = turned(normed @ self.q_proj.weight[own].T)
            keys = turned(normed @ self.k_proj.weight[shared].T)
            values = normed @ self.v_proj.weight[shared].T
            rows = []
            for place in range(length):
                scores = torch.einsum("bd,bkd->bk", queries[:, place], keys[:, : place + 1])
                weights = (scores / d_head**0.5).softmax(dim=-1)
                rows.append(torch.einsum("bk,bkd->bd", weights, values[:, : place + 1]))
            outputs.append(torch.stack(rows, dim=1))
        x = x + torch.cat(outputs, dim=-1) @ self.o_proj.weight.T
        normed = norm(x, self.post_attention_layernorm.weight)
        gate = normed @ self.gate_proj.weight.T
        inner = gate * torch.sigmoid(gate) * (normed @ self.up_proj.weight.T)
        return x + inner @ self.down_proj.weight.T


class Layer(Parts):
    """Right, in small parts that the wrong versions exchange."""

    def angles(self, x, d_head):
        """Angles (length, d_head / 2)."""
        rates = self.base ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
        return torch.outer(torch.arange(x.shape[1], dtype=x.dtype), rates)

    def turn(self, vectors, angles):
        """Turn the pairs (i, i + d_head / 2)."""
        first, second = vectors.chunk(2, dim=-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

    def turn_all(self, queries, keys, values, angles):
        """Turn what has to be turned."""
        return self.turn(queries, angles), self.turn(keys, angles), values

    def share(self, vectors):
        """Repeat key heads until there is one for each head."""
        return vectors.repeat_interleave(self.heads // self.key_heads, dim=1)

    def scale(self, x):
        """What scores are divided by."""
        return (x.shape[-1] // self.heads) ** 0.5

    def hidden(self, length):
        """True = hidden."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def attend(self, normed):
        """Self-attention on normalised vectors."""
        queries, keys, values = (
            project(normed).unflatten(-1, (count, -1)).transpose(1, 2)
            for project, count in (
                (self.q_proj, self.heads),
                (self.k_proj, self.key_heads),
                (self.v_proj, self.key_heads),
            )
        )
        angles = self.angles(normed, queries.shape[-1])
        queries, keys, values = self.turn_all(queries, keys, values, angles)
        scores = queries @ self.share(keys).mT / self.scale(normed)
        weights = scores.masked_fill(self.hidden(normed.shape[1]), -1e30).softmax(dim=-1)
        return self.o_proj((weights @ self.share(values)).transpose(1, 2).flatten(2))

    def bend(self, gate, up):
        """The gated activation."""
        return F.silu(gate) * up

    def transform(self, normed):
        """The gated MLP on normalised vectors."""
        return self.down_proj(self.bend(self.gate_proj(normed), self.up_proj(normed)))

    def norm_1(self, x):
        """Before the attention."""
        return self.input_layernorm(x)

    def norm_2(self, x):
        """Before the MLP."""
        return self.post_attention_layernorm(x)

    def forward(self, x):
        """Give vectors (batch, length, d_model)."""
        x = x + self.attend(self.norm_1(x))
        return x + self.transform(self.norm_2(x))


class NeighboursTurned(Layer):
    """Pairs 2i and 2i + 1, as in chapter 03."""

    def turn(self, vectors, angles):
        first, second = vectors[..., 0::2], vectors[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        pairs = first * cos - second * sin, first * sin + second * cos
        return torch.stack(pairs, dim=-1).flatten(-2)


class NothingTurned(Layer):
    """No positions."""

    def turn(self, vectors, angles):
        return vectors


class QueriesTurned(Layer):
    """Leaves keys as they are."""

    def turn_all(self, queries, keys, values, angles):
        return self.turn(queries, angles), keys, values


class ValuesTurned(Layer):
    """Turns values as well."""

    def turn_all(self, queries, keys, values, angles):
        return tuple(self.turn(vectors, angles) for vectors in (queries, keys, values))


class KeysTurnedBack(Layer):
    """Turns keys the other way: scores depend on sums of places."""

    def turn_all(self, queries, keys, values, angles):
        return self.turn(queries, angles), self.turn(keys, -angles), values


class BothTurnedBack(Layer):
    """The sign of the sine is exchanged in both."""

    def turn_all(self, queries, keys, values, angles):
        return self.turn(queries, -angles), self.turn(keys, -angles), values


class RatesTooFast(Layer):
    """The exponent is i / d_head instead of 2i / d_head."""

    def angles(self, x, d_head):
        rates = self.base ** (-torch.arange(d_head // 2, dtype=x.dtype) / d_head)
        return torch.outer(torch.arange(x.shape[1], dtype=x.dtype), rates)


class RatesOfTheWholeWidth(Layer):
    """The exponent is 2i / d_model."""

    def angles(self, x, d_head):
        rates = self.base ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / x.shape[-1])
        return torch.outer(torch.arange(x.shape[1], dtype=x.dtype), rates)


class BaseIgnored(Layer):
    """Writes 10000 into the code."""

    def angles(self, x, d_head):
        rates = 10_000.0 ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
        return torch.outer(torch.arange(x.shape[1], dtype=x.dtype), rates)


class KeyHeadsInTurn(Layer):
    """Repeats the list of key heads: heads 0, 2, 4, … share the first."""

    def share(self, vectors):
        return vectors.repeat(1, self.heads // self.key_heads, 1, 1)


class FirstKeyHeadForAll(Layer):
    """All heads use the first key head."""

    def share(self, vectors):
        return vectors[:, :1].expand(-1, self.heads, -1, -1)


class NoCausalMask(Layer):
    """Every token sees all tokens."""

    def hidden(self, length):
        return torch.zeros(length, length, dtype=torch.bool)


class NextTokenSeen(Layer):
    """The triangle is one too wide."""

    def hidden(self, length):
        return torch.ones(length, length, dtype=torch.bool).triu(2)


class ScaledByTheWholeWidth(Layer):
    """Divides by √d_model."""

    def scale(self, x):
        return x.shape[-1] ** 0.5


class NotScaled(Layer):
    """Divides by nothing."""

    def scale(self, x):
        return 1.0


class GateAndUpExchanged(Layer):
    """SiLU on the other factor."""

    def bend(self, gate, up):
        return gate * F.silu(up)


class SiluOfTheProduct(Layer):
    """SiLU after the product."""

    def bend(self, gate, up):
        return F.silu(gate * up)


class SigmoidGate(Layer):
    """A gate between 0 and 1, as in an LSTM."""

    def bend(self, gate, up):
        return torch.sigmoid(gate) * up


class GeluGate(Layer):
    """GELU instead of SiLU."""

    def bend(self, gate, up):
        return F.gelu(gate) * up


class NoUp(Layer):
    """An ordinary MLP with SiLU."""

    def bend(self, gate, up):
        return F.silu(gate)


class NoFirstNorm(Layer):
    """The attention reads x itself."""

    def norm_1(self, x):
        return x


class NoSecondNorm(Layer):
    """The MLP reads x itself."""

    def norm_2(self, x):
        return x


class NormsExchanged(Layer):
    """Takes the one norm for the other."""

    def forward(self, x):
        x = x + self.attend(self.norm_2(x))
        return x + self.transform(self.norm_1(x))


class NormsAfter(Layer):
    """Post-norm."""

    def forward(self, x):
        x = self.norm_1(x + self.attend(x))
        return self.norm_2(x + self.transform(x))


class NoFirstLink(Layer):
    """No residual link around the attention."""

    def forward(self, x):
        x = self.attend(self.norm_1(x))
        return x + self.transform(self.norm_2(x))


class NoSecondLink(Layer):
    """No residual link around the MLP."""

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return self.transform(self.norm_2(x))


class LinkFromTheNormed(Layer):
    """Adds the attention to the normalised vectors."""

    def forward(self, x):
        normed = self.norm_1(x)
        x = normed + self.attend(normed)
        return x + self.transform(self.norm_2(x))


class ThroughLibraryAttention(Parts):
    """Right: PyTorch's attention with shared key heads; [−second, first] instead of two lines."""

    def forward(self, x):
        half = x.shape[-1] // self.heads // 2
        rates = 1 / self.base ** (torch.arange(half, device=x.device) / half)
        angles = torch.outer(torch.arange(x.shape[1], device=x.device), rates).repeat(1, 2).to(x)

        def turned(vectors):
            first, second = vectors[..., :half], vectors[..., half:]
            return vectors * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

        normed = self.input_layernorm(x)
        queries, keys, values = (
            project(normed).reshape(*x.shape[:2], -1, 2 * half).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = F.scaled_dot_product_attention(
            turned(queries), turned(keys), values, is_causal=True, enable_gqa=True
        )
        x = x + self.o_proj(attended.transpose(1, 2).reshape(x.shape))
        normed = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))


class HeadsInGroups(Parts):
    """Right: an axis for groups instead of repeated keys; places counted from 1."""

    def forward(self, x):
        length, d_head = x.shape[1], x.shape[-1] // self.heads
        places = torch.arange(1, length + 1, dtype=x.dtype)
        rates = self.base ** (-2 / d_head * torch.arange(d_head // 2, dtype=x.dtype))
        cos, sin = torch.cos(places[:, None] * rates), torch.sin(places[:, None] * rates)

        def turned(vectors):
            a, b = vectors.tensor_split(2, dim=-1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

        normed = F.rms_norm(x, x.shape[-1:], self.input_layernorm.weight, EPSILON)
        queries = self.q_proj(normed).unflatten(-1, (self.key_heads, -1, d_head))
        queries = turned(queries.permute(0, 2, 3, 1, 4)) / d_head**0.5
        keys = turned(self.k_proj(normed).unflatten(-1, (-1, d_head)).transpose(1, 2))
        values = self.v_proj(normed).unflatten(-1, (-1, d_head))
        scores = torch.einsum("bghqd,bgkd->bghqk", queries, keys)
        scores = scores + torch.full((length, length), -torch.inf, dtype=x.dtype).triu(1)
        output = torch.einsum("bghqk,bkgd->bqghd", scores.softmax(-1), values)
        x = x + self.o_proj(output.flatten(2))
        normed = self.post_attention_layernorm(x)
        gate = self.gate_proj(normed)
        return x + self.down_proj(gate / (1 + torch.exp(-gate)) * self.up_proj(normed))


class OneHeadAtATime(Parts):
    """Right: a loop over heads, weights made zero after the softmax."""

    def forward(self, x):
        d_head = x.shape[-1] // self.heads
        places = torch.arange(x.shape[1], dtype=x.dtype)
        turns = [places * self.base ** (-2 * i / d_head) for i in range(d_head // 2)]

        def turned(vectors):
            first, second = [], []
            for i, angle in enumerate(turns):
                a, b = vectors[..., i], vectors[..., i + d_head // 2]
                first.append(a * angle.cos() - b * angle.sin())
                second.append(a * angle.sin() + b * angle.cos())
            return torch.stack(first + second, dim=-1)

        y, outputs = self.input_layernorm(x), []
        keys, values = self.k_proj(y).split(d_head, -1), self.v_proj(y).split(d_head, -1)
        for head, queries in enumerate(self.q_proj(y).split(d_head, -1)):
            shared = head * self.key_heads // self.heads
            scores = turned(queries) @ turned(keys[shared]).transpose(1, 2) / d_head**0.5
            weights = scores.softmax(-1).tril()
            outputs.append(weights / weights.sum(-1, keepdim=True) @ values[shared])
        x = x + self.o_proj(torch.cat(outputs, -1))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(nn.SiLU()(self.gate_proj(y)) * self.up_proj(y))
