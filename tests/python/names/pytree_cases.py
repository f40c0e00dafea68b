"""torch.utils._pytree."""

import dataclasses
import enum
import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

from .record import error

Pair = namedtuple("Pair", ["first", "second"])
Color = enum.Enum("Color", ["RED", "BLUE"])


def trees():
    """Trees of all registered containers."""
    return [
        1,
        None,
        (),
        [],
        {},
        [1, (2, [3, None])],
        {"b": [1, (2, 3)], "a": {"c": 4}},
        OrderedDict([("y", 1), ("x", (2,))]),
        defaultdict(list, {"k": [1, 2]}),
        deque([1, [2]], maxlen=3),
        Pair(1, (2, Pair(3, 4))),
        time.gmtime(0),
        range(3),
        {1, 2},
    ]


def case_flatten_unflatten(torch):
    p = torch.utils._pytree
    rows = []
    for tree in trees():
        leaves, spec = p.tree_flatten(tree)
        back = p.tree_unflatten(leaves, spec)
        rows.append(
            [
                str(leaves),
                repr(spec),
                p.treespec_pprint(spec),
                str(back),
                str(type(back)),
                spec.num_leaves,
                spec.num_nodes,
                spec.num_children,
                spec.is_leaf(),
                back == tree,
                p.tree_structure(tree) == spec,
                p.tree_leaves(tree) == leaves,
                p.tree_is_leaf(tree),
                pickle.loads(pickle.dumps(spec)) == spec,
            ]
        )
    return rows


def case_paths(torch):
    p = torch.utils._pytree
    rows = []
    for tree in trees():
        pairs, spec = p.tree_flatten_with_path(tree)
        rows.append([[(p.keystr(path), str(leaf)) for path, leaf in pairs], str(pairs), repr(spec)])
        assert all(p.key_get(tree, path) is leaf for path, leaf in pairs)
        rows.append(str(p.tree_map_with_path(lambda path, x, y: (p.keystr(path), x is y), tree, tree)))
    return rows


def case_json(torch):
    p = torch.utils._pytree
    rows = []
    for tree in trees():
        spec = p.tree_structure(tree)
        if "namedtuple" in repr(spec):
            rows.append(error(p.treespec_dumps, spec).partition(":")[0])
            continue
        text = p.treespec_dumps(spec)
        rows.append([text, p.treespec_loads(text) == spec])
    keyed = p.treespec_dumps(p.tree_structure({Color.RED: 1}))
    return [
        *rows,
        keyed,
        p.treespec_loads(keyed) == p.tree_structure({Color.RED: 1}),
        error(p.treespec_dumps, 1),
        error(p.treespec_loads, "[2, {}]"),
    ]


def case_maps(torch):
    p = torch.utils._pytree
    tree, seen = {"a": [1, 2.5], "b": ("x", None)}, []
    return [
        p.tree_map(lambda x, y: (x, y), tree, {"b": ((1, 2), [3]), "a": [4, 5]}),
        p.tree_map(str, tree, is_leaf=lambda x: isinstance(x, tuple)),
        p.tree_map_only(int, lambda x: x + 1, tree),
        p.tree_map_only((int, str), lambda x: x * 2, tree),
        p.tree_map_only(lambda x: x is None, lambda x: "none", tree),
        p.tree_map_(seen.append, tree) is tree,
        seen,
        p.tree_map_only_(int, seen.append, tree) is tree,
        seen,
        p.tree_all(lambda x: x != 3, tree),
        p.tree_any(lambda x: x == 3, tree),
        p.tree_all_only(int, lambda x: x == 1, tree),
        p.tree_any_only(int, lambda x: x == 7, tree),
        list(p.tree_iter(tree)),
        p.arg_tree_leaves(1, [2, 3], k=(4,)),
        p._broadcast_to_and_flatten((0, [1, 2]), p.tree_structure(([7, 8], [9, (1, 2)]))),
        p._broadcast_to_and_flatten((0, 1, 2), p.tree_structure(([7, 8], [9, (1, 2)]))),
        p.tree_structure({"a": 1, "b": 2}) == p.tree_structure({"b": 2, "a": 1}),
        p.treespec_tuple([p.treespec_leaf()] * 2) == p.tree_structure((1, 2)),
        repr(p.treespec_dict(x=p.treespec_leaf())),
    ]


def case_errors(torch):
    p = torch.utils._pytree
    spec = p.tree_structure([1, {"a": 2}])
    up_to = [[1], (1, {"a": 2}), [1, {"b": 2}], [1, [2]], [1, OrderedDict(a=3)], [1, {"a": [5]}]]
    return [
        error(p.tree_unflatten, [1], spec),
        error(p.tree_unflatten, [1], 2),
        *[error(spec.flatten_up_to, tree) for tree in up_to],
        error(p.tree_map, lambda *x: x, Pair(1, 2), (1, 2)),
        error(p.register_pytree_node, list, None, None),
        error(p.tree_map_only, 3, str, [1]),
        error(p.register_dataclass, int),
        error(p.treespec_tuple, [1]),
        error(p.register_constant, type("Plain", (), {})),
    ]


def case_registration(torch):
    p = torch.utils._pytree

    class Bag:
        def __init__(self, items, label):
            self.items, self.label = items, label

    @dataclasses.dataclass
    class Point:
        x: object
        y: object = None

    @dataclasses.dataclass(frozen=True)
    class Config:
        norm: str

    rows = [p.tree_is_leaf(Bag([1], "l"))]
    p.register_pytree_node(
        Bag, lambda b: (b.items, b.label), lambda items, label: Bag(list(items), label), serialized_type_name="tests.Bag"
    )
    leaves, spec = p.tree_flatten([Bag([1, (2, 3)], "l")])
    back = spec.unflatten([5, 6, 7])
    rows += [
        leaves,
        repr(spec),
        back[0].items,
        back[0].label,
        p.treespec_dumps(spec),
        error(p.tree_flatten_with_path, [Bag([1], "l")])[:40],
        error(spec.flatten_up_to, [Bag([1, 2], "other")]).partition("<")[0],
    ]
    p.register_dataclass(Point)
    rows += [str(p.tree_map(lambda x: x + 1, Point(1))).rpartition(".")[2], p.tree_leaves(Point(1, [2, 3]))]
    p.register_constant(Config)
    rows += [
        p.tree_leaves([Config("l2"), 4]),
        p.tree_map(lambda x: x, [Config("l2")]) == [Config("l2")],
        p.tree_structure(Config("a")) == p.tree_structure(Config("b")),
    ]
    p._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    text = p.treespec_dumps(p.tree_structure(Pair(1, 2)))
    rows += [text, p.treespec_loads(text) == p.tree_structure(Pair(1, 2))]
    for cls in (Bag, Pair):
        p._deregister_pytree_node(cls)
    return [*rows, p.tree_is_leaf(Bag([1], "l"))]


def case_kinds(torch):
    p = torch.utils._pytree
    things = [Pair, Pair(1, 2), (1,), tuple, time.gmtime(0), time.struct_time, 3]
    return [
        [
            p.is_namedtuple(x),
            p.is_namedtuple_class(x),
            p.is_namedtuple_instance(x),
            p.is_structseq(x),
            p.is_structseq_class(x),
            p.is_structseq_instance(x),
        ]
        for x in things
    ]
