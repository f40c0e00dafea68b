"""Nested tensors on GPUs: the recorded rows, models compared with the CPU, errors of invalid offsets, and attention's cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, SIMULATED
from tests.python.nested import cases, test_nested, test_rows

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")

ROWS = json.loads(Path(cases.__file__).with_name("rows.json").read_text())


@pytest.fixture
def gpu(torch):
    """The package, with a GPU as the default device."""
    torch.set_default_device("cuda")
    yield torch
    torch.set_default_device(None)


@pytest.mark.parametrize("row", [r for r in cases.ROWS if ".numpy()" not in r and '"cpu"' not in r])
def test_row(gpu, row):
    found = cases.results(gpu, [row])[row]
    assert test_rows.close(found, ROWS[row]), (found, ROWS[row])


def jagged(torch, lengths, *rest, device, dtype="float64", seed=0):
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, dtype)
    parts = [torch.randn(n, *rest, dtype=torch.float64, generator=generator).to(dtype).to(device) for n in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged).requires_grad_()


def model(torch, device):
    """The results and gradients of layers on sequences, among them empty ones."""
    F = torch.nn.functional
    x = jagged(torch, (3, 0, 37, 1), 8, device=device)
    weight = torch.linspace(-1, 1, 24 * 8, dtype=torch.float64).reshape(24, 8).to(device).requires_grad_()
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in F.linear(x, weight).chunk(3, -1))
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    shares = F.softmax(attended, 1)
    padded = torch.nested.to_padded_tensor(shares * attended.sum(1, keepdim=True), -2.0)
    totals = [attended.amax(1), attended.amin(1), attended.mean(1).nan_to_num(), padded, F.log_softmax(attended, 1).values()]
    (padded.square().sum() + totals[0][0].sum() + totals[1][2].sin().sum()).backward()
    return [*totals, x.grad.values(), weight.grad]


def test_a_model_has_the_cpus_values(torch):
    for ours, theirs in zip(model(torch, "cuda"), model(torch, "cpu"), strict=True):
        assert ours.device.type == "cuda"
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("function", ["sum", "amax", "softmax", "padded", "broadcast", "attention"])
@pytest.mark.parametrize("offsets", test_nested.HOSTILE)
def test_wrong_offsets_are_the_cpus_errors(torch, offsets, function):
    def error(device):
        at, lengths = test_nested.HOSTILE[offsets]
        lengths = None if lengths is None else torch.tensor(lengths, device=device)
        torch.set_default_device(device)
        try:
            nested = torch.nested.nested_tensor_from_jagged(torch.ones(6, 2, 3), torch.tensor(at), lengths)
            with pytest.raises(RuntimeError, match="offsets|length") as caught:
                result = test_nested.FOLLOWING[function](nested)
                (result.values() if result.is_nested else result).sum().item()
            message = str(caught.value).partition("\n")[0].partition(" (")[0]
            # An operator that is composed of others is named by the CPU only.
            return message.partition("] ")[2] if function == "softmax" else message
        finally:
            torch.set_default_device(None)

    assert error("cuda") == error("cpu")


def test_an_error_stays_with_its_values(torch):
    values = torch.ones(6, 3, device="cuda")
    wrong = torch._C.ops.jagged_reduce(values, torch.tensor([0, 7], device="cuda"), None, "sum")
    right = torch._C.ops.jagged_reduce(values, torch.tensor([0, 6], device="cuda"), None, "sum")
    assert right.tolist() == [[6.0] * 3]
    with pytest.raises(RuntimeError, match=r"\[jagged_reduce\] expected offsets between 0 and 6, got offsets from 0 to 7"):
        (wrong + 1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("sizes", [(700, 3), (130, 600), (2000, 1)])
def test_reductions_of_long_and_of_wide_sequences(torch, sizes, dtype):
    tokens, width = sizes
    values = (torch.randn(tokens, width) * 9).to(getattr(torch, dtype))
    values[1, 0] = float("nan") if dtype != "int64" else -(2**40)
    offsets, lengths = torch.tensor([0, 2, 2, tokens - 5, tokens]), torch.tensor([2, 0, tokens - 9, 5])
    for how in ("sum", "amax", "amin"):
        for given in (None, lengths):
            want = torch._C.ops.jagged_reduce(values, offsets, given, how)
            moved = None if given is None else given.cuda()
            got = torch._C.ops.jagged_reduce(values.cuda(), offsets.cuda(), moved, how)
            torch.testing.assert_close(got.cpu(), want, equal_nan=True)


@pytest.mark.parametrize("offsets", [[0], [0, 0, 0], [2, 2], [1, 1, 3]])
@pytest.mark.parametrize("tokens", [0, 3])
def test_tensors_without_sequences_or_entries(torch, offsets, tokens):
    if offsets[-1] > tokens:
        pytest.skip("the offsets exceed the tokens")
    ops, values, at = torch._C.ops, torch.rand(tokens, 2), torch.tensor(offsets)
    calls = [
        *(lambda x, o, how=how: ops.jagged_reduce(x, o, None, how) for how in ("sum", "amax", "amin")),
        lambda x, o: ops.jagged_to_padded(x, o, None, 2, 1.5),
        lambda x, o: ops.jagged_to_padded(x, o, None, 0),
        lambda x, o: ops.padded_to_jagged(torch.ones(len(offsets) - 1, 1, 2, device=x.device), o, None, tokens),
        lambda x, o: ops.jagged_expand(torch.ones(len(offsets) - 1, 2, device=x.device), o, None, tokens),
    ]
    for call in calls:
        want, got = call(values, at), call(values.cuda(), at.cuda())
        assert torch.equal(got.cpu(), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64", "complex128"])
def test_conversions_of_every_size_of_element(torch, dtype):
    ops, at = torch._C.ops, torch.tensor([1, 2, 2, 6])
    values = torch.tensor([[1.0, 0.0, 3.0]] * 7).cumsum(0).to(getattr(torch, dtype))
    results = []
    for device in ("cpu", "cuda"):
        o, x = at.to(device), values.to(device)
        padded = ops.jagged_to_padded(x.t().contiguous().t(), o, None, 3, 1)
        results.append([padded, ops.padded_to_jagged(padded, o, None, 7), ops.jagged_expand(x[:3], o, None, 6)])
    for want, got in zip(*results, strict=True):
        assert got.device.type == "cuda" and torch.equal(got.cpu(), want)


# (lengths of queries, of keys, heads, depth, width); None: self-attention. Results of 130 elements exceed shared memory.
SHAPES = {
    "short": ((3, 0, 5, 1), (2, 4, 0, 1), 2, 4, 3), "tiles": ((40, 33, 1, 16), (65, 32, 31, 1), 2, 8, 8),
    "deep": ((19, 2), (3, 40), 1, 70, 130), "wide": ((5, 30), (33, 2), 1, 130, 40), "nothing": ((4, 2), (1, 3), 2, 0, 3),
    "no values": ((4, 2), (1, 3), 2, 3, 0), "neither": ((4, 2), (1, 0), 2, 0, 0),
}  # fmt: skip
TOLERANCES = {"float64": 1e-11, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def attention(torch, shape, dtype, causal, device):
    """Results and gradients of the operators, with places between the sequences."""
    rows, columns, heads, depth, width = SHAPES[shape]
    generator = torch.Generator().manual_seed(1)

    def operand(lengths, size):
        values = torch.randn(sum(lengths) + len(lengths), heads, size, dtype=torch.float64, generator=generator)
        return values.to(getattr(torch, dtype)).to(device).transpose(0, 1)  # not contiguous

    def places(lengths):
        ends = torch.tensor([0, *[n + 1 for n in lengths]]).cumsum(0)
        return ends.to(device), torch.tensor(lengths).to(device)

    q, k, v, g = operand(rows, depth), operand(columns, depth), operand(columns, width), operand(rows, width)
    at = *places(rows), *places(columns)
    ops = torch._C.ops
    output, logsumexp = ops.jagged_attention_forward(q, k, v, *at, causal, 0.4)
    grads = ops.jagged_attention_backward(g, q, k, v, *at, output, logsumexp, causal, 0.4)
    return [output, logsumexp, *grads]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_has_the_cpus_values(torch, shape, dtype, causal):
    ours = attention(torch, shape, dtype, causal, "cuda")
    for got, want in zip(ours, attention(torch, shape, dtype, causal, "cpu"), strict=True):
        assert got.dtype is want.dtype
        torch.testing.assert_close(got.cpu(), want, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype] * 4)
    # No result depends on the order of threads. Gradients contain a sum whose order depends on the number of threads per
    # group, which is random on simulated devices only.
    exact = 5 if not SIMULATED else 2
    for got, again in zip(ours[:exact], attention(torch, shape, dtype, causal, "cuda")):
        assert torch.equal(got, again)


def test_rows_with_infinite_scores_and_nan(torch):
    inf = float("inf")
    q = torch.tensor([[[1.0], [1.0], [float("nan")], [0.0]]])
    k = torch.tensor([[[-inf], [-inf], [2.0], [3.0]]])
    at, ops = torch.tensor([0, 2, 4]), torch._C.ops
    results = []
    for device in ("cpu", "cuda"):
        o, x, y = at.to(device), q.to(device), k.to(device)
        results.append(ops.jagged_attention_forward(x, y, torch.ones_like(y), o, None, o, None, False, 1.0))
    for got, want in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(got.cpu(), want, equal_nan=True)
    assert results[1][1][0, 0].item() == -inf and results[1][0][0, 2].isnan().item()


def test_nothing_waits_and_a_graph_contains_attention(torch):
    x = torch.randn(2, 9, 4, device="cuda")
    at = torch.tensor([0, 4, 9], device="cuda")

    def attend():
        return torch._C.ops.jagged_attention_forward(x, x, x, at, None, at, None, True, 0.5)[0]

    attend()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = attend()
    x.copy_(torch.randn(2, 9, 4, device="cuda"))
    graph.replay()
    torch.testing.assert_close(captured, attend())
    with torch.no_sync():
        nested = torch.nested.nested_tensor_from_jagged(torch.randn(9, 2, 4, device="cuda"), at)
        t = nested.transpose(1, 2)
        torch.nn.functional.scaled_dot_product_attention(t, t, t)
        torch.nn.functional.softmax(nested, 1)
        nested.amax(1)
