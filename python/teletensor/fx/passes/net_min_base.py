"""Minimizers: find the smallest part of a module whose results differ between two backends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .tools_common import CALLABLE_NODE_OPS, FxNetAccFusionsFinder, NodeList, NodeSet

__all__ = ["FxNetMinimizerBadModuleError", "FxNetMinimizerRunFuncError", "FxNetMinimizerResultMismatchError"]


class FxNetMinimizerBadModuleError(Exception):
    """The nodes cannot be one submodule."""


class FxNetMinimizerRunFuncError(Exception):
    """run_a() or run_b() raised an error."""


class FxNetMinimizerResultMismatchError(Exception):
    """compare_fn() found a difference."""


_FAILURES = (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError)


@dataclass
class _MinimizerSettingBase:
    """How a minimizer searches.

    Attributes:
        accumulate_error: passes each submodule the results of the same backend, instead of run_a()'s.
        traverse_method: "sequential", "binary", "accumulate", "skip", "defined" or "block".
        find_all: continues after the first culprit.
        return_intermediate: run_nodes() compares every node's result.
        all_outputs: compares all results of the submodule instead of the last node's.
    """

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False
    return_intermediate: bool = False
    all_outputs: bool = False

    def __str__(self) -> str:
        return "FX Minimizer Settings:\n" + "".join(f"\t{name}: {value}\n" for name, value in vars(self).items())


class _MinimizerBase:
    """Runs parts of a module on two backends; subclasses define run_a() and run_b().

    Args:
        module: the module.
        sample_input: its inputs.
        compare_fn: returns a number and whether the results agree, given both results and the names of the nodes.
        settings: how to search.
        module_exporter: called with inputs, submodule and name of each part that differs.
        exclusion_fn: removes nodes from a list in place, given also the first and last index (-1 if unknown).
    """

    def __init__(
        self,
        module: GraphModule,
        sample_input: Any,
        compare_fn: Callable[[Any, Any, Any], tuple[float, bool]],
        settings: _MinimizerSettingBase,
        module_exporter: Callable[[Any, GraphModule, str], None] | None = None,
        exclusion_fn: Callable[[NodeList, int, int], None] | None = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        self.module, self.sample_input, self.compare_fn = module, sample_input, compare_fn
        self.settings, self.module_exporter, self.exclusion_fn = settings, module_exporter, exclusion_fn
        self.a_outputs: dict[str, Any] = {}
        self.b_outputs: dict[str, Any] = {}
        self.results: dict[Any, Any] = {}
        self.reports: list[list[str]] = []
        self.iteration = 0
        self.run_shape_prop()
        callable_nodes = {node for node in module.graph.nodes if node.op in CALLABLE_NODE_OPS}
        self.fusions = FxNetAccFusionsFinder(module, callable_nodes)()
        placeholders = [node.name for node in module.graph.find_nodes(op="placeholder")]
        if len(placeholders) != len(sample_input):
            raise AssertionError(
                f"Placeholder count ({len(placeholders)}) does not match sample_input count ({len(sample_input)})"
            )
        self.a_outputs.update(zip(placeholders, sample_input))
        self.b_outputs.update(zip(placeholders, sample_input))

    def run_shape_prop(self) -> None:
        """Records the nodes' results."""
        ShapeProp(self.module).propagate(*self.sample_input)

    def run_a(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Runs a submodule on the first backend."""
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Runs a submodule on the second backend."""
        raise RuntimeError("run_b() is not implemented.")

    # -- one part of the module

    def _build_submodule(self, nodes: NodeSet) -> tuple[GraphModule, str]:
        """The module split so that the nodes are one submodule; returns its name too."""
        for node in self.module.graph.nodes:
            if node.op not in CALLABLE_NODE_OPS:
                continue
            calls = [n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS]
            after = any(n.tag in ("minimize", "main_1") for n in calls)
            node.tag = "minimize" if node in nodes else "main_1" if after else "main_0"
        try:
            split = split_by_tags(self.module, ["main_0", "minimize", "main_1"])
        except AssertionError as e:
            raise FxNetMinimizerBadModuleError(f"The nodes {nodes} cannot be one submodule: {e}") from e
        return split, "minimize"

    def _inputs_of(self, split: GraphModule, name: str) -> tuple[Any, Any]:
        """The inputs of a submodule for both backends."""
        submodule = getattr(split, name)
        names = [node.name for node in submodule.graph.find_nodes(op="placeholder")]
        if set(names) <= self.a_outputs.keys():
            a, b = [self.a_outputs[n] for n in names], [self.b_outputs[n] for n in names]
        else:
            if self.settings.accumulate_error:
                print(f"Can't find previous stored outputs named {names}!")
            found: list = []
            handle = submodule.register_forward_pre_hook(lambda _module, inputs: found.append(inputs))
            split(*self.sample_input)
            handle.remove()
            a = b = found[0]
        return (a, b) if self.settings.accumulate_error else (a, a)

    def _store_outputs(self, a_result: Any, b_result: Any, submodule: GraphModule) -> None:
        value = submodule.graph.output_node().args[0]
        single = isinstance(value, Node)
        for i, node in enumerate([value] if single else value):
            self.a_outputs[node.name] = a_result if single else a_result[i]
            self.b_outputs[node.name] = b_result if single else b_result[i]

    def _run_and_compare(self, split: GraphModule, name: str, output_names: list[str], report_idx: int = -1) -> None:
        """Runs a submodule on both backends.

        Raises:
            FxNetMinimizerRunFuncError: one raised an error.
            FxNetMinimizerResultMismatchError: the results differ.
        """
        submodule = getattr(split, name)
        a_input, b_input = self._inputs_of(split, name)
        if not self.reports:
            self.reports.append([])
            self.iteration = 1
        report = self.reports[report_idx if report_idx >= 0 else self.iteration - 1]
        report.append("Run and compare ...")
        if output_names and not self.settings.all_outputs:
            submodule.graph.erase_node(submodule.graph.output_node())
            nodes = [node for node in submodule.graph.nodes if node.name in output_names]
            submodule.graph.output(nodes[0] if len(nodes) == 1 else tuple(nodes))
            submodule.graph.lint()
            submodule.recompile()
        key: Any = map_arg(submodule.graph.output_node().args, lambda node: node.name)
        try:
            a_result, b_result = self.run_a(submodule, a_input, report_idx), self.run_b(submodule, b_input, report_idx)
            self._store_outputs(a_result, b_result, submodule)
        except Exception as e:
            report.append(f"Exception raised when running {name}: {e}")
            raise FxNetMinimizerRunFuncError(f"Exception raised when running {name}: {e}") from e
        names = output_names if output_names is not None else [str(v) for v in key]
        number, same = self.compare_fn(a_result, b_result, names)
        self.results[key] = number
        report.append(f"Numerical accuracy = {number}")
        if same:
            return
        report.append(f"Result mismatch for {key}")
        if self.module_exporter:
            last = key[-1]
            text = str(last[0]) if isinstance(last, tuple) else last
            self.module_exporter(a_input, submodule, f"{text}_cpu")
            self.module_exporter(b_input, submodule, f"{text}_acc")
        raise FxNetMinimizerResultMismatchError(f"Result mismatch for {key}")

    def _fails(self, nodes: NodeSet, output_names: list[str], report_idx: int = -1) -> Exception | None:
        """The error of running the nodes as one submodule, or None."""
        try:
            self._run_and_compare(*self._build_submodule(nodes), output_names, report_idx)
        except _FAILURES as e:
            return e
        return None

    def _report(self, *lines: str) -> list[str]:
        """Starts a new section of the report."""
        self.iteration += 1
        self.reports.append(list(lines))
        return self.reports[-1]

    def _excluded(self, nodes: NodeList, first: int = -1, last: int = -1) -> bool:
        """Calls exclusion_fn, which removes nodes from the list. Returns whether the list is empty then."""
        if self.exclusion_fn is not None:
            self.exclusion_fn(nodes, first, last)
        return not nodes

    # -- searches

    def _sequential_traverse(self, nodes: NodeList) -> NodeSet:
        """Runs each node, with those that it cannot be separated from."""
        culprits: NodeSet = set()
        for node in nodes:
            report = self._report(f"Sequential traverse iteration {self.iteration + 1}.", f"Visit node: {node.name}")
            if self._excluded([node]):
                report.append(f"User exclusion : {node.name}")
                error = None
            else:
                group = self.fusions.get(node, {node})
                error = self._fails(group, [node.name])
                if error is not None:
                    wrong = isinstance(error, FxNetMinimizerResultMismatchError)
                    culprits.update({node} if wrong else group)
                    report.append(f"Found culprit from {'numeric' if wrong else 'run'} error: {node}")
            self.print_report(report)
            if culprits and not self.settings.find_all:
                break
        return culprits

    def _binary_traverse(self, nodes: NodeList) -> NodeSet:
        return self._binary_search(nodes, 0, len(nodes))

    def _binary_search(self, all_nodes: NodeList, start: int, end: int) -> NodeSet:
        """Runs a range of nodes; if it fails, its halves."""
        nodes = all_nodes[start:end]
        if self._excluded(nodes, start, end):
            self.reports.append(["All nodes are excluded by user"])
            return set()
        report = self._report(
            f"Binary search iteration {self.iteration + 1}",
            f"From node index {start}:{nodes[0].name} to {end - 1}:{nodes[-1].name}. "
            f"Size of the interested node list is {len(nodes)}",
        )
        if self._fails(set(nodes), [nodes[-1].name]) is None:
            report.append("No discrepancy found.")
            self.print_report(report)
            return set()
        if len(nodes) == 1:
            report.append(
                f"This is the last node in the sub-module. Search in the current branch is successful with culprit = {set(nodes)}."
            )
            self.print_report(report)
            return set(nodes)
        report.append("Proceed to split and lower the halves of the current sub-module individually.")
        self.print_report(report)
        middle = start + len(nodes) // 2
        culprits = self._binary_search(all_nodes, start, middle)
        if not culprits or self.settings.find_all:
            culprits = culprits | self._binary_search(all_nodes, middle, end)
        if not culprits:
            report.append(
                f"Further split and lowering found no errors. Unable to minimize the submodule with list of nodes: {nodes}"
            )
            self.print_report(report)
        return culprits

    def _accumulate_traverse(self, nodes: NodeList) -> NodeSet:
        """Runs the first node, the first two, and so on."""
        if self.settings.find_all:
            print("'Find All' mode is not supported in accumulate traversal.")
            return set()
        for i, node in enumerate(nodes):
            report = self._report(f"Accumulate traverse iteration {self.iteration + 1}.", f"Add node: {node.name}")
            failed = self._fails(set(nodes[: i + 1]), [node.name]) is not None
            if failed:
                report.append(f"Found culprit {node}")
            self.print_report(report)
            if failed:
                return {node}
        return set()

    def _skip_traverse(self, all_nodes: NodeList, skip_nodes: list[str]) -> NodeSet:
        """Runs the ranges of nodes between those that are skipped."""
        ranges: list[NodeList] = [[]]
        for node in all_nodes:
            if node.name in skip_nodes:
                ranges.append([])
            else:
                ranges[-1].append(node)
        culprits: NodeSet = set()
        for nodes in filter(None, ranges):
            culprits |= self._skip_range(nodes)
        return culprits

    def _skip_range(self, nodes: NodeList) -> NodeSet:
        group = {node for n in nodes for node in self.fusions.get(n, {n})}
        if self.exclusion_fn is not None:
            self.exclusion_fn(nodes, -1, -1)
            group = set(nodes)
        report = self._report(
            f" Nodes block {self.iteration + 1}.",
            f"From node {nodes[0].name} to {nodes[-1].name}. Size of the interested node list is {len(nodes)}",
        )
        error = self._fails(group, [])
        wrong = isinstance(error, FxNetMinimizerResultMismatchError)
        report.append(f"Found culprit from {'numeric' if wrong else 'run'} error: {group}" if error else "No discrepancy found.")
        self.print_report(report)
        return group if error else set()

    def _defined_traverse(self, nodes: NodeList) -> NodeSet:
        """Runs all nodes as one submodule."""
        if self._excluded(nodes):
            self.reports.append(["All nodes are excluded by user"])
            return set()
        report = self._report(f"Defined graph from {nodes[0].name} to {nodes[-1].name}")
        failed = self._fails(set(nodes), [nodes[-1].name]) is not None
        if failed:
            report.append(f"Found culprit {set(nodes)}")
        self.print_report(report)
        return set(nodes) if failed else set()

    def _block_traverse(self, nodes: NodeList, find_last_node: bool | None) -> NodeSet:
        """Finds the smallest range that fails: the first end of a failing prefix, the last start of a failing suffix.

        Args:
            find_last_node: True searches for the end only, False for the start only, None for both.
        """
        first, last = 0, len(nodes) - 1
        if find_last_node is not False:
            found = self._block_search(nodes, 0, last, True)
            if found is None:
                return set()
            last = found
        if not find_last_node:
            found = self._block_search(nodes[: last + 1], 0, last, False)
            if found is None:
                return set()
            first = found
        report = [f"Finish searching, found minimum block ({nodes[first]},{nodes[last]})"]
        self.reports.append(report)
        self.print_report(report)
        return set(nodes[first : last + 1])

    def _block_search(self, nodes: NodeList, start: int, end: int, find_last: bool) -> int | None:
        """The shortest failing prefix's last index, or the shortest failing suffix's first index; None if all succeed."""
        while True:
            middle = (start + end) // 2 if find_last else (start + end + 1) // 2
            block = nodes[: middle + 1] if find_last else nodes[middle:]
            if self._excluded(block):
                return None
            report = self._report(
                f"Block search iteration {self.iteration + 1}",
                f"Search for {'last' if find_last else 'first'} node in culprits",
                f"Subgraph constructed by {block[0].name} to {block[-1].name}",
            )
            failed = self._fails(set(block), [block[-1].name], len(self.reports) - 1) is not None
            report.append(f"{'Culprits' if failed else 'No culprits'} found from {block[0].name} to {block[-1].name}.")
            self.print_report(report)
            if start == end:
                return middle if failed else None
            if find_last:
                start, end = (start, middle) if failed else (middle + 1, end)
            else:
                start, end = (middle, end) if failed else (start, middle - 1)

    # -- entry points

    def _collect_nodes(self, start: str | None, end: str | None) -> NodeList:
        """The calls from one name to another, both included."""
        nodes: NodeList = []
        started = start is None
        for node in self.module.graph.nodes:
            if node.op not in CALLABLE_NODE_OPS:
                continue
            started = started or node.name == start
            if started:
                nodes.append(node)
            if node.name == end:
                break
        return nodes

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs a range of nodes as one submodule on both backends; prints the error if it fails."""
        nodes = self._collect_nodes(start, end)
        group = {node for n in nodes for node in {n, *self.fusions.get(n, ())}}
        error = self._fails(group, [node.name for node in nodes] if self.settings.return_intermediate else [])
        if error is not None:
            print(error)

    def print_report(self, report: list[str]) -> None:
        """Prints a report."""
        for i, line in enumerate(report):
            print(line if i == 0 else f" . {line}")

    def print_reports(self) -> None:
        """Prints all reports."""
        for report in self.reports:
            self.print_report(report)

    def minimize(
        self,
        start: str | None = None,
        end: str | None = None,
        skip_nodes: list[str] | None = None,
        find_last_node: bool | None = None,
    ) -> NodeSet:
        """Searches for the nodes that make the results differ.

        Args:
            start, end: names of the first and last node to search.
            skip_nodes: names that the method "skip" leaves out.
            find_last_node: what the method "block" searches for.

        Returns:
            The culprits.
        """
        print(self.settings)
        print(self.module.graph)
        nodes, method = self._collect_nodes(start, end), self.settings.traverse_method
        if method == "skip":
            if skip_nodes is None:
                raise RuntimeError("'skip_nodes' can't be None when 'traverse_method' is 'skip'.")
            return self._skip_traverse(nodes, skip_nodes)
        if method == "block":
            return self._block_traverse(nodes, find_last_node)
        if method not in ("sequential", "binary", "accumulate", "defined"):
            raise RuntimeError(f"Unknown traverse method {method}!")
        return getattr(self, f"_{method}_traverse")(nodes)
