"""torch._functorch.aot_autograd: compiles a function's forward and backward graphs before it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C, nn
from .._C import Tensor
from .._grad_mode import no_grad
from .._library import aten
from ..autograd import Function
from ..fx.experimental._functional import check_apart
from ..fx.experimental._sizes import Symbol
from ..fx.experimental._symbolic import comparisons
from ..fx.graph_module import GraphModule
from ..utils import _pytree as pytree
from ._export_module import BackwardSignature, GraphSignature, aot_export_joint_simple, aot_export_module
from ._joint import Joint, Place, joint_graph, symbolic_joint
from .partitioners import default_partition

_MOST_SIZES = 4096  # whose comparisons are remembered per graph

__all__ = [
    "BackwardSignature", "GraphSignature", "aot_export_joint_simple", "aot_export_module", "aot_function", "aot_module",
    "aot_module_simplified", "compiled_function", "compiled_module", "make_boxed_compiler", "make_boxed_func",
]  # fmt: skip


def make_boxed_func(f: Callable) -> Callable:
    """A function that takes its arguments as one list, which it empties, so that no caller keeps them alive."""

    def call(args: list) -> Any:
        given = list(args)
        args.clear()
        return f(*given)

    call._boxed_call = True
    return call


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take their arguments as one list."""

    def compile_graph(module: GraphModule, inputs: list) -> Callable:
        return make_boxed_func(compiler(module, inputs))

    return compile_graph


def _call(compiled: Callable, args: list) -> list:
    result = compiled(args) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _examples(module: GraphModule) -> list:
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def _store_in_graph(module: GraphModule, written: list[int]) -> None:
    """Replaces the graph's first results, the new values of the inputs at these positions, by calls of copy_."""
    output = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    results = list(output.args[0])
    with module.graph.inserting_before(output):
        for place, value in zip(written, results):
            copied = module.graph.call_function(aten.packet("copy_").default, (inputs[place], value))
            copied.meta["val"] = inputs[place].meta.get("val")
    output.args = (results[len(written) :],)
    module.recompile()


class _Compiled:
    """The compiled graphs of a function for arguments of one signature."""

    def __init__(self, joint: Joint, options: _Options) -> None:
        self.joint = joint
        self.num_forward = len(joint.written) + joint.num_results
        if not joint.differentiable:
            forward, _ = default_partition(joint.module, (), num_fwd_outputs=self.num_forward)
            if options.keeps_writes and joint.written:
                _store_in_graph(forward, joint.written)
                self.joint = joint._replace(written=[])
            self.forward = options.inference(forward, _examples(forward))
            self.backward = None
            return
        forward, backward = options.partition(joint.module, _examples(joint.module), num_fwd_outputs=self.num_forward)
        self.forward = options.forward(forward, _examples(forward))
        self.backward = options.backward(backward, _examples(backward))

    def _finish_writes(self, primals: tuple, values: list) -> list:
        """Stores the new values of written inputs; returns the rest."""
        count = len(self.joint.written)
        with no_grad():
            for i, new in zip(self.joint.written, values):
                primals[i].copy_(new)
        return values[count:]

    def _with_gradients(self, primals: list[Tensor]) -> tuple:
        compiled, joint = self, self.joint

        class CompiledFunction(Function):
            """Runs the compiled graphs."""

            @staticmethod
            def forward(ctx: Any, *given: Tensor) -> tuple:
                values = _call(compiled.forward, list(given))
                results = compiled._finish_writes(given, values[: compiled.num_forward])
                saved = values[compiled.num_forward :]
                ctx.sizes = [v for v in saved if not isinstance(v, Tensor)]  # after the tensors
                ctx.save_for_backward(*saved[: len(saved) - len(ctx.sizes)])
                constant = [r for i, r in enumerate(results) if i not in joint.differentiable]
                ctx.mark_non_differentiable(*constant)
                return tuple(results)

            @staticmethod
            def backward(ctx: Any, *tangents: Tensor) -> tuple:
                if _C.is_grad_enabled():  # the saved values have no history
                    raise RuntimeError("aot_autograd does not support double backward: a backward pass with create_graph=True")
                given = [tangents[i].contiguous() for i in joint.differentiable]
                return tuple(_call(compiled.backward, [*ctx.saved_tensors, *ctx.sizes, *given]))

        return CompiledFunction.apply(*primals)

    def run(self, primals: list[Tensor]) -> Any:
        """The function's result for tensors like those that were traced."""
        if written := set(self.joint.written):
            groups = [[t for i, t in enumerate(primals) if (i in written) == inside] for inside in (True, False)]
            check_apart(*groups, "aot_function")
        if self.backward is None:
            with no_grad():
                values = self._finish_writes(tuple(primals), _call(self.forward, list(primals)))
        else:
            values = list(self._with_gradients(primals))
        return pytree.tree_unflatten([values[v] if isinstance(v, Place) else v for v in self.joint.results], self.joint.spec)


def _signature(tensors: list[Tensor]) -> tuple:
    return _C.is_grad_enabled(), tuple((tuple(t.shape), tuple(t.stride()), t.dtype, t.device, t.requires_grad) for t in tensors)


class _Options:
    """The compilers, checked."""

    def __init__(
        self, fw_compiler: Callable, bw_compiler: Callable | None, partition_fn: Callable, decompositions: dict | None,
        inference_compiler: Callable | None, keeps_writes: bool = False,
    ) -> None:  # fmt: skip
        self.forward, self.backward = fw_compiler, bw_compiler or fw_compiler
        self.inference = inference_compiler or fw_compiler
        self.partition, self.decompositions, self.keeps_writes = partition_fn, decompositions, keeps_writes

    def compile(self, f: Callable, args: tuple, states: list[Tensor]) -> _Compiled:
        """The graphs for arguments of these sizes."""
        return _Compiled(joint_graph(f, args, states, self.decompositions), self)

    def compile_symbolic(self, f: Callable, args: tuple, fixed: int) -> tuple[_Compiled, _Accepted]:
        """The graphs for arguments of many sizes, and the sizes that they serve; those of the first `fixed` leaves are constants."""
        joint, symbols = symbolic_joint(f, args, [], self.decompositions, fixed)
        return _Compiled(joint, self), _Accepted(f, args, symbols)


class _Accepted:
    """The sizes that a symbolic graph serves: those for which the function's comparisons of sizes have the example's outcomes."""

    def __init__(self, f: Callable, args: tuple, symbols: list[Symbol]) -> None:
        leaves = pytree.tree_leaves(args)
        self.function, self.outcomes = f, comparisons(f, args)
        self.checked = {_sizes(leaves): True}
        self.sizes = {(i, d): n for i, x in enumerate(leaves) if isinstance(x, Tensor) for d, n in enumerate(tuple(x.shape))}
        self.limits = {s.name: s.high for s in symbols if s.high is not None}
        for symbol in symbols:
            self.sizes |= dict.fromkeys([(i, d) for i, d, _, _ in symbol.places], symbol.name)

    def __call__(self, args: tuple, leaves: list[Any]) -> bool:
        """Whether arguments, whose leaves have the ranks of the example's, have such sizes. Calls the function once for new ones."""
        if not self._fits(leaves):
            return False
        sizes = _sizes(leaves)
        if sizes not in self.checked:
            if len(self.checked) >= _MOST_SIZES:
                self.checked.clear()
            self.checked[sizes] = self.outcomes is not None and comparisons(self.function, args) == self.outcomes
        return self.checked[sizes]

    def _fits(self, leaves: list[Any]) -> bool:
        """Whether sizes are those of the symbols and constants."""
        known: dict[str, int] = {}
        for (i, dim), expected in self.sizes.items():
            size = leaves[i].shape[dim]
            if isinstance(expected, str):
                if size < 2 or size > self.limits.get(expected, size) or known.setdefault(expected, size) != size:
                    return False
            elif size != expected:
                return False
        return True


def aot_function(
    fn: Callable, fw_compiler: Callable, bw_compiler: Callable | None = None, partition_fn: Callable = default_partition,
    decompositions: dict[Any, Callable] | None = None, num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None, *, dynamic: bool = False, enable_log: bool = True, disable_functionalization: bool = False,
) -> Callable:  # fmt: skip
    """Returns a function that computes fn by compiled graphs, which are made at the first call for arguments of each signature.

    The graphs contain the operators of forward and backward as the engine executes them, without writes; the new values of
    buffers that fn writes are results of the forward graph and are stored after its call.

    Args:
        fn: a function of tensors, in nested lists, tuples and dicts. It must be traceable by torch.compiler.trace.
        fw_compiler: receives the forward GraphModule and example inputs (fake tensors); returns a callable.
        bw_compiler: the same for the backward graph, by default fw_compiler.
        partition_fn: divides the joint graph.
        decompositions: functions by overload of torch.ops.aten that are recorded in its place.
        inference_compiler: for calls that record no gradients, by default fw_compiler.
        num_params_buffers: how many of the first tensors are parameters and buffers, whose sizes are constants with `dynamic`.
        keep_inference_input_mutations: graphs for calls that record no gradients store new values of their inputs themselves.
        dynamic: graphs compute what follows from sizes of at least 2, and serve all sizes that fn permits. Equal sizes of the first
            call are one symbol, as in PyTorch. Compilers receive the first call's sizes as examples. For new sizes, fn is called
            once without values, and other outcomes of its comparisons of sizes give other graphs.
        enable_log: has no effect; nothing is logged.

    Raises:
        NotImplementedError: fn cannot be traced, its backward pass cannot be expanded, or `disable_functionalization` is set.
    """
    del enable_log
    if disable_functionalization:
        raise NotImplementedError("[aot_function] disable_functionalization: the engine's backward passes are expanded without writes")
    options = _Options(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations)
    if dynamic:
        return _symbolic_function(fn, options, num_params_buffers)
    known: dict[Any, _Compiled] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        constants = tuple(None if isinstance(x, Tensor) else x for x in leaves)
        key = (str(spec), constants, _signature(tensors))
        if key not in known:
            known[key] = options.compile(lambda a, k: fn(*a, **k), (list(args), kwargs), [])
        return known[key].run(tensors)

    return call


def _sizes(leaves: list[Any]) -> tuple:
    return tuple(tuple(x.shape) for x in leaves if isinstance(x, Tensor))


def _symbolic_function(fn: Callable, options: _Options, fixed: int) -> Callable:
    """aot_function(dynamic=True)."""
    known: dict[Any, list[tuple[_Compiled, _Accepted]]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        constants = tuple(None if isinstance(x, Tensor) else x for x in leaves)
        kinds = tuple((t.dim(), t.is_contiguous(), t.dtype, t.device, t.requires_grad) for t in tensors)
        found = known.setdefault((str(spec), constants, _C.is_grad_enabled(), kinds), [])
        for compiled, accepted in found:
            if accepted((list(args), kwargs), leaves):
                return compiled.run(tensors)
        found.append(options.compile_symbolic(lambda a, k: fn(*a, **k), (list(args), kwargs), fixed))
        return found[-1][0].run(tensors)

    return call


class _CompiledModule(nn.Module):
    """A module that computes by compiled graphs; its parameters are those of the original module, `orig_module`."""

    def __init__(self, module: nn.Module, options: _Options) -> None:
        super().__init__()
        self.orig_module = module
        self._options, self._known = options, {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graphs for arguments of this signature."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        states = _states(self.orig_module)
        tensors = [*states, *(x for x in leaves if isinstance(x, Tensor))]
        constants = tuple(None if isinstance(x, Tensor) else x for x in leaves)
        key = (str(spec), constants, self.orig_module.training, tuple(t._handle for t in states), _signature(tensors))
        if key not in self._known:
            f = lambda a, k: self.orig_module(*a, **k)  # noqa: E731
            self._known[key] = self._options.compile(f, (list(args), kwargs), states)
        return self._known[key].run(tensors)


def _states(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


def aot_module(
    mod: nn.Module, fw_compiler: Callable, bw_compiler: Callable | None = None, partition_fn: Callable = default_partition,
    decompositions: dict[Any, Callable] | None = None, inference_compiler: Callable | None = None,
) -> nn.Module:  # fmt: skip
    """Returns a module that computes `mod` by compiled graphs, whose first inputs are the parameters and buffers.

    The arguments are those of aot_function().
    """
    if not isinstance(mod, nn.Module):
        raise TypeError(f"[aot_module] expected a module, got {type(mod).__name__}")
    return _CompiledModule(mod, _Options(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler))


def aot_module_simplified(
    mod: nn.Module, args: Any, fw_compiler: Callable, bw_compiler: Callable | None = None, partition_fn: Callable = default_partition,
    decompositions: dict[Any, Callable] | None = None, keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
) -> Callable:  # fmt: skip
    """Compiles a module for arguments like `args` at once, and returns a function of such arguments.

    Args:
        args: example arguments, all of them tensors. The other arguments are those of aot_function().
    """
    options = _Options(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations)
    compiled = options.compile(lambda a: mod(*a), (list(args),), _states(mod))
    expected = _signature(list(args))[1]

    def call(*given: Any) -> Any:
        flat = list(given[0]) if len(given) == 1 and isinstance(given[0], list) else list(given)
        if tuple(s[:4] for s in _signature(flat)[1]) != tuple(s[:4] for s in expected):
            raise RuntimeError("[aot_module_simplified] expected arguments of the sizes, strides and dtypes that were compiled")
        return compiled.run([*_states(mod), *flat])

    call.zero_grad, call.named_parameters, call.named_buffers = mod.zero_grad, mod.named_parameters, mod.named_buffers
    return call


compiled_function, compiled_module = aot_function, aot_module  # older names
