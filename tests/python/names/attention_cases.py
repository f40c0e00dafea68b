"""torch.nn.attention: flex_attention, block masks, causal biases."""

import math
import warnings

from .rows import values_of


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() <= 3


def nothing(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx > 2)


def operands(torch):
    """Query, key, value, score functions and the module."""
    flex = __import__(f"{torch.__name__}.nn.attention.flex_attention", fromlist=["x"])
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    q, k, v = (torch.sin(torch.arange(2.0 * h * n * 4) * s).reshape(2, h, n, 4) for h, n, s in ((4, 10, 1), (2, 12, 2), (2, 12, 3)))
    bias = torch.cos(torch.arange(4.0 * 10 * 12)).reshape(4, 10, 12)
    document = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    return {
        "flex": flex, "q": q, "k": k, "v": v, "causal": causal, "window": window, "nothing": nothing,
        "biased": lambda score, b, h, i, j: score + bias[h, i, j],
        "capped": lambda score, b, h, i, j: torch.tanh(score / 2) * 2 - (i - j).abs() * torch.exp2(-(h + 1.0)),
        "document": lambda b, h, i, j: document[i] == document[j],
        "block": lambda mask, **more: flex.create_block_mask(mask, 1, 1, 10, 12, "cpu", BLOCK_SIZE=4, **more),
        "run": lambda *args, **more: flex.flex_attention(q, k, v, *args, enable_gqa=True, **more),
    }  # fmt: skip


ROWS = """
run()
run(biased)
run(capped, block(causal), scale=0.3)
run(None, block(window))
run(None, block(nothing))
run(biased, block(document), return_aux=flex.AuxRequest(lse=True))
run(None, block(nothing), return_aux=flex.AuxRequest(lse=True))
run(None, block(nothing), return_lse=True)
run(None, block(flex.and_masks(causal, window), separate_full_blocks=False))
run(None, block(flex.or_masks(causal, window)))
run(None, block(flex.noop_mask))
flex.flex_attention(q[:, :2], k, v).dtype
flex.flex_attention(q, k, v)
flex.flex_attention(q[:, :2, :, :3], k, v)
flex.flex_attention(q[0], k[0], v[0])
run(None, block(causal), return_lse=True, return_aux=flex.AuxRequest())
flex.create_mask(causal, None, None, 3, 4, "cpu")
flex.create_mask(lambda s, b, h, i, j: s + (i - j), 1, 2, 2, 2, "cpu")
flex.create_block_mask(biased, 1, 1, 10, 12, "cpu")
list(block(causal).as_tuple()[:-1])
len(block(causal).as_tuple(False)), block(causal).shape, block(causal).numel(), block(causal).sparsity()
block(causal).to_dense()
block(window).to_string()
str(block(causal))
repr(block(causal))
flex.create_block_mask(causal, 3, 2, 40, 40, "cpu", BLOCK_SIZE=(4, 8)).to_string((3, 3), 2)
block(causal)[0, 0, 1].shape, block(causal)[:, :, 2:].shape, block(causal)[:, :, -1].to_dense()
run(None, block(causal)[:, :, :])
block(causal)._adjust(7, 5).to_dense(), block(causal)._adjust(7, 5).shape
flex.BlockMask.from_kv_blocks(torch.tensor([[[1, 2]]]), torch.tensor([[[[0, 1], [0, 1]]]]), BLOCK_SIZE=8).as_tuple()[6:8]
flex.BlockMask.from_kv_blocks(torch.tensor([1]), torch.tensor([0]))
"""


def case_flex_attention(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return values_of(torch, ROWS, **operands(torch))


def case_flex_gradients(torch):
    return [flex_gradients(torch, "capped"), flex_gradients(torch, None)]


def flex_gradients(torch, function):
    """Gradients of flex_attention; PyTorch, whose CPUs have none, computes the same function step by step."""
    names = operands(torch)
    q, k, v = (names[n].clone().requires_grad_() for n in "qkv")
    if torch.__name__ == "torch":
        i, j, h = torch.arange(10).reshape(10, 1), torch.arange(12), torch.arange(4).reshape(4, 1, 1)
        keys, values = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        scores = q @ keys.transpose(-2, -1) / 2
        scores = scores if function is None else names[function](scores, None, h, i, j)
        scores = scores.masked_fill(~nothing(None, None, i, j), -math.inf)
        result = torch.nan_to_num(scores.softmax(-1), 0.0) @ values
    else:
        result = names["flex"].flex_attention(q, k, v, names.get(function), names["block"](nothing), enable_gqa=True)
    (result[:, :, 3:] ** 2).sum().backward()
    return [result, q.grad, k.grad, v.grad]


BIASES = """
bias.causal_upper_left(2, 3)._materialize(), bias.causal_lower_right(2, 3)._materialize()
F.scaled_dot_product_attention(q, q, q, bias.causal_upper_left(10, 10))
F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], bias.causal_lower_right(10, 12))
F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], bias.causal_upper_left(10, 12), scale=0.1)
F.scaled_dot_product_attention(q, q, q, bias.causal_upper_left(10, 10), is_causal=True)
bias.causal_upper_left(3)
int(bias.CausalVariant.LOWER_RIGHT), bias.causal_upper_left(2, 3).variant.name
[b.name for b in (attention.SDPBackend.MATH, attention.SDPBackend.CUDNN_ATTENTION)]
attention.activate_flash_attention_impl("none"), attention.current_flash_attention_impl()
within([attention.SDPBackend.MATH])
within([attention.SDPBackend.FLASH_ATTENTION, attention.SDPBackend.MATH])
within(attention.SDPBackend.MATH)
within(attention.SDPBackend.CUDNN_ATTENTION)
within(3)
"""


def case_biases(torch):
    import importlib

    attention = importlib.import_module(f"{torch.__name__}.nn.attention")
    bias = importlib.import_module(f"{torch.__name__}.nn.attention.bias")
    names = operands(torch)

    def within(backends):
        with attention.sdpa_kernel(backends):
            return torch.nn.functional.scaled_dot_product_attention(names["q"], names["q"], names["q"], is_causal=True)

    rows = BIASES.replace("int(bias.CausalVariant.LOWER_RIGHT)", "bias.CausalVariant.LOWER_RIGHT.value")
    return values_of(torch, rows, **names, attention=attention, bias=bias, within=within, F=torch.nn.functional)
