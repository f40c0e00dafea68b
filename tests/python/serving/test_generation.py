"""Streams of tokens: continuous batching of a decoder with a cache, through tritonclient."""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.request

import numpy as np
import pytest

import teletensor as torch
from examples.serve_llama import Llama
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

SYMBOLS, LENGTH, SLOTS = 17, 48, 4


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def served(_engine, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("generation")
    (folder / "models/llama").mkdir(parents=True)
    torch.manual_seed(0)
    model = Llama(SYMBOLS, LENGTH, width=32, layers=2).eval()
    for parameter in model.parameters():
        parameter.data.mul_(8.0)  # distinct probabilities
    serving.save(
        serving.Decoder(model.prefill, model.step, model.cache(SLOTS), SLOTS, LENGTH), folder / "models/llama/1"
    )
    (folder / "models/llama/config.json").write_text(json.dumps({"instance_group": [{"kind": request.param}]}))
    server = Served(folder, folder / "models")
    server.model = model
    yield server
    server.stop()


class Stream:
    """A stream of a client of its own."""

    def __init__(self, served):
        self.client = served.new_grpc()
        self.answers: queue.Queue = queue.Queue()
        self.client.start_stream(lambda result, error: self.answers.put((result, error)))

    def send(self, tokens, stop_tokens=None, model="llama", **parameters):
        arrays = {"tokens": np.array(tokens, "int64")}
        if stop_tokens is not None:
            arrays["stop_tokens"] = np.array(stop_tokens, "int64")
        self.client.async_stream_infer(model, grpc_inputs(grpcclient, **arrays), parameters=parameters, request_id="7")

    def next(self):
        result, error = self.answers.get(timeout=TIMEOUT)
        if error is not None:
            raise error
        return result

    def generate(self, tokens, **parameters):
        """The tokens, and why they end."""
        self.send(tokens, **parameters)
        found = []
        while True:
            result = self.next()
            response = result.get_response()
            assert response.id == "7"
            assert response.parameters["index"].int64_param == len(found)
            found.append(int(result.as_numpy("token")[0]))
            if response.parameters["triton_final_response"].bool_param:
                return found, response.parameters["finish_reason"].string_param

    def close(self):
        self.client.stop_stream()
        self.client.close()


@pytest.fixture
def stream(served):
    made = Stream(served)
    yield made
    made.close()


def expected(model, prompt, count):
    """The most probable continuation, by the whole model."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(prompt) :]


def test_greedy_tokens_are_those_of_the_whole_model(served, stream):
    for prompt in ([1, 2, 3], [5], list(range(16)) * 2 + [3]):
        count = min(12, LENGTH - len(prompt))
        assert stream.generate(prompt, temperature=0, max_tokens=count) == (
            expected(served.model, prompt, count),
            "length",
        )


def test_ends_at_stop_tokens_and_at_the_end_of_the_cache(served, stream):
    full = expected(served.model, [1, 2, 3], LENGTH - 3)
    tokens, reason = stream.generate([1, 2, 3], temperature=0)
    assert reason == "length" and tokens[: len(full)] == full and len(tokens) == LENGTH - 3 + 1
    stop = full[4]
    tokens, reason = stream.generate([1, 2, 3], temperature=0, stop_tokens=[stop])
    assert reason == "stop" and tokens == full[: full.index(stop) + 1]


def test_tokens_do_not_depend_on_who_shares_the_batch(served):
    """12 clients for 4 slots: requests wait, join and leave while others generate."""
    requests = [
        ([i % SYMBOLS, (3 * i) % SYMBOLS], {"seed": i, "max_tokens": 5 + i, "temperature": 0.9, "top_k": 5})
        for i in range(12)
    ]
    alone = Stream(served)
    single = [alone.generate(prompt, **parameters)[0] for prompt, parameters in requests]
    again = [alone.generate(prompt, **parameters)[0] for prompt, parameters in requests[:3]]
    alone.close()
    assert single[:3] == again
    assert len({tuple(tokens[:5]) for tokens in single}) > 3
    together: list = [None] * len(requests)

    def work(i):
        own = Stream(served)
        together[i] = own.generate(requests[i][0], **requests[i][1])[0]
        own.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert together == single


def test_sampling_parameters(stream):
    greedy, _ = stream.generate([4, 2], temperature=0, max_tokens=10)
    assert stream.generate([4, 2], top_k=1, seed=5, max_tokens=10)[0] == greedy
    assert stream.generate([4, 2], top_p=1e-6, seed=9, max_tokens=10)[0] == greedy
    hot = {tuple(stream.generate([4, 2], temperature=50.0, seed=seed, max_tokens=10)[0]) for seed in range(4)}
    assert len(hot) == 4


INVALID = {
    "empty prompt": ([], {}),
    "long prompt": ([1] * LENGTH, {}),
    "large token": ([SYMBOLS], {}),
    "negative token": ([-1], {}),
    "no tokens": ([1], {"max_tokens": 0}),
    "temperature": ([1], {"temperature": -1}),
    "top_k": ([1], {"top_k": -1}),
    "top_p": ([1], {"top_p": 2}),
    "text": ([1], {"temperature": "warm"}),
    "unknown": ([1], {"beams": 4}),
}


@pytest.mark.parametrize("what", INVALID)
def test_invalid_requests_are_refused(stream, what):
    tokens, parameters = INVALID[what]
    with pytest.raises(grpcclient.InferenceServerException):
        stream.send(tokens, **parameters)
        stream.next()
    assert len(stream.generate([1], max_tokens=2)[0]) == 2  # the stream goes on


def test_other_calls_are_refused(served):
    with pytest.raises(grpcclient.InferenceServerException, match="ModelStreamInfer"):
        served.grpc.infer("llama", grpc_inputs(grpcclient, tokens=np.array([1], "int64")))


def test_a_client_that_leaves_frees_its_slot(served):
    for _ in range(2 * SLOTS):
        left = Stream(served)
        left.send([1], max_tokens=LENGTH - 1)
        left.next()
        left.client.stop_stream(cancel_requests=True)
        left.client.close()
    stays = Stream(served)
    assert len(stays.generate([1], max_tokens=3)[0]) == 3
    stays.close()


def metric(served, name: str) -> float:
    with urllib.request.urlopen(f"http://{served.http_address}/metrics", timeout=TIMEOUT) as reply:
        lines = [
            line
            for line in reply.read().decode().splitlines()
            if line.startswith(name + "{") and 'model="llama"' in line
        ]
    assert len(lines) == 1, name
    return float(lines[0].split()[-1])


def test_metrics_count_tokens(served):
    before = (
        metric(served, "teletensor_model_generated_tokens_total"),
        metric(served, "teletensor_model_prompt_tokens_total"),
    )
    own = Stream(served)
    own.send([1, 2, 3], max_tokens=7)
    for _ in range(7):
        own.next()
    own.close()
    until = time.monotonic() + TIMEOUT
    while metric(served, "teletensor_model_generations") or metric(served, "teletensor_model_waiting_generations"):
        assert time.monotonic() < until
        time.sleep(0.02)
    # Requests of clients that have left may have added some.
    assert metric(served, "teletensor_model_generated_tokens_total") >= before[0] + 7
    assert metric(served, "teletensor_model_prompt_tokens_total") >= before[1] + 3


def test_unloading_ends_streams_and_loading_serves_again(served, stream):
    served.grpc.unload_model("llama")
    with pytest.raises(grpcclient.InferenceServerException):
        stream.send([1])
        stream.next()
    served.grpc.load_model("llama")
    assert len(stream.generate([1], max_tokens=2)[0]) == 2
