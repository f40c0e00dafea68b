"""Module compared with PyTorch's: order of registries, overridable methods, hooks, and state."""

import copy
from collections import OrderedDict

import pytest


def assign(module, **values):
    for name, value in values.items():
        setattr(module, name, value)


ORDERS = [
    # (how two entries are registered, the action, the expected order of names)
    ("module", lambda m, new: setattr(m, "a", new()), ["a", "b"]),
    ("module", lambda m, new: m.add_module("a", new()), ["a", "b"]),
    ("module", lambda m, new: m.register_module("a", new()), ["a", "b"]),
    ("module", lambda m, new: (setattr(m, "a", None), setattr(m, "a", new())), ["a", "b"]),
    ("module", lambda m, new: (delattr(m, "a"), setattr(m, "a", new())), ["b", "a"]),
    ("module", lambda m, new: m.set_submodule("a", new()), ["a", "b"]),
    ("parameter", lambda m, new: setattr(m, "a", new()), ["a", "b"]),
    ("parameter", lambda m, new: m.register_parameter("a", new()), ["a", "b"]),
    ("parameter", lambda m, new: (setattr(m, "a", None), setattr(m, "a", new())), ["a", "b"]),
    ("parameter", lambda m, new: (delattr(m, "a"), setattr(m, "a", new())), ["b", "a"]),
    ("buffer", lambda m, new: setattr(m, "a", new()), ["a", "b"]),
    ("buffer", lambda m, new: m.register_buffer("a", new()), ["a", "b"]),
    ("buffer", lambda m, new: (setattr(m, "a", None), setattr(m, "a", new())), ["a", "b"]),
]


@pytest.mark.parametrize("kind, change, expected", ORDERS)
def test_reassigned_name_keeps_its_position(torch, kind, change, expected):
    nn = torch.nn
    new = {
        "module": lambda: nn.Linear(2, 2), "parameter": lambda: nn.Parameter(torch.ones(2)),
        "buffer": lambda: nn.Buffer(torch.ones(2)),
    }[kind]  # fmt: skip
    module = nn.Module()
    assign(module, a=new(), b=new())
    change(module, new)
    registry = getattr(module, {"module": "_modules", "parameter": "_parameters", "buffer": "_buffers"}[kind])
    assert list(registry) == expected
    assert list(dict.fromkeys(k.split(".")[0] for k in module.state_dict())) == expected


def test_containers_keep_their_order(torch):
    nn = torch.nn
    for make in (nn.Sequential, lambda *m: nn.ModuleList(m)):
        modules = make(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 2))
        modules[0] = nn.Linear(3, 3)
        modules[-2] = nn.Tanh()
        assert [type(m).__name__ for m in modules] == ["Linear", "Tanh", "Linear"]
        assert list(modules.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    named["a"] = nn.Tanh()
    assert list(named) == ["a", "b"]
    parameters = nn.ParameterList([torch.ones(1), torch.ones(2)])
    parameters[0] = torch.zeros(3)
    assert isinstance(parameters[0], nn.Parameter) and [len(p) for p in parameters] == [3, 2]
    by_name = nn.ParameterDict({"a": torch.ones(1), "b": torch.ones(2)})
    by_name["a"] = torch.zeros(3)
    assert [(k, len(v)) for k, v in by_name.items()] == [("a", 3), ("b", 2)]
    assert [n for n, _ in by_name.named_parameters()] == ["a", "b"]


def test_attribute_kind_can_change(torch):
    nn, module = torch.nn, torch.nn.Module()
    module.register_buffer("x", torch.ones(1), persistent=False)
    module.x = nn.Parameter(torch.ones(1))
    assert not module._buffers and list(module.state_dict()) == ["x"]
    module.y = 3
    module.y = nn.Linear(1, 1)
    assert "y" not in vars(module) and list(dict(module.named_children())) == ["y"]


REFUSED = [
    (lambda m, t: setattr(m, "p", t), TypeError),  # a tensor instead of a parameter
    (lambda m, t: setattr(m, "m", t), TypeError),
    (lambda m, t: setattr(m, "b", 3), TypeError),
    (lambda m, t: m.register_parameter("m", None), KeyError),
    (lambda m, t: m.register_parameter("a.b", None), KeyError),
    (lambda m, t: m.register_parameter("q", t), TypeError),
    (lambda m, t: m.register_buffer("p", t), KeyError),
    (lambda m, t: m.register_buffer("q", 3), TypeError),
    (lambda m, t: m.add_module("p", None), KeyError),
    (lambda m, t: m.add_module("a.b", None), KeyError),
    (lambda m, t: m.add_module("q", t), TypeError),
    (lambda m, t: m.get_parameter("m"), AttributeError),
    (lambda m, t: m.get_buffer("p"), AttributeError),
    (lambda m, t: m.get_submodule("p"), AttributeError),
    (lambda m, t: m.train("yes"), ValueError),
    (lambda m, t: m.to(t.to(int).dtype), TypeError),
]


@pytest.mark.parametrize("do, error", REFUSED)
def test_invalid_arguments_are_rejected(torch, do, error):
    module = torch.nn.Module()
    assign(module, p=torch.nn.Parameter(torch.ones(1)), b=torch.nn.Buffer(torch.ones(1)), m=torch.nn.ReLU())
    with pytest.raises(error):
        do(module, torch.ones(1))


# -- overridden methods


def test_extra_state(torch):
    class Counter(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    net, other = torch.nn.Sequential(Counter(5)), torch.nn.Sequential(Counter(0))
    assert list(net.state_dict()) == ["0._extra_state"]
    other.load_state_dict(net.state_dict())
    assert other[0].n == 5
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.*"_extra_state"'):
        torch.nn.ReLU().load_state_dict({"_extra_state": 1})
    assert other.load_state_dict({}, strict=False).missing_keys == ["0._extra_state"]


def test_modules_can_override_saving_and_loading(torch):
    class Old(torch.nn.Linear):
        _version = 3

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "w"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, *lists):
            self.seen = local_metadata.get("version")
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)

    net, other = torch.nn.Sequential(Old(2, 2)), torch.nn.Sequential(Old(2, 2))
    state = net.state_dict()
    assert list(state) == ["0.bias", "0.w"]
    assert state._metadata == OrderedDict({"": {"version": 1}, "0": {"version": 3}})
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other[0].seen == 3 and list(state) == ["0.bias", "0.w"]  # the caller's dict is not modified
    assert torch.equal(other[0].weight, net[0].weight)
    other.load_state_dict(dict(state))
    assert other[0].seen is None


def test_versions_are_saved_in_files(torch, tmp_path):
    state = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).state_dict()
    torch.save(state, tmp_path / "state")
    assert torch.load(tmp_path / "state")._metadata == state._metadata == {"": {"version": 1}, "0": {"version": 2}}


def test_batch_norm_of_an_old_file(torch):
    old = torch.nn.BatchNorm1d(2)
    state = {k: v for k, v in old.state_dict().items() if k != "num_batches_tracked"}
    assert torch.nn.BatchNorm1d(2).load_state_dict(state).missing_keys == []
    state = OrderedDict(state)
    state._metadata = old.state_dict()._metadata  # of the version that requires num_batches_tracked
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        torch.nn.BatchNorm1d(2).load_state_dict(state)


def test_state_dict_hooks(torch):
    calls, net = [], torch.nn.Sequential(torch.nn.Linear(1, 1))
    pre = net[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: calls.append(("pre", prefix, keep_vars)))
    net[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: state.pop(prefix + "bias") and None)
    net._register_state_dict_hook(lambda module, state, prefix, metadata: {**state, "more": metadata["version"]})
    state = net.state_dict(keep_vars=True)
    assert calls == [("pre", "0.", True)] and list(state) == ["0.weight", "more"] and state["0.weight"] is net[0].weight
    pre.remove()
    net.state_dict()
    assert len(calls) == 1

    def add_bias(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "bias"] = torch.full((1,), 7.0)

    def forgive(module, keys):
        keys.unexpected_keys.clear()

    net[0].register_load_state_dict_pre_hook(add_bias)
    net[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: calls.append(prefix))
    net.register_load_state_dict_post_hook(forgive)
    found = net.load_state_dict(state)
    assert net[0].bias.item() == 7 and calls[-1] == "0." and tuple(found) == ([], [])
    twin = copy.deepcopy(net)
    twin.load_state_dict(state)
    net[0].register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        net.load_state_dict(state)


def test_loading_by_assignment(torch):
    net = torch.nn.BatchNorm1d(2)
    net.weight.requires_grad_(False)
    state = {k: v.clone().double() if v.is_floating_point() else v.clone() for k, v in net.state_dict().items()}
    before = net.weight
    net.load_state_dict(state, assign=True)
    assert net.weight is not before and net.weight.dtype is torch.float64 and not net.weight.requires_grad
    assert isinstance(net.bias, torch.nn.Parameter) and net.bias.requires_grad
    assert net.running_mean is state["running_mean"]
    before = net.weight
    net.load_state_dict({k: v.float() for k, v in state.items()})
    assert net.weight is before and net.weight.dtype is torch.float64


def test_load_state_dict_reports_all_errors(torch):
    net = torch.nn.Linear(2, 3)
    with pytest.raises(RuntimeError) as e:
        net.load_state_dict({"weight": torch.ones(2, 3), "bias": [1, 2, 3], "x.y": torch.ones(1)})
    for part in ('Unexpected key(s) in state_dict: "x.y"', "size mismatch for weight", "expected torch.Tensor"):
        assert part in str(e.value)
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_train_and_apply_call_overrides_of_submodules(torch):
    class Frozen(torch.nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    class Fixed(torch.nn.Linear):
        def _apply(self, fn, recurse=True):
            return self

    net = torch.nn.Sequential(Frozen(2), torch.nn.Sequential(Fixed(2, 2)))
    assert net.train() is net and not net[0].training and net[1].training
    net.double()
    assert net[0].weight.dtype is torch.float64 and net[1][0].weight.dtype is torch.float32


def test_apply_converts_gradients(torch):
    net = torch.nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    kept = net.weight
    net.double()
    assert net.weight is kept and net.weight.requires_grad and net.weight.is_leaf
    assert net.weight.grad.dtype is torch.float64 and net.weight.grad.tolist() == [[1, 1]]
    net._apply(lambda t: t * 2)
    assert net.weight.grad.tolist() == [[2, 2]]
    net.to_empty(device="cpu")
    assert net.weight.shape == (1, 2)


def test_forward_hooks(torch):
    class Twice(torch.nn.Module):
        def forward(self, x, scale=2):
            if scale is None:
                raise ValueError("no scale")
            return x * scale

    net, calls = Twice(), []
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"scale": 3, **kwargs}), with_kwargs=True)
    net.register_forward_hook(lambda m, args, kwargs, result: calls.append(kwargs) or result + 1, with_kwargs=True)
    net.register_forward_hook(lambda m, args, result: calls.append("first"), prepend=True)
    always = net.register_forward_hook(lambda m, args, result: calls.append(result), always_call=True)
    assert net(torch.tensor(1.0)).item() == 4 and calls[:2] == ["first", {"scale": 3}]
    with pytest.raises(ValueError, match="no scale"):
        net(torch.tensor(1.0), scale=None)
    assert calls[-1] is None
    always.remove()
    calls.clear()
    with pytest.raises(ValueError, match="no scale"):
        net(torch.tensor(1.0), scale=None)
    assert calls == []


def test_names_and_pickles(torch):
    class Named(torch.nn.Linear):
        def _get_name(self):
            return "Line"

        def extra_repr(self):
            return "one\ntwo"

        def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
            yield from (p for p in super().named_parameters(prefix, recurse, remove_duplicate) if "bias" not in p[0])

    net = Named(1, 1)
    assert repr(net) == "Line(\n  one\n  two\n)" and len(list(net.parameters())) == 1

    class Saved(torch.nn.ReLU):
        def __setstate__(self, state):
            super().__setstate__({**state, "restored": True})

    assert copy.deepcopy(Saved()).restored
    bare = torch.nn.ReLU.__new__(torch.nn.ReLU)
    bare.__setstate__({"training": True, "_parameters": {}, "_buffers": {}, "_modules": {}, "inplace": False})
    assert bare(torch.tensor([-1.0])).item() == 0 and list(bare.state_dict()) == []


def test_tied_modules_have_every_name(torch):
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    net[1] = net[0]
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)] == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_multiple_inheritance(torch):
    class Mixin:
        def __init__(self, value):
            self.value = value

    class Net(torch.nn.Module, Mixin):
        call_super_init = True

    assert Net(4).value == 4
    with pytest.raises(TypeError):
        torch.nn.Module(1)
