"""Repeated calls that the engine compiles without being asked: the values, gradients and errors are those of single calls."""

from __future__ import annotations

import random
import time

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import _C, _connection
from tests.conftest import IN_PROCESS

SIZE = 4096

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine with another environment")


@pytest.fixture(autouse=True)
def _engine_with_windows(own_daemon):
    """A session with an engine of its own. The session of other tests stays open."""
    saved, environment = _connection._current, _connection.environment
    _connection._current = None
    torch.connect(own_daemon(TELETENSOR_WINDOWS="1").address)
    yield
    torch.disconnect()
    _connection._current, _connection.environment = saved, environment
    if saved is not None:
        _C.set_session(saved)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 64, 10),
    ).eval()  # fmt: skip


def calls(x, y):
    scaled, shifted = x * 2, y + 1
    left, right = scaled.tanh(), shifted.sigmoid()
    return left * right + scaled, left


def runs() -> int:
    return sum(w.runs for w in torch.compiler.stats().windows)


def repeat_until_compiled(step, limit: float = 30.0) -> None:
    """Calls step() until the engine runs compiled calls. Frames end where the engine is idle, so that parts of step() may be
    windows of their own."""
    before, end = runs(), time.monotonic() + limit
    while runs() < before + 3:
        step()
        torch.synchronize()
        assert time.monotonic() < end, "nothing was compiled"


def test_values_have_the_bits_of_single_calls():
    x, y = torch.randn(SIZE), torch.randn(SIZE)
    expected = [t.tolist() for t in calls(x, y)]
    with torch.no_grad():
        repeat_until_compiled(lambda: calls(x, y)[0].sum().item())
        for _ in range(20):
            assert [t.tolist() for t in calls(x, y)] == expected


def test_networks_in_evaluation():
    model, x = network(), torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        expected = model(x)
        repeat_until_compiled(lambda: model(x).sum().item())
        for _ in range(10):
            assert torch.equal(model(x), expected)
        # Parameters that change in place are read, and so are replaced ones.
        model[8].bias.add_(1)
        torch.testing.assert_close(model(x), expected + 1)
        model[8].bias.data = model[8].bias - 1
        torch.testing.assert_close(model(x), expected)
    stats = torch.compiler.stats()
    assert stats.windows[0].saved_instructions >= 0 and "window" in str(stats)


def test_sizes_and_inputs_that_change():
    with torch.no_grad():
        for k in range(60):
            x = torch.full((SIZE + 64 * (k % 3),), k / 60)
            value, left = calls(x, x)
            scaled = x * 2
            torch.testing.assert_close(value, scaled.tanh() * (x + 1).sigmoid() + scaled)
            if k % 7 == 0:  # a read between calls
                assert left[0].item() == pytest.approx(float(scaled[0].tanh()))


def test_calls_that_almost_repeat():
    x = torch.randn(SIZE)
    with torch.no_grad():
        for k in range(40):
            value = ((x * 2).tanh() + (x + (k % 5)).sigmoid()) * x
            if k % 5 == 4:
                torch.testing.assert_close(value, ((x * 2).tanh() + (x + 4).sigmoid()) * x)


def test_training_is_recorded():
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    other = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    other.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, target = torch.randn(128, 64), torch.randn(128, 1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.no_grad():
            calls(x.flatten(), x.flatten())
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    program = torch.compiler.trace(lambda x, target: F.mse_loss(other(x), target), x, target)
    assert losses[0] == pytest.approx(program(x, target).item())


def test_writes_divide_windows_and_count_versions():
    x = torch.randn(SIZE)
    w = torch.randn(SIZE, requires_grad=True)
    expected = None
    for _ in range(20):
        state = torch.zeros(SIZE)
        with torch.no_grad():
            value, left = calls(x, x)
            state.add_(value)
            value, left = calls(state, left)
        result = (value.tolist(), left.tolist(), state.tolist())
        expected = expected or result
        assert result == expected
    with torch.no_grad():
        value, _ = calls(x, x)
    product = (w * value).sum()
    value.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
        w.grad.tolist()


def test_an_error_names_the_line_of_its_call():
    x, index = torch.randn(SIZE, 2), torch.tensor([0, 1])

    def step(index):
        scaled = x * 2
        shifted = x + 1
        chosen = scaled.tanh().index_select(1, index)  # the line
        return chosen * shifted.sigmoid() + scaled

    with torch.no_grad():
        repeat_until_compiled(lambda: step(index).sum().item())
        before = runs()
        with pytest.raises(IndexError) as error:
            step(torch.tensor([0, 7])).sum().item()
        assert "test_windows.py" in str(error.value) or "test_windows.py" in "".join(error.value.__notes__)
        torch.testing.assert_close(step(index), (x * 2).tanh() * (x + 1).sigmoid() + x * 2)
        assert runs() >= before


def test_status_counts_programs_and_windows():
    x, y = torch.randn(SIZE), torch.randn(SIZE)
    with torch.no_grad():
        program = torch.compiler.trace(calls, x, y)
        for _ in range(3):
            program(x, y)
        repeat_until_compiled(lambda: calls(x, y)[0].sum().item())
    stats = torch.compiler.stats()
    assert stats[0].runs == 3
    window = max(stats.windows, key=lambda w: w.saved_instructions)
    assert window.compiled_instructions < window.instructions and window.saved_instructions > 0
    assert window.signatures >= 1 and window.compile_seconds > 0 and window.saved_bytes >= 0


def replaced() -> int:
    """The number of calls that were replaced."""
    return sum(w.instructions * w.runs for w in torch.compiler.stats().windows)


class Divided:
    """Ends the frame at random places of a function."""

    def __init__(self, seed: int, share: float):
        self.random, self.share, self.calls = random.Random(seed), share, 0

    def __call__(self, *values):
        self.calls += 1
        if self.random.random() < self.share:
            torch.synchronize()
        return values[0] if len(values) == 1 else values


def long_function(x, weights, end, factor: float = 0.5):
    """Five layers of twelve calls; end(value) may end the frame after each. The fourth layer uses `factor`."""
    for k, (w, b) in enumerate(weights):
        y = end(F.linear(x, w, b))
        scaled = end(y * (factor if k == 3 else 0.5))
        inner = end(end(end(y * y) * y) * 0.044715)
        wave = end(end(end(y + inner) * 0.797885).tanh())
        y = end(scaled * end(wave + 1))
        x = end(end(x + y) * 0.875)
    return x


def weights_of(size: int):
    torch.manual_seed(1)
    return [(torch.randn(size, size) / size**0.5, torch.randn(size)) for _ in range(5)]


def run_divided(seed: int, share: float) -> list[list[float]]:
    """Results of inputs whose calls are divided at other places each time. Every fourth one almost repeats, every
    fifth one has another size, and between some a number is read."""
    weights, results = weights_of(64), []
    with torch.no_grad():
        end = Divided(seed, share)
        for k in range(48):
            x = torch.full((48 if k % 5 == 4 else 64, 64), 0.01 * k)
            y = long_function(x, weights, end, factor=0.25 if k % 4 == 3 else 0.5)
            if k % 3 == 0:
                results.append([y.sum().item()])
            results.append(y.flatten().tolist())
    return results


def test_functions_that_frames_divide_at_other_places_keep_their_bits(own_daemon):
    compared = [run_divided(seed, share) for seed, share in ((0, 0.1), (1, 0.03), (2, 0.3))]
    torch.disconnect()
    torch.connect(own_daemon(TELETENSOR_WINDOWS="0").address)
    assert [run_divided(seed, share) for seed, share in ((0, 0.1), (1, 0.03), (2, 0.3))] == compared
    assert not torch.compiler.stats().windows


def uneven_function(x, weights, end):
    """Calls without a period."""
    y = end(F.linear(x, *weights[0]))
    y = end(end(end(end(end(y * 2).tanh()) + 1).sigmoid()) - x)
    y = end(end(F.linear(y, *weights[1])) * 3)
    y = end(end(end(end(end(y.relu()) + 0.5) * y).abs()) + x)
    y = end(F.linear(y, *weights[2]))
    y = end(end(end(end(end(end(y - 1).square()) + 2).sqrt()) * 0.5).neg())
    y = end(end(F.linear(y, *weights[3])).sigmoid())
    y = end(end(end(end(end(y + 3) * 0.125) - x).tanh()) * 4)
    y = end(F.linear(y, *weights[4]))
    return end(end(end(end(y.tanh()) + x) * 0.75).relu())


def test_functions_that_frames_divide_at_other_places_are_found():
    weights, x, end = weights_of(64), torch.randn(64, 64), Divided(3, 1 / 12)
    with torch.no_grad():
        for _ in range(40):
            uneven_function(x, weights, end)
        torch.synchronize()
        time.sleep(0.5)  # the passes end
        before, calls = replaced(), end.calls
        for _ in range(100):
            uneven_function(x, weights, end)
        share = (replaced() - before) / (end.calls - calls)
    assert share > 0.2, share


def test_an_error_behind_the_end_of_a_frame_names_its_line_and_leaves_the_calls_before():
    weights, x, index = weights_of(64), torch.randn(64, 64), torch.arange(64)

    def step(index, end):
        y = long_function(x, weights, end)
        torch.synchronize()  # the frame ends
        return y, long_function(y.index_select(1, index), weights, end)  # the line

    with torch.no_grad():
        end = Divided(4, 0.05)
        expected = [t.tolist() for t in step(index, end)]
        repeat_until_compiled(lambda: step(index, end))
        before, after = step(index + 7, end)
        with pytest.raises(IndexError) as error:
            after.tolist()
        assert "index_select" in str(error.value)
        assert "test_windows.py" in str(error.value) or "test_windows.py" in "".join(error.value.__notes__)
        assert before.tolist() == expected[0]
        assert [t.tolist() for t in step(index, end)] == expected


def test_a_session_that_ends_between_the_parts_of_a_function(own_daemon):
    weights, x = weights_of(64), torch.randn(64, 64)
    with torch.no_grad():
        repeat_until_compiled(lambda: long_function(x, weights, Divided(5, 0.05)))
        half = F.linear(x, *weights[0]) * 0.5
        torch.synchronize()
        half = half * 2 + 1
    torch.disconnect()
    torch.connect(own_daemon(TELETENSOR_WINDOWS="1").address)
    with pytest.raises(ConnectionError):
        half.tolist()
    weights, x = weights_of(64), torch.ones(64, 64)
    with torch.no_grad():
        repeat_until_compiled(lambda: long_function(x, weights, Divided(6, 0.05)))


def random_function(seed: int, kept: float):
    """A function of random calls, of which some read positions of an index: of x, an index, and another one."""
    numbers = random.Random(seed)
    steps = []
    for n in range(3, 3 + numbers.randint(6, 40)):
        kind = numbers.choice(["unary", "binary", "binary", "number", "select", "gather", "sum", "where"])
        steps.append((kind, numbers.randrange(n), numbers.randrange(n), numbers.randrange(4)))
    keeps = [numbers.random() < kept for _ in steps]
    keeps[-1] = True

    def function(x, y, z, index, other):
        values = [x, y, z]
        for kind, a, b, which in steps:
            a, b = values[a], values[b]
            if kind == "unary":
                values.append([torch.tanh, torch.abs, torch.neg, torch.sigmoid][which](a))
            elif kind == "binary":
                values.append([torch.add, torch.mul, torch.maximum, torch.sub][which](a, b))
            elif kind == "number":
                values.append(a * 0.5 + which)
            elif kind == "sum":
                values.append(a - b.sum())
            elif kind == "where":
                values.append(torch.where(a > 0.5 * which, b, values[-1] if which < 2 else b))
            elif kind == "select":
                values.append(a.index_select(0, index))
            else:
                values.append(a.gather(0, other))
        return [value for value, keep in zip(values[3:], keeps) if keep]

    return function


def outcomes(results: list) -> list:
    """Of each result its numbers, or its error with the line."""
    found = []
    for result in results:
        try:
            found.append(result.tolist())
        except IndexError as error:
            found.append((type(error), str(error), "".join(getattr(error, "__notes__", ()))))
    return found


def run_with_errors(seed: int, size: int = 64) -> list:
    """Outcomes of a random function with valid and invalid positions."""
    torch.manual_seed(seed)
    function = random_function(seed, kept=[0.2, 0.5, 0.9][seed % 3])
    x, y, z = torch.randn(size), torch.randn(size), torch.randn(size)
    valid = torch.arange(size)
    compared = []
    with torch.no_grad():
        for index, other in [(valid, valid)] * 4 + [(valid + 1, valid), (valid, valid + 1), (valid - 9999, valid + 1)]:
            torch.synchronize()
            busy = torch.ones(600, 600) @ torch.ones(600, 600)  # the calls wait, and are in one frame
            results = function(x, y, z, index, other)
            del busy
            compared.append(outcomes(results))
            del results
    return compared


def test_errors_of_a_condition_are_kept_if_both_choices_are_equal(own_daemon):
    torch.disconnect()
    torch.connect(own_daemon(TELETENSOR_WINDOWS="test").address)
    x, z, valid = torch.randn(SIZE), torch.randn(SIZE), torch.arange(SIZE)
    wrong = valid + 1

    def step(index):
        torch.synchronize()
        busy = torch.ones(600, 600) @ torch.ones(600, 600)  # the calls wait, and are in one frame
        chosen = torch.where(x.index_select(0, index) > 0, z, z)
        result = ((chosen * 2).exp() + chosen.sum()).sum()
        del chosen, busy
        return result

    with torch.no_grad():
        repeat_until_compiled(lambda: step(valid).item())
        before = runs()
        with pytest.raises(IndexError):
            step(wrong).item()
        for _ in range(3):
            step(valid).item()
        assert runs() > before


def test_errors_are_those_of_the_results_that_depend_on_them(own_daemon):
    torch.disconnect()
    torch.connect(own_daemon(TELETENSOR_WINDOWS="0").address)
    expected = [run_with_errors(seed) for seed in range(24)]
    torch.disconnect()
    torch.connect(own_daemon(TELETENSOR_WINDOWS="test").address)
    for seed, wanted in enumerate(expected):
        assert run_with_errors(seed) == wanted, seed
    assert runs() > 0
    outcomes_of_all = [outcome for results in expected for results_of_run in results[4:] for outcome in results_of_run]
    assert any(isinstance(outcome, tuple) for outcome in outcomes_of_all)
    assert any(isinstance(outcome, list) for outcome in outcomes_of_all)
