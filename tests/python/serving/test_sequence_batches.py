"""Sequences that share batches: a run has a request of each of several sequences, with their states as its rows."""

from __future__ import annotations

import json
import threading
from concurrent import futures

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs
from tests.python.serving.test_sequences import STATES

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

WAIT = 60_000_000  # us for which a batch waits to be complete: a test that does not complete one fails by its time
SINGULAR = 13


def batching(strategy: dict, **more) -> dict:
    sequences = {key: value for key, value in STATES["sequence_batching"].items() if key != "oldest"}
    return {**STATES, "sequence_batching": {**sequences, **strategy}, **more}


CONFIGS = {
    "oldest": batching({"oldest": {"preferred_batch_size": [4], "max_queue_delay_microseconds": WAIT}}),
    "direct": batching({"direct": {"minimum_slot_utilization": 1, "max_queue_delay_microseconds": WAIT}}),
    "soon": batching({"oldest": {"max_queue_delay_microseconds": 500}}, max_batch_size=8),
    "padded": batching({"direct": {}}, parameters={"batch_padding": {"string_value": "powers_of_two"}}),
    "two": batching({"oldest": {"max_candidate_sequences": 2}}),
    "alone": batching({}),
}
INVERSE = {
    "max_batch_size": 4,
    "output": [{"name": "y"}],
    "sequence_batching": {
        "oldest": {"preferred_batch_size": [4], "max_queue_delay_microseconds": WAIT},
        "control_input": [{"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 1]}]}],
        "state": [{"input_name": "before", "output_name": "after", "data_type": "TYPE_FP32", "dims": [1]}],
    },
}


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def served(_engine, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("sequence_batches")

    def inverse(x, start, before):
        after = torch.where(start > 0, torch.full((1,), 100.0), before) + x
        return after, after + 0 * torch.linalg.inv(x.reshape(-1, 1, 1) - SINGULAR).reshape(-1, 1)

    def total(x, total, count, start, who):
        """The model of test_sequences.write_onnx()."""
        whole = total + x
        return whole + start, whole + 0, count + 1, who + 0

    def write(name, function, examples, inputs, outputs, config):
        serving.save(function, folder / f"models/{name}/1", examples, input_names=inputs, output_names=outputs)
        config = {**config, "instance_group": [{"kind": request.param}]}
        (folder / f"models/{name}/config.json").write_text(json.dumps(config))

    write("inverse", inverse, [torch.ones(2, 1)] * 3, ["x", "start", "before"], ["after", "y"], INVERSE)
    whole, count = torch.ones(2, 2), torch.ones(2, 1, dtype=torch.int64)
    examples, inputs = [whole, whole, count, torch.ones(2, 1), count], ["x", "total", "count", "start", "who"]
    for name, config in CONFIGS.items():
        write(name, total, examples, inputs, ["y", "total_out", "count_out", "seen"], config)
    server = Served(folder, folder / "models")
    yield server
    server.stop()


def infer(served, model, sequence, x, start=False, end=False, http=False, **parameters):
    # A client of tritonclient.http belongs to one thread.
    client, module = (httpclient.InferenceServerClient(served.http_address), httpclient) if http else (served.grpc, grpcclient)
    inputs = grpc_inputs(module, x=np.atleast_2d(np.asarray(x, "float32")))
    try:
        return client.infer(model, inputs, sequence_id=sequence, sequence_start=start, sequence_end=end, **parameters)
    finally:
        if http:
            client.close()


def together(served, model, requests: list[dict]) -> list:
    """Sends requests at once; returns their results, or the errors with which they fail."""

    def send(request):
        try:
            return infer(served, model, **request)
        except Exception as error:  # noqa: BLE001 - the test compares it
            return error

    with futures.ThreadPoolExecutor(len(requests)) as pool:
        return [each.result(TIMEOUT) for each in [pool.submit(send, request) for request in requests]]


def counts(served, model) -> tuple[int, int]:
    """Requests and runs so far."""
    stats = served.grpc.get_inference_statistics(model).model_stats[0]
    return stats.inference_count, stats.execution_count


@pytest.mark.parametrize("model", ["oldest", "direct"])
def test_a_batch_is_one_run_of_requests_of_several_sequences(served, model):
    before = counts(served, model)
    totals = np.zeros((4, 2))
    for step in range(3):
        x = np.arange(8).reshape(4, 2) + step
        found = together(
            served, model,
            [{"sequence": 10 + i, "x": x[i], "start": step == 0, "end": step == 2, "http": i % 2 == 1} for i in range(4)],
        )  # fmt: skip
        totals += x
        for i, result in enumerate(found):
            assert result.as_numpy("y").tolist() == [(totals[i] + (100 if step == 0 else 0)).tolist()]
            assert result.as_numpy("seen").tolist() == [[10 + i]] and result.as_numpy("count_out").tolist() == [[step + 1]]
    after = counts(served, model)
    assert (after[0] - before[0], after[1] - before[1]) == (12, 3)


def test_sequences_that_begin_end_and_begin_again_in_one_batch(served):
    found = together(served, "oldest", [{"sequence": 20 + i, "x": [i, 1], "start": True} for i in range(4)])
    assert [each.as_numpy("y").tolist() for each in found] == [[[100 + i, 101]] for i in range(4)]
    requests = [{"sequence": 20 + i, "x": [1, 1]} for i in range(4)]
    requests[1]["start"] = True  # begins again
    requests[2]["end"] = True
    requests[3] = {"sequence": 29, "x": [1, 1], "start": True}  # a new one
    found = together(served, "oldest", requests)
    assert [each.as_numpy("y").tolist() for each in found] == [[[1, 2]], [[101, 101]], [[3, 2]], [[101, 101]]]
    assert [each.as_numpy("count_out").item() for each in found] == [2, 1, 2, 1]
    with pytest.raises(Exception, match="has ended"):
        infer(served, "oldest", 22, [1, 1])
    requests = [{"sequence": each, "x": [1, 1], "end": True} for each in (20, 21, 23, 29)]
    found = together(served, "oldest", requests)
    assert [each.as_numpy("y").tolist() for each in found] == [[[2, 3]], [[2, 2]], [[4, 2]], [[2, 2]]]


def test_sequences_of_several_rows(served):
    shapes = [(1, 2), (2, 2), (1, 2)]
    for step in range(3):
        requests = [{"sequence": 40 + i, "x": np.full(shape, i + 1), "start": step == 0} for i, shape in enumerate(shapes)]
        for i, result in enumerate(together(served, "direct", requests)):
            assert result.as_numpy("y").tolist() == np.full(shapes[i], (step + 1) * (i + 1) + (100 if step == 0 else 0)).tolist()
    with pytest.raises(Exception, match="2 rows, as the sequence has, got 1"):
        infer(served, "direct", 41, [1, 1])


def test_a_request_that_fails_changes_no_sequence(served):
    def step(values, **parameters):
        found = together(served, "inverse", [{"sequence": 50 + i, "x": [value], **parameters} for i, value in enumerate(values)])
        return [each.as_numpy("y").item() if not isinstance(each, Exception) else str(each) for each in found]

    assert step([1, 2, 3, 4], start=True) == [101, 102, 103, 104]
    before = counts(served, "inverse")
    found = step([1, SINGULAR, 3, 4])
    assert "singular" in found[1] and [found[i] for i in (0, 2, 3)] == [102, 106, 108]
    assert counts(served, "inverse")[0] - before[0] == 3
    assert step([1, 2, 3, 4], end=True) == [103, 104, 109, 112]
    found = step([1, 2, SINGULAR, 4], start=True)
    assert "singular" in found[2] and [found[i] for i in (0, 1, 3)] == [101, 102, 104]
    with pytest.raises(Exception, match="expected a request with sequence_start"):
        infer(served, "inverse", 52, [1])


@pytest.mark.parametrize("model", ["soon", "padded", "alone"])
def test_values_are_those_of_one_by_one(served, model):
    """Sequences of random lengths, from clients that do not wait for each other."""
    rng = np.random.default_rng(5)
    steps = [rng.integers(-50, 50, (int(rng.integers(1, 25)), int(rng.integers(1, 3)), 2)) for _ in range(6)]
    errors = []

    def run(i):
        try:
            for round_ in range(2):
                total = np.zeros(steps[i].shape[1:])
                for k, x in enumerate(steps[i]):
                    first, last = k == 0, k == len(steps[i]) - 1
                    found = infer(served, model, 70 + i, x, start=first, end=last and round_ == 1, http=i % 2 == 1)
                    total = total + x
                    assert found.as_numpy("y").tolist() == (total + (100 if first else 0)).tolist()
                    assert (found.as_numpy("seen") == 70 + i).all() and (found.as_numpy("count_out") == k + 1).all()
        except BaseException as error:  # noqa: BLE001 - the test reports it
            errors.append((i, error))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(steps))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_candidates_wait_until_a_sequence_ends(served):
    infer(served, "two", 1, [1, 1], start=True)
    infer(served, "two", 2, [1, 1], start=True)
    with pytest.raises(Exception, match="(?i)deadline"):
        infer(served, "two", 3, [1, 1], start=True, client_timeout=0.3)
    with futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(infer, served, "two", 3, [5, 5], start=True)
        assert infer(served, "two", 2, [1, 1], start=True).as_numpy("y").tolist() == [[101, 101]]  # it exists
        assert infer(served, "two", 1, [1, 1], end=True).as_numpy("y").tolist() == [[2, 2]]
        assert waiting.result(TIMEOUT).as_numpy("y").tolist() == [[105, 105]]
    for sequence in (2, 3):
        infer(served, "two", sequence, [1, 1], end=True)


def test_requests_of_sequences_have_no_priority(served):
    """Triton's configuration has priorities of dynamic_batching only."""
    with pytest.raises(Exception, match="expected a priority of at most 1, got 2"):
        infer(served, "alone", 1, [1, 1], start=True, priority=2)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"oldest": {"preferred_batch_size": [5]}}, "expected preferred_batch_size of 1 to 4, got 5"),
        ({"oldest": {"preserve_ordering": True}}, "preserve_ordering is not supported"),
        ({"oldest": {"max_candidate_sequences": -1}}, "expected max_candidate_sequences of 0 or more"),
        ({"oldest": {"max_queue_delay_microseconds": 10**9}}, "max_queue_delay_microseconds of at most 60000000"),
        ({"direct": {"minimum_slot_utilization": 1.5}}, "minimum_slot_utilization of 0 to 1"),
        ({"direct": {"minimum_slot_utilization": "NaN"}}, "minimum_slot_utilization of 0 to 1"),
    ],
)
def test_invalid_strategies_are_refused(served, strategy, message):
    with pytest.raises(Exception, match=message):
        served.grpc.load_model("alone", config=json.dumps(batching(strategy)))
    with pytest.raises(Exception, match="requires max_batch_size"):
        served.grpc.load_model("alone", config=json.dumps({"sequence_batching": {"direct": {"minimum_slot_utilization": 0.5}}}))
    served.grpc.load_model("alone")
