"""Recurrent layers and packed sequences, compared with PyTorch's documented behaviour."""

import numpy as np
import pytest

from tests.operators import references


def weights(module) -> list:
    return [p.detach().numpy().astype("float64") for p in module._flat_weights]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_equal_their_formulas(torch, kind, bidirectional):
    layer = getattr(torch.nn, kind)(3, 5, num_layers=2, bidirectional=bidirectional, batch_first=True)
    x = torch.randn(2, 4, 3)
    output, last = layer(x)
    zeros = np.zeros((4 if bidirectional else 2, 2, 5))
    states = [zeros, zeros] if kind == "LSTM" else [zeros]
    name = {"RNN": "tanh"}.get(kind, kind.lower())
    expected = references.recurrent(name, x.numpy().astype("float64"), states, weights(layer), True, 2, bidirectional, True)
    np.testing.assert_allclose(output.detach().numpy(), expected[0], rtol=1e-4, atol=1e-5)
    for got, wanted in zip(last if kind == "LSTM" else [last], expected[1:]):
        np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_equal_single_sequences(torch, kind, bidirectional):
    layer = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=bidirectional)
    sequences = [torch.randn(n, 3) for n in (2, 5, 3)]
    packed = torch.nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    output, last = layer(packed)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
    assert lengths.tolist() == [2, 5, 3]
    for i, sequence in enumerate(sequences):
        alone, state = layer(sequence)
        np.testing.assert_allclose(padded[i, : len(sequence)].detach().numpy(), alone.detach().numpy(), rtol=1e-4, atol=1e-5)
        assert padded[i, len(sequence) :].abs().sum().item() == 0
        pairs = zip(last, state) if kind == "LSTM" else [(last, state)]
        for whole, one in pairs:
            np.testing.assert_allclose(whole[:, i].detach().numpy(), one.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_cells_equal_layers_step_by_step(torch):
    for cell_type, layer_type in (("LSTMCell", "LSTM"), ("GRUCell", "GRU"), ("RNNCell", "RNN")):
        cell, layer = getattr(torch.nn, cell_type)(3, 4), getattr(torch.nn, layer_type)(3, 4)
        layer.load_state_dict({f"{k}_l0": v for k, v in cell.state_dict().items()})
        x, state = torch.randn(5, 2, 3), None
        for step in x:
            state = cell(step, state)
        last = layer(x)[1]
        for got, wanted in zip(state, last) if cell_type == "LSTMCell" else [(state, last)]:
            np.testing.assert_allclose(got.detach().numpy(), wanted[0].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_projections_reduce_the_output(torch):
    layer = torch.nn.LSTM(3, 6, proj_size=2, num_layers=2, bidirectional=True)
    output, (h, c) = layer(torch.randn(4, 2, 3))
    assert (output.shape, h.shape, c.shape) == ((4, 2, 4), (4, 2, 2), (4, 2, 6))


def test_training_reduces_a_loss(torch):
    layer, head = torch.nn.GRU(2, 8, batch_first=True), torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.05)
    x = torch.rand(16, 6, 2)
    wanted = x.sum((1, 2)).unsqueeze(1) / 12
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(head(layer(x)[1][0]), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < 0.1 * losses[0].item()


def test_unbatched_and_empty_lengths(torch):
    layer = torch.nn.LSTM(3, 4)
    output, (h, c) = layer(torch.randn(5, 3))
    assert output.shape == (5, 4) and h.shape == c.shape == (1, 4)
    with pytest.raises(RuntimeError, match="greater than 0"):
        torch.nn.utils.rnn.pack_padded_sequence(torch.zeros(3, 2, 3), [3, 0])
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        torch.nn.utils.rnn.pack_padded_sequence(torch.zeros(3, 2, 3), [1, 3])
    with pytest.raises(RuntimeError, match="input.size\\(-1\\) must be equal to input_size. Expected 3, got 2"):
        layer(torch.zeros(5, 1, 2))[0].tolist()


def test_packing_keeps_rows_and_order(torch):
    padded = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    packed = torch.nn.utils.rnn.pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [4, 1, 3, 5, 2, 6]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [2, 0, 1]
    back, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    assert back.tolist() == padded.tolist() and lengths.tolist() == [2, 1, 3]
    rows = torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], padding_value=-1.0)
    assert rows.tolist() == [[1, 1], [1, 1], [-1, 1]]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch", [1, 3, 19])
def test_gradients_of_an_lstm(torch, bidirectional, batch):
    """First and second derivatives of inputs, states and weights; also of a packed input, computed step by step."""
    torch.manual_seed(0)
    layer = torch.nn.LSTM(2, 3, bidirectional=bidirectional).double()
    directions = 2 if bidirectional else 1
    x = torch.randn(4, batch, 2, dtype=torch.float64)
    h, c = (torch.randn(directions, batch, 3, dtype=torch.float64) for _ in range(2))
    params = list(layer.parameters())

    def gradients(run):
        inputs = [t.detach().requires_grad_() for t in (x, h, c)]
        output, states = run(*inputs)
        loss = (output * output).sum() + states[0].sum() + (states[1] * 3).sum()
        return torch.autograd.grad(loss, [*inputs, *params])

    def packed(x, h, c):
        rows = torch.nn.utils.rnn.pack_padded_sequence(x, [4] * batch)
        output, states = layer(rows, (h, c))
        return torch.nn.utils.rnn.pad_packed_sequence(output)[0], states

    whole = gradients(lambda x, h, c: layer(x, (h, c)))
    for got, expected in zip(whole, gradients(packed)):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-11)
    if batch > 3:
        return
    arguments = [t.requires_grad_() for t in (x, h, c)]

    def call(x, h, c, *weights):
        output, states = torch.func.functional_call(layer, dict(zip(dict(layer.named_parameters()), weights)), (x, (h, c)))
        return output, *states

    leaves = [p.detach().requires_grad_() for p in params]
    assert torch.autograd.gradcheck(call, (*arguments, *leaves))
    if batch == 1:
        assert torch.autograd.gradgradcheck(call, (*arguments, *leaves))


@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (17, 5), (64, 33)])
def test_an_lstm_keeps_its_formula_at_any_size(torch, hidden, batch):
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-12)):
        layer = torch.nn.LSTM(6, hidden).to(dtype)
        x = torch.randn(batch, 7, 6, dtype=dtype).transpose(0, 1)
        states = [torch.randn(1, hidden, batch, dtype=dtype).transpose(1, 2) for _ in range(2)]
        with torch.no_grad():
            output, last = layer(x, tuple(states))
        arrays = [t.numpy().astype("float64") for t in (x, *states)]
        expected = references.recurrent("lstm", arrays[0], arrays[1:], weights(layer), True, 1, False, False)
        for got, wanted in zip((output, *last), expected):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=tolerance)
        x = x.clone()
        x[2, 0, 0] = float("nan")
        with torch.no_grad():
            output = layer(x)[0]
        assert output[2:, 0].isnan().all().item() and not output[:2].isnan().any().item()
        assert not output[:, 1:].isnan().any().item()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_assigned_weights(torch, kind):
    """A program may put other tensors in the places of the weights (drop of weights, differentiable updates)."""
    layer, x = getattr(torch.nn, kind)(2, 3), torch.ones(1, 1, 2)
    before = layer(x)[0]
    layer._flat_weights = [w * 2 for w in layer._flat_weights]
    changed = layer(x)[0]
    assert not torch.equal(changed, before) and [n for n, _ in layer.named_parameters()] == layer._flat_weights_names
    changed.sum().backward()
    assert layer.weight_ih_l0.grad is not None
    layer.weight_ih_l0 = torch.nn.Parameter(torch.zeros_like(layer.weight_ih_l0))
    assert layer._flat_weights[0] is layer.weight_ih_l0 and layer._flat_weights[1] is not layer.weight_hh_l0
    layer._flat_weights = [getattr(layer, name) for name in layer._flat_weights_names]
    assert all(a is b for a, b in zip(layer._flat_weights, layer.parameters()))
