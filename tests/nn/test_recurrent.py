"""Recurrent layers and packed sequences, beside what PyTorch documents of them."""

import numpy as np
import pytest

from tests.operators import references


def weights(module) -> list:
    return [p.detach().numpy().astype("float64") for p in module._flat_weights]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_are_their_formulas(torch, kind, bidirectional):
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
def test_packed_sequences_run_as_each_alone(torch, kind, bidirectional):
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


def test_cells_are_layers_step_by_step(torch):
    for cell_type, layer_type in (("LSTMCell", "LSTM"), ("GRUCell", "GRU"), ("RNNCell", "RNN")):
        cell, layer = getattr(torch.nn, cell_type)(3, 4), getattr(torch.nn, layer_type)(3, 4)
        layer.load_state_dict({f"{k}_l0": v for k, v in cell.state_dict().items()})
        x, state = torch.randn(5, 2, 3), None
        for step in x:
            state = cell(step, state)
        last = layer(x)[1]
        for got, wanted in zip(state, last) if cell_type == "LSTMCell" else [(state, last)]:
            np.testing.assert_allclose(got.detach().numpy(), wanted[0].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_projections_narrow_the_output(torch):
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
