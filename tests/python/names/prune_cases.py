"""torch.nn.utils.prune."""

import importlib
import warnings

from .record import error


def pruning(torch):
    """The module torch.nn.utils.prune."""
    return importlib.import_module(f"{torch.__name__}.nn.utils.prune")


def linear(torch, rows=4, columns=5):
    """A Linear without equal absolute weights."""
    module = torch.nn.Linear(columns, rows)
    with torch.no_grad():
        n = torch.arange(rows * columns, dtype=torch.float32)
        module.weight.copy_(((n * 7 + 3) % 23 - 11.25).reshape(rows, columns))
        module.bias.copy_(torch.arange(rows) - 1.25)
    return module


def described(module):
    """What pruning changes in a module."""
    return [
        [n for n, _ in module.named_parameters()],
        [n for n, _ in module.named_buffers()],
        module.weight,
        getattr(module, "weight_mask", None),
        module.bias,
        len(module._forward_pre_hooks),
    ]


def case_functions(torch):
    prune, rows = pruning(torch), []
    scores = torch.arange(20.0).reshape(4, 5)
    for function, args in (
        (prune.identity, ()),
        (prune.l1_unstructured, (0.3,)),
        (prune.l1_unstructured, (7,)),
        (prune.l1_unstructured, (0,)),
        (prune.l1_unstructured, (3, scores)),
        (prune.ln_structured, (0.5, 2, 0)),
        (prune.ln_structured, (2, 1, -1)),
        (prune.ln_structured, (1, float("inf"), 1)),
        (prune.ln_structured, (1, 2, 0, scores)),
        (prune.ln_structured, (0, 2, 0)),
        (prune.custom_from_mask, (scores % 2,)),
    ):
        module = linear(torch)
        rows.append([function(module, "weight", *args) is module, described(module), prune.is_pruned(module)])
        rows.append([module(torch.ones(1, 5)), [str(k) for k in module.state_dict()]])
        rows.append([prune.remove(module, "weight") is module, described(module), prune.is_pruned(module), type(module.weight).__name__])
    return rows


def case_repeated(torch):
    prune, rows = pruning(torch), []
    module = linear(torch)
    prune.l1_unstructured(module, "weight", 0.25)
    prune.ln_structured(module, "weight", 1, 2, 0)
    rows.append(described(module))
    prune.l1_unstructured(module, "weight", 4)
    prune.ln_structured(module, "weight", 0.5, 2, 1)
    prune.l1_unstructured(module, "bias", 2)
    hook = next(iter(module._forward_pre_hooks.values()))
    rows += [described(module), type(hook).__name__, len(hook), [type(m).__name__ for m in hook], hook._tensor_name]
    module(torch.ones(2, 5)).sum().backward()
    rows += [module.weight_orig.grad, module.bias_orig.grad]
    prune.remove(module, "weight")
    return [*rows, described(module), type(prune.PruningContainer()).__name__]


def case_global(torch):
    prune = pruning(torch)
    first, second = linear(torch), linear(torch, 3, 4)
    pairs = [(first, "weight"), (second, "weight"), (second, "bias")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.4)
    rows = [described(first), described(second)]
    prune.global_unstructured(pairs, prune.L1Unstructured, {(first, "weight"): torch.arange(20.0).reshape(4, 5) + 0.5}, amount=5)
    return [*rows, described(first), described(second)]


def case_counts_of_random_methods(torch):
    prune, rows = pruning(torch), []
    module = prune.random_unstructured(linear(torch), "weight", 0.35)
    rows.append(module.weight_mask.sum())
    module = prune.random_structured(linear(torch), "weight", 2, 1)
    rows += [module.weight_mask.sum(), sorted(module.weight_mask.sum(0).tolist())]
    return rows


def case_methods_alone(torch):
    prune = pruning(torch)
    t = torch.tensor([[1.0, -5, 3], [4, -2, 6]])
    return [
        prune.L1Unstructured(2).prune(t),
        prune.L1Unstructured(0.5).prune(t, importance_scores=-t),
        prune.L1Unstructured(1).prune(t, default_mask=torch.tensor([[0.0, 1, 1], [1, 1, 1]])),
        prune.LnStructured(1, 2, 0).prune(t),
    ]


def case_errors(torch):
    prune = pruning(torch)
    module, vector = linear(torch), torch.ones(3)
    rows = [
        error(prune.L1Unstructured, -1),
        error(prune.L1Unstructured, 1.5),
        error(prune.L1Unstructured, "a"),
        error(prune.l1_unstructured, module, "weight", 100),
        error(prune.remove, module, "weight").partition("of module")[0],
        error(prune.ln_structured, module, "bias", 1, 2, 0),
        error(prune.ln_structured, module, "weight", 1, 2, 3),
        error(prune.l1_unstructured, module, "weight", 1, vector).partition(":")[0],
        error(prune.L1Unstructured(1).prune, module.weight, None, vector),
        error(prune.global_unstructured, 3, prune.L1Unstructured),
        error(prune.global_unstructured, [(module, "weight")], prune.L1Unstructured, 3),
        error(prune.global_unstructured, [(module, "weight")], prune.RandomStructured, amount=1).partition("Found")[0],
        error(prune.PruningContainer().add_pruning_method, 3).partition(" is ")[2],
        error(prune.BasePruningMethod).partition(":")[0],
    ]
    return [*rows, described(module)]


def case_reparametrization(torch):
    parametrize, rows = torch.nn.utils.parametrize, []

    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    source, target = linear(torch), linear(torch, 4, 5)
    rows.append(parametrize.type_before_parametrizations(source).__name__)
    parametrize.register_parametrization(source, "weight", Double())
    rows += [parametrize.type_before_parametrizations(source).__name__, type(source).__name__]
    parametrize.transfer_parametrizations_and_params(source, target)
    rows += [target.weight, target.parametrizations.weight.original is source.parametrizations.weight.original]
    empty = torch.nn.Module()
    parametrize.transfer_parametrizations_and_params(source, empty, "weight")
    return [*rows, empty.weight, [n for n, _ in empty.named_parameters()]]


def case_clipping(torch):
    utils, rows = torch.nn.utils, []
    for norm in (2.0, 1, float("inf")):
        module = linear(torch)
        module(torch.ones(2, 5)).square().sum().backward()
        grads = [p.grad for p in module.parameters()]
        total = utils.get_total_norm(grads, norm)
        utils.clip_grads_with_norm_(module.parameters(), 3.0, total)
        rows += [total, [p.grad for p in module.parameters()], utils.get_total_norm(grads, norm)]
    return [*rows, utils.get_total_norm([]), error(utils.get_total_norm, [torch.tensor([float("nan")])], 2.0, True)]


def case_stateless_and_skip_init(torch):
    utils, module = torch.nn.utils, linear(torch)
    stateless = importlib.import_module(f"{torch.__name__}.nn.utils.stateless")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        called = stateless.functional_call(module, {"bias": torch.zeros(4)}, torch.ones(1, 5))
    made = utils.skip_init(torch.nn.Linear, 3, 4, bias=False)
    convolution = torch.nn.Conv2d(2, 3, 2)
    before = convolution.weight.detach().clone()
    utils.convert_conv2d_weight_memory_format(torch.nn.Sequential(convolution), torch.channels_last)
    sparse = torch.nn.init.sparse_(torch.empty(10, 4), 0.25)
    return [
        called,
        module.bias,
        repr(made),
        made.weight.device.type,
        made.weight.shape,
        bool((convolution.weight == before).all()),
        (sparse == 0).sum(0),
        error(torch.nn.init.sparse_, torch.empty(3), 0.1),
        error(utils.skip_init, int),
    ]
