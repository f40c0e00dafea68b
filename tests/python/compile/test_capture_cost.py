"""What captures leave out or pause, and that nothing of it can be seen afterwards."""

from __future__ import annotations

import gc
import pickle

import pytest

import teletensor as torch
from teletensor import fx
from teletensor.fx.graph_module import LateGraphModule


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("breaks", [True, False])
def test_garbage_collection_is_as_before(is_enabled, breaks):
    seen = []

    def backend(gm, _inputs):
        seen.append(gc.isenabled())
        if breaks:
            raise ValueError("no")
        return gm.forward

    compiled = torch.compile(lambda x: x + 1, backend=backend)
    before = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        if breaks:
            with pytest.raises(Exception, match="no"):
                compiled(torch.ones(2))
        else:
            assert compiled(torch.ones(2)).tolist() == [2, 2]
        assert gc.isenabled() == is_enabled and seen == [False]
    finally:
        (gc.enable if before else gc.disable)()


def test_late_modules_generate_what_others_have():
    graph = fx.symbolic_trace(lambda x, y: torch.relu(x) + y).graph
    late, plain = LateGraphModule({}, graph), fx.GraphModule({}, graph)
    assert "_code" not in vars(late)
    forward = late.forward
    assert "_code" not in vars(late) and forward(torch.ones(2), 1).tolist() == [2, 2]
    assert late.code == plain.code and late(torch.ones(2), 2).tolist() == forward(torch.ones(2), 2).tolist() == [3, 3]
    assert LateGraphModule({}, graph).code == plain.code
    assert str(LateGraphModule({}, graph)).endswith(str(plain).rpartition("\n\n")[2])


def test_backends_of_users_receive_generated_code():
    seen = []
    torch.compile(lambda x: x.sin() + 1, backend=lambda gm, _inputs: seen.append(gm) or gm.forward)(torch.ones(2))
    assert "_code" in vars(seen[0]) and "sin" in seen[0].code


def test_class_attributes_are_guarded():
    """An attribute that a capture reads several times, and that changes later."""

    class Model(torch.nn.Module):
        factor = 2

        def forward(self, x):
            return x * self.factor + self.factor

    model = Model()
    compiled = torch.compile(model)
    assert compiled(torch.ones(1)).item() == 4
    Model.factor = 3
    assert compiled(torch.ones(1)).item() == 6
    model.factor = 4
    assert compiled(torch.ones(1)).item() == 8
    del model.factor
    assert compiled(torch.ones(1)).item() == 6


def test_late_modules_are_pickled_before_their_first_call():
    late = LateGraphModule({}, fx.symbolic_trace(lambda x, y: torch.relu(x) + y).graph)
    assert "_code" not in vars(late)
    read = pickle.loads(pickle.dumps(late))
    assert read(torch.tensor([-1.0, 2.0]), 1).tolist() == [1, 3] and read.code == late.code
