"""Ensembles of trees: every row descends all trees, a level per step, in the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .. import _values
from .._call import Call
from .scores import transformed

Tensor = torch.Tensor
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_DEEPEST = 4096
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class _Forest:
    """Trees as arrays over nodes. A leaf refers to itself."""

    def __init__(self, size: int) -> None:
        self.feature = np.zeros(size, np.int64)
        self.mode = np.zeros(size, np.int64)
        self.value = np.zeros(size, np.float64)
        self.then = np.arange(size)
        self.other = np.arange(size)
        self.missing_is_true = np.zeros(size, bool)
        self.members: dict[int, list[float]] = {}
        self.roots: list[int] = []

    def depth(self) -> int:
        """The number of steps from a root to the deepest leaf.

        Raises:
            ValueError: the nodes form a cycle.
        """
        level, steps = np.unique(self.roots), 0
        while True:
            inner = level[(self.then[level] != level) | (self.other[level] != level)]
            if not inner.size:
                return steps
            level = np.unique(np.concatenate([self.then[inner], self.other[inner]]))
            steps += 1
            if steps > min(len(self.then), _DEEPEST):
                raise ValueError(
                    f"[TreeEnsemble] expected trees of at most {_DEEPEST} levels, got a cycle of nodes or a deeper one"
                )

    def leaves(self, x: Tensor) -> Tensor:
        """The leaf of each row in each tree: (rows, trees)."""

        def put(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(x.device)

        feature, value, then, other = put(self.feature), put(self.value).to(x.dtype), put(self.then), put(self.other)
        mode, missing = put(self.mode), put(self.missing_is_true)
        at = put(np.asarray(self.roots, np.int64)).unsqueeze(0).expand([x.shape[0], len(self.roots)])
        used = sorted({int(m) for m in self.mode[(self.then != np.arange(len(self.then)))]})
        for _ in range(self.depth()):
            seen, bound = torch.gather(x, 1, feature[at]), value[at]
            taken = torch.zeros_like(seen, dtype=torch.bool)
            for kind in used:
                taken = torch.where(mode[at] == kind, self._test(kind, seen, bound, at), taken)
            taken = torch.where(
                torch.isnan(seen), missing[at] | (taken if 6 in used else torch.zeros_like(taken)), taken
            )
            at = torch.where(taken, then[at], other[at])
        return at

    def _test(self, kind: int, seen: Tensor, bound: Tensor, at: Tensor) -> Tensor:
        if kind == 6:
            found = torch.zeros_like(seen, dtype=torch.bool)
            for node, members in self.members.items():
                inside = torch.zeros_like(found)
                for m in members:
                    inside = inside | (torch.isnan(seen) if np.isnan(m) else seen == m)
                found = found | ((at == node) & inside)
            return found
        return (seen <= bound, seen < bound, seen >= bound, seen > bound, seen == bound, seen != bound)[kind]


def _legacy(call: Call) -> tuple[_Forest, dict[tuple[int, int], int]]:
    """The forest of TreeEnsembleClassifier and TreeEnsembleRegressor."""
    trees, nodes = call.need("nodes_treeids"), call.need("nodes_nodeids")
    modes = call.need("nodes_modes")
    values = call.get("nodes_values")
    values = _values.array(call.get("nodes_values_as_tensor")) if values is None else values
    place = {key: i for i, key in enumerate(zip(trees, nodes))}
    forest = _Forest(len(nodes))
    missing = call.get("nodes_missing_value_tracks_true") or [0] * len(nodes)
    features = call.need("nodes_featureids")
    yes, no = call.need("nodes_truenodeids"), call.need("nodes_falsenodeids")
    children = set()
    for i, mode in enumerate(modes):
        if mode == "LEAF":
            continue
        if mode not in _MODES[:6]:
            raise ValueError(f"[{call.name}] expected a mode of {', '.join(_MODES[:6])} or LEAF, got {mode!r}")
        forest.feature[i], forest.value[i], forest.mode[i] = features[i], values[i], _MODES.index(mode)
        forest.then[i], forest.other[i] = place[trees[i], yes[i]], place[trees[i], no[i]]
        forest.missing_is_true[i] = missing[i]
        children |= {forest.then[i], forest.other[i]}
    seen = set()
    for i, tree in enumerate(trees):
        if i not in children and tree not in seen:
            seen.add(tree)
            forest.roots.append(i)
    return forest, place


def _votes(forest: _Forest, x: Tensor, rows: list[tuple[int, int, float]], targets: int, aggregate: str) -> Tensor:
    """The weights of the reached leaves per target: (rows, targets)."""
    _values.bounded(len(forest.then) * targets, "TreeEnsemble", 1 << 26)
    leaves = forest.leaves(x)
    weights = np.zeros((len(forest.then), targets))
    given = np.zeros((len(forest.then), targets), bool)
    for leaf, target, weight in rows:
        weights[leaf, target] += weight
        given[leaf, target] = True
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    table = torch.from_numpy(weights).to(x.device).to(dtype)
    found = table[leaves]  # rows, trees, targets
    if aggregate in ("SUM", "AVERAGE"):
        total = found.sum(1)
        return total / len(forest.roots) if aggregate == "AVERAGE" else total
    edge = float("inf") if aggregate == "MIN" else float("-inf")
    mask = torch.from_numpy(given).to(x.device)[leaves]
    found = torch.where(mask, found, torch.full_like(found, edge))
    return found.amin(1) if aggregate == "MIN" else found.amax(1)


def _weights(call: Call, name: str) -> Any:
    found = call.get(name)
    return _values.array(call.get(f"{name}_as_tensor")).tolist() if found is None else found


def _base(call: Call) -> list[float] | None:
    found = call.get("base_values")
    if found is None and "base_values_as_tensor" in call.attributes:
        found = _values.array(call.get("base_values_as_tensor")).tolist()
    return found or None


def _regressor(call: Call, x: Tensor) -> Tensor:
    x = x if x.dtype.is_floating_point else x.to(torch.float32)
    forest, place = _legacy(call)
    rows = [
        (place[tree, node], target, weight)
        for tree, node, target, weight in zip(
            call.need("target_treeids"),
            call.need("target_nodeids"),
            call.need("target_ids"),
            _weights(call, "target_weights"),
        )
    ]
    found = _votes(forest, x, rows, call.need("n_targets"), call.get("aggregate_function", "SUM"))
    base = _base(call)
    if base is not None:
        found = found + torch.tensor(base, device=x.device, dtype=found.dtype)
    return transformed(found, call.get("post_transform", "NONE")).to(torch.float32)


def _classifier(call: Call, x: Tensor) -> tuple:
    x = x if x.dtype.is_floating_point else x.to(torch.float32)
    forest, place = _legacy(call)
    labels = call.get("classlabels_strings") or call.get("classlabels_int64s")
    ids = call.need("class_ids")
    rows = [
        (place[tree, node], target, weight)
        for tree, node, target, weight in zip(
            call.need("class_treeids"), call.need("class_nodeids"), ids, _weights(call, "class_weights")
        )
    ]
    binary = len(labels) == 2 and len(set(ids)) == 1
    votes = _votes(forest, x, rows, 1 if binary else len(labels), "SUM") if not binary else _votes(
        forest, x, [(leaf, 0, w) for leaf, _, w in rows], 1, "SUM"
    )  # fmt: skip
    base = _base(call)
    if base is not None:
        votes = votes + torch.tensor(base, device=x.device, dtype=votes.dtype)
    post = call.get("post_transform", "NONE")
    if binary:
        if post == "PROBIT":
            raise NotImplementedError("[TreeEnsembleClassifier] PROBIT of one score for two classes is not implemented")
        positive = votes[:, 0]
        limit = 0.5 if post == "NONE" and all(w >= 0 for _, _, w in rows) else 0.0
        chosen = (positive > limit).to(torch.int64)
        votes = torch.stack([1 - positive if limit else -positive, positive], 1)
    else:
        chosen = votes.argmax(1)
    return _labelled(chosen, labels), transformed(votes, post).to(torch.float32)


def _labelled(chosen: Tensor, labels: list) -> Any:
    """The labels of classes; strings are looked up in the client, which waits."""
    if isinstance(labels[0], str):
        return np.asarray(labels, dtype=object)[_values.array(chosen)]
    return torch.tensor(labels, device=chosen.device, dtype=torch.int64)[chosen]


def _ensemble(call: Call, x: Tensor) -> Tensor:
    """TreeEnsemble of version 5: inner nodes and leaves have arrays of their own."""
    splits = _values.array(call.need("nodes_splits"))
    modes = _values.array(call.need("nodes_modes"))
    leaf_weights, targets = _values.array(call.need("leaf_weights")), call.need("leaf_targetids")
    inner, count = len(modes), len(modes) + len(targets)
    forest = _Forest(count)
    forest.feature[:inner], forest.value[:inner], forest.mode[:inner] = call.need("nodes_featureids"), splits, modes
    for array, ids, is_leaf in (
        (forest.then, call.need("nodes_truenodeids"), call.need("nodes_trueleafs")),
        (forest.other, call.need("nodes_falsenodeids"), call.need("nodes_falseleafs")),
    ):
        array[:inner] = [i + inner if leaf else i for i, leaf in zip(ids, is_leaf)]
        if (array < 0).any() or (array >= count).any():
            raise ValueError(f"[TreeEnsemble] expected nodes below {count}")
    missing = call.get("nodes_missing_value_tracks_true")
    if missing:
        forest.missing_is_true[:inner] = missing
    if "membership_values" in call.attributes:
        groups: list[list[float]] = [[]]
        members = _values.array(call.get("membership_values")).tolist()
        wanted = [i for i in range(inner) if modes[i] == 6]
        for m in members:
            if np.isnan(m):
                groups.append([])
            else:
                groups[-1].append(m)
        forest.members = dict(zip(wanted, groups))
    forest.roots = list(call.need("tree_roots"))
    rows = [(inner + i, t, float(w)) for i, (t, w) in enumerate(zip(targets, leaf_weights))]
    found = _votes(forest, x, rows, call.need("n_targets"), _AGGREGATES[call.get("aggregate_function", 1)])
    posts = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return transformed(found, posts[call.get("post_transform", 0)]).to(x.dtype)


TABLE: dict[str, tuple] = {
    "TreeEnsemble": ((5, _ensemble),), "TreeEnsembleRegressor": ((1, _regressor),), "TreeEnsembleClassifier": ((1, _classifier),),
}  # fmt: skip
