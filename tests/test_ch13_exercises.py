"""What chapter 13 promises: agreement with published code, no leak, a memory like the whole row."""

from types import SimpleNamespace

import numpy as np
import torch

from attention_course.drivers.tensors import as_tensors
from autograder.exercises._ch13_deberta import DISENTANGLED_SCORES, relative_distance_reference
from autograder.exercises._ch13_orders import PERMUTATION_MASKS, draw_orders
from autograder.exercises._ch13_relative import RELATIVE_ATTENTION
from autograder.exercises._ch13_shift import RELATIVE_SHIFT
from autograder.exercises._ch13_streams import TWO_STREAMS

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def relative_attention(seed=5):
    """(reference with weights, tensors of the call) of each case."""
    for case in RELATIVE_ATTENTION.make_cases(seed):
        module = RELATIVE_ATTENTION.reference(**case.inputs["build"]).double()
        module.load_state_dict(as_tensors(case.inputs["weights"]))
        yield module, as_tensors(case.inputs["inputs"])


def test_relative_attention_is_the_core_of_xlnets():
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    for module, given in relative_attention():
        x, memory, positions = given["x"], given["memory"], given["positions"]
        row = torch.cat([memory, x], dim=1)
        length, count, batch = x.shape[1], row.shape[1], len(x)

        def heads(tensor, module=module):
            return tensor.unflatten(-1, (module.heads, -1)).swapaxes(0, 1)

        # The published code's table begins one distance further away; that row must not matter.
        table = torch.cat([torch.full_like(positions[:1], 7.0), positions])
        table = module.to_positions(table).unflatten(-1, (module.heads, 1, -1)).movedim(2, 1)
        hidden = torch.ones(length, count).triu(count - length + 1)[:, :, None, None].double()
        core = XLNetRelativeAttention.rel_attn_core(
            SimpleNamespace(
                r_w_bias=module.content_bias,
                r_r_bias=module.position_bias,
                rel_shift_bnij=XLNetRelativeAttention.rel_shift_bnij,
                scale=module.content_bias.shape[1] ** -0.5,
                dropout=torch.nn.Identity(),
            ),
            heads(module.to_queries(x)),
            heads(module.to_keys(row)),
            heads(module.to_values(row)),
            table.expand(-1, batch, -1, -1),
            attn_mask=hidden.expand(-1, -1, batch, module.heads),
        )
        expected = module.to_output(core.flatten(2).swapaxes(0, 1))
        torch.testing.assert_close(module(**given), expected, **CLOSE)


def test_a_memory_is_as_good_as_the_whole_row():
    for module, given in relative_attention():
        row = torch.cat([given["memory"], given["x"]], dim=1)
        whole = module(x=row, memory=row[:, :0], positions=given["positions"])
        length = given["x"].shape[1]
        torch.testing.assert_close(module(**given), whole[:, row.shape[1] - length :], **CLOSE)


def test_the_shift_of_nine_numbers():
    x = torch.arange(1.0, 10).reshape(1, 1, 3, 3)
    shifted = RELATIVE_SHIFT.reference(x)[0, 0]
    rows = [shifted[i, : i + 1].tolist() for i in range(3)]
    assert rows == [[3], [5, 6], [7, 8, 9]]


def test_entries_that_no_visible_pair_reads_hold_poison():
    for case in RELATIVE_SHIFT.make_cases(2):
        x, compared = torch.tensor(case.inputs["x"]).requires_grad_(), case.inputs["compared"]
        RELATIVE_SHIFT.reference(x)[torch.tensor(compared)].sum().backward()
        unread = x[x.grad == 0]
        assert x.shape[-2] == 1 or unread.abs().max() > 50


def test_no_query_sees_what_it_predicts_through_two_layers():
    order = torch.tensor(draw_orders(np.random.default_rng(3), 1, 5))
    content_mask, query_mask = PERMUTATION_MASKS.reference(order)
    rng = torch.Generator().manual_seed(0)
    w_q, w_k, w_v = torch.randn(3, 6, 6, generator=rng, dtype=torch.float64)
    words = torch.randn(1, 5, 6, generator=rng, dtype=torch.float64)

    def predict(words):
        content, query = words, torch.ones_like(words)
        for _ in range(2):
            query, content = (
                old + new
                for old, new in zip(
                    (query, content),
                    TWO_STREAMS.reference(content, query, content_mask, query_mask, w_q, w_k, w_v),
                    strict=True,
                )
            )
        return query.sum(-1)[0]

    gradient = torch.autograd.functional.jacobian(predict, words)[:, 0].abs().sum(-1)
    used = gradient > 1e-12
    assert torch.equal(used, query_mask[0])  # itself never, all earlier ones always


class Projected(torch.nn.Module):
    """In place of a projection: gives a table (heads, rows, width) as (1, rows, heads · width)."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, _):
        return self.table.movedim(0, 1).flatten(1)[None].clone()


def test_scores_are_those_of_deberta_but_for_the_direction_of_its_third_part():
    from transformers import DebertaConfig
    from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention

    case = DISENTANGLED_SCORES.make_cases(4)[1]
    given = as_tensors(dict(case.inputs))
    heads, double_limit, width = given["position_keys"].shape
    length, limit = len(given["distance"]), double_limit // 2
    assert length > limit
    config = DebertaConfig(
        hidden_size=heads * width,
        num_attention_heads=heads,
        relative_attention=True,
        max_relative_positions=limit,
        pos_att_type=["c2p", "p2c"],
    )
    attention = DisentangledSelfAttention(config).double().eval()
    attention.pos_proj = Projected(given["position_keys"])
    attention.pos_q_proj = Projected(given["position_queries"])
    queries, keys = given["queries"], given["keys"]
    root = (3 * width) ** 0.5
    place = torch.arange(length)
    published = queries @ keys.mT / root + attention.disentangled_att_bias(
        queries / root,
        keys,
        (place[:, None] - place)[None],
        torch.zeros(2 * limit, heads * width, dtype=torch.float64),
        3,
    )
    assert torch.equal(given["distance"], relative_distance_reference(length, length, limit))
    third = {**given, "distance": given["distance"].T, "queries": 0 * queries}
    rest = {**given, "position_queries": 0 * given["position_queries"]}
    turned = DISENTANGLED_SCORES.reference(**rest)
    turned = turned + DISENTANGLED_SCORES.reference(
        **{**third, "position_keys": 0 * given["position_keys"]}
    )
    torch.testing.assert_close(turned, published, rtol=1e-6, atol=1e-6)
    as_asked = DISENTANGLED_SCORES.reference(**given)
    assert (as_asked - published).abs().max() > 0.1
