"""export(): records a module with torch.export and converts the program."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .. import export as torch_export
from .._C import Tensor
from ..export import ExportedProgram
from ..export._errors import UserError
from ..nn import Module
from . import _state
from ._convert import Converter
from ._exportable import ExportableModule
from ._model import onnx
from ._optimize import optimize as optimize_graph
from ._program import ONNXProgram
from ._report import Report
from ._sizes import contains_names, from_axes, with_dims
from .errors import ConversionError, OnnxExporterError, OnnxExporterWarning, TorchExportError

DEFAULT_OPSET = 20  # as PyTorch 2.15
LEAST_OPSET, LAST_OPSET = 18, 24


class Request:
    """The arguments of one export.

    Attributes:
        args, kwargs: example arguments.
        shapes: dynamic_shapes for torch.export.
        axis_names: names of sizes by the input's name and dimension.
        dims: the user's names of symbols.
    """

    def __init__(self, model: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self.shapes: Any = None
        self.given: Any = None
        self.axis_names: dict[str, dict[int, str]] = {}
        self.dims: dict[str, str] = {}

    def record(self) -> ExportedProgram:
        """The program.

        Raises:
            TorchExportError: the module cannot be recorded.
        """
        if isinstance(self.model, ExportedProgram):
            return self.model
        try:
            try:
                return torch_export.export(self.model, self.args, self.kwargs, dynamic_shapes=self.shapes)
            except UserError:
                if not contains_names(self.given):
                    raise
                self.shapes, self.dims = with_dims(self.given, hinted=True)
                return torch_export.export(self.model, self.args, self.kwargs, dynamic_shapes=self.shapes)
        except (UserError, NotImplementedError, RuntimeError, ValueError, TypeError) as e:
            raise TorchExportError(
                f"[onnx.export] torch.export.export could not record the module: {type(e).__name__}: {e}"
            ) from e


def export(
    model: Any, args: tuple[Any, ...] = (), f: str | os.PathLike | None = None, *, kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
    custom_translation_table: dict[Any, Any] | None = None, report: bool = False, optimize: bool = True, verify: bool = False,
    profile: bool = False, dump_exported_program: bool = False, artifacts_dir: str | os.PathLike = ".", export_params: bool = True,
    keep_initializers_as_inputs: bool = False, dynamic_axes: Mapping[str, Any] | None = None, training: Any = None,
    operator_export_type: Any = None, do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False, autograd_inlining: bool = True,
) -> ONNXProgram | None:  # fmt: skip
    """Converts a module to an ONNX model.

    Args:
        model: a module, or an ExportedProgram.
        args, kwargs: example arguments. Tensors are inputs of the model; other values are constants in it.
        f: a path to write the model to.
        verbose: print progress.
        input_names, output_names: names of the inputs and outputs, in order.
        opset_version: of ONNX's operators, 18 to 24.
        dynamo: False is the older exporter's interface: the same conversion, but nothing is returned and `f` is required.
        external_data: whether `f` has its weights in a second file, `f` with ".data" behind it.
        dynamic_shapes: as for torch.export.export; a string is the name of a dimension.
        custom_translation_table: translations by overload, which are used instead of this package's.
        report: write a report of the conversion in Markdown to `artifacts_dir`.
        optimize: compute constants and remove what has no effect.
        verify: compare the results for the example arguments with those of onnxruntime, and warn if they differ.
        profile: write the time of each step and of the slowest functions to `artifacts_dir`.
        dump_exported_program: write the program (.pt2) to `artifacts_dir`.
        export_params, keep_initializers_as_inputs: whether `f` contains weights, and has them as inputs too.
        dynamic_axes: dimensions by the input's name, of the older interface.

    Returns:
        An ONNXProgram, or None with dynamo=False.

    Raises:
        TorchExportError: torch.export.export could not record the module.
        DispatchError, ConversionError: operators cannot be expressed in ONNX; the message lists them with lines of code.
        ImportError: the package onnx is not installed.
    """
    _check_deprecated(
        training,
        operator_export_type,
        do_constant_folding,
        custom_opsets,
        export_modules_as_functions,
        autograd_inlining,
    )
    if isinstance(model, ExportableModule):
        own_args, own_kwargs = model.example_arguments()
        if not args and not kwargs:
            args, kwargs = own_args, own_kwargs
        dynamic_shapes = model.dynamic_shapes() if dynamic_shapes is None else dynamic_shapes
        input_names = model.input_names() if input_names is None else input_names
        output_names = model.output_names() if output_names is None else output_names
    if not dynamo and f is None:
        raise ValueError("[onnx.export] expected a path `f` with dynamo=False")
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if not isinstance(opset, int) or not LEAST_OPSET <= opset <= LAST_OPSET:
        raise ValueError(f"[onnx.export] expected an opset_version from {LEAST_OPSET} to {LAST_OPSET}, got {opset!r}")
    onnx()
    request = _request(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names)
    record = Report(opset, os.fspath(artifacts_dir), bool(verbose), report, profile)
    _state.exporting += 1
    try:
        with record.measured():
            program = _converted(
                request, record, opset, custom_translation_table or {}, input_names, output_names, optimize
            )
    finally:
        _state.exporting -= 1
    if dump_exported_program:
        record.dump(program.exported_program)
    if verify:
        _verify(program, request, record)
    record.finish(program)
    if f is not None:
        program.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )
    return program if dynamo else None


def _check_deprecated(
    training: Any, operator_export_type: Any, folding: bool, opsets: Any, as_functions: Any, inlining: bool
) -> None:
    """Arguments that PyTorch has kept from its older exporter, whose other values have no effect there: they are refused here."""
    if training is not None and getattr(training, "name", "") != "EVAL":
        raise ValueError("[onnx.export] training is deprecated: call model.train() or model.eval() before the export")
    if operator_export_type is not None and getattr(operator_export_type, "name", "") != "ONNX":
        raise ValueError("[onnx.export] operator_export_type is deprecated: expected ONNX")
    if opsets or as_functions or not inlining or not folding:
        raise NotImplementedError(
            "[onnx.export] custom_opsets, export_modules_as_functions, autograd_inlining=False and do_constant_folding=False; use "
            "custom_translation_table, and optimize=False"
        )
    if _state.symbolics:
        raise NotImplementedError(
            f"[onnx.export] register_custom_op_symbolic({next(iter(_state.symbolics))!r}): functions of the TorchScript exporter are not "
            "called; pass custom_translation_table"
        )


def _request(model: Any, args: Any, kwargs: Any, shapes: Any, axes: Any, input_names: Any) -> Request:
    if not isinstance(model, (Module, ExportedProgram)):
        raise TypeError(f"[onnx.export] expected a torch.nn.Module or an ExportedProgram, got {type(model).__name__}")
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    if (
        args
        and isinstance(args[-1], dict)
        and not kwargs
        and not isinstance(model, ExportedProgram)
        and _is_keywords(model, args)
    ):
        args, kwargs = args[:-1], dict(args[-1])
    request = Request(model, args, kwargs)
    if shapes is not None and isinstance(model, ExportedProgram):
        raise ValueError("[onnx.export] expected no dynamic_shapes with an ExportedProgram, which has its own")
    if axes and shapes is None and not isinstance(model, ExportedProgram):
        request.shapes, request.axis_names = from_axes(axes, model, args, kwargs, input_names)
    elif shapes is not None:
        request.given = shapes
        request.shapes, request.dims = with_dims(shapes) if contains_names(shapes) else (shapes, {})
    return request


def _is_keywords(model: Any, args: tuple) -> bool:
    """Whether a last argument that is a dict has keyword arguments, as the older interface allows."""
    import inspect

    try:
        parameters = list(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return False
    return bool(args[-1]) and all(isinstance(k, str) and k in parameters[len(args) - 1 :] for k in args[-1])


def _converted(
    request: Request, record: Report, opset: int, custom: dict[Any, Any], input_names: Any, output_names: Any, optimize: bool,
) -> ONNXProgram:  # fmt: skip
    with record.step("torch.export.export"):
        program = request.record()
    with record.step("conversion"):
        try:
            converter = Converter(program, opset, custom)
            graph = converter.run()
        except ConversionError as e:
            record.fail(e)
            raise
    record.counts = dict(graph.counts)
    if optimize:
        with record.step("optimization"):
            optimize_graph(graph)
    names = _names(graph, input_names, output_names)
    names |= {f"dim {k}": v for k, v in request.dims.items()}
    made = ONNXProgram(graph, program, names, opset)
    _name_axes(made, graph, names, request)
    return made


def _names(graph: Any, input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> dict[str, str]:
    """The user's names for inputs and outputs; values that had them are renamed."""
    names: dict[str, str] = {}
    shared = graph.builder.shared
    for values, given, what in (
        (graph.inputs, input_names, "input_names"),
        (graph.outputs, output_names, "output_names"),
    ):
        if given is None:
            continue
        if isinstance(given, str) or len(given) > len(values) and what == "output_names":
            raise ValueError(f"[onnx.export] expected at most {len(values)} {what}, got {given!r}")
        if len(given) > len(values):
            warnings.warn(
                f"[onnx.export] the model has {len(values)} inputs, and {len(given)} names were given",
                OnnxExporterWarning,
                stacklevel=4,
            )
        for value, name in zip(values, given):
            names[value.name] = str(name)
    if len(set(names.values())) != len(names):
        raise ValueError(f"[onnx.export] expected different names, got {sorted(names.values())}")
    for name in list(names.values()):
        if name in shared.names and name not in names:
            names[name] = shared.fresh(f"{name}_value")
    return names


def _name_axes(program: ONNXProgram, graph: Any, names: dict[str, str], request: Request) -> None:
    """The names of dynamic_axes, or of dynamic_shapes whose symbols export has chosen, for the sizes of the inputs."""
    chosen: dict[str, str] = {}
    by_input = {names.get(v.name, v.name): v for v in graph.inputs}
    for name, axes in request.axis_names.items():
        for dim, axis in axes.items():
            value = by_input.get(name)
            size = value.shape[dim] if value is not None and value.shape is not None else None
            if isinstance(size, str):
                chosen.setdefault(size, axis)
    if request.given is not None and contains_names(request.given) and not request.dims and not request.axis_names:
        from ..utils import _pytree as pytree

        flat = pytree.tree_leaves(
            request.given, is_leaf=lambda v: isinstance(v, Mapping) and all(isinstance(k, int) for k in v)
        )
        for value, axes in zip(graph.inputs, flat):
            for dim, axis in axes.items() if isinstance(axes, Mapping) else ():
                size = value.shape[dim]
                if isinstance(axis, str) and isinstance(size, str) and size != axis:
                    chosen.setdefault(size, axis)
    if chosen:
        program.rename_axes(chosen)


def _verify(program: ONNXProgram, request: Request, record: Report) -> None:
    from .verification import verify_onnx_program

    if request.args or request.kwargs:
        found = verify_onnx_program(program, request.args, request.kwargs)
    elif program.exported_program.example_inputs is not None:
        found = verify_onnx_program(program)
    else:
        raise OnnxExporterError("[onnx.export] expected example arguments for verify=True")
    record.verification = found
    worst = [v for v in found if not (v.max_abs_diff <= 1e-4 or v.max_rel_diff <= 1e-3)]
    if worst:
        warnings.warn(
            f"[onnx.export] onnxruntime's results differ: {', '.join(f'{v.name} by {v.max_abs_diff:.3g}' for v in worst)}",
            OnnxExporterWarning, stacklevel=3,
        )  # fmt: skip


_state.export = export
