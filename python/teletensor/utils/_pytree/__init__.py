"""torch.utils._pytree: nested containers as trees of leaves.

    leaves, spec = tree_flatten({"a": [1, 2], "b": 3})
    spec.unflatten(x * 2 for x in leaves)  # {"a": [2, 4], "b": 6}
"""

from ..._lazy import lazy_attributes
from ._builtins import (
    _defaultdict_flatten, _defaultdict_flatten_with_keys, _defaultdict_unflatten, _deque_flatten, _deque_flatten_with_keys,
    _deque_unflatten, _dict_flatten, _dict_flatten_with_keys, _dict_unflatten, _list_flatten, _list_flatten_with_keys, _list_unflatten,
    _namedtuple_flatten, _namedtuple_flatten_with_keys, _namedtuple_unflatten, _ordereddict_flatten, _ordereddict_flatten_with_keys,
    _ordereddict_unflatten, _register_namedtuple, _tuple_flatten, _tuple_flatten_with_keys, _tuple_unflatten, register_all,
)
from ._registry import (
    BUILTIN_TYPES, CONSTANT_NODES, NO_SERIALIZED_TYPE_NAME_FOUND, SERIALIZED_TYPE_TO_PYTHON_TYPE, STANDARD_DICT_TYPES,
    SUPPORTED_NODES, SUPPORTED_SERIALIZED_TYPES, ConstantNode, Context, DumpableContext, FlattenFn, FlattenFunc,
    FlattenWithKeysFn, FlattenWithKeysFunc, FromDumpableContextFn, GetAttrKey, KeyPath, MappingKey, NodeDef, PyTree, SequenceKey,
    ToDumpableContextFn, UnflattenFn, UnflattenFunc, _deregister_pytree_node, _private_register_pytree_node,
    _register_pytree_node, is_constant_class, is_namedtuple, is_namedtuple_class, is_namedtuple_instance, is_structseq,
    is_structseq_class, is_structseq_instance, register_constant, register_dataclass, register_pytree_node,
)
from ._registry import node_type as _get_node_type
from ._tree import (
    _broadcast_to_and_flatten, arg_tree_leaves, key_get, keystr, map_only, tree_all, tree_all_only, tree_any, tree_any_only,
    tree_flatten, tree_flatten_with_path, tree_is_leaf, tree_iter, tree_leaves, tree_leaves_with_path, tree_map, tree_map_,
    tree_map_only, tree_map_only_, tree_map_with_path, tree_structure, tree_unflatten,
)
from ._treespec import _LEAF_SPEC, LeafSpec, PyTreeSpec, TreeSpec, treespec_dict, treespec_leaf, treespec_tuple

_is_leaf, _is_namedtuple_instance = tree_is_leaf, is_namedtuple_instance
register_all()
# Programs that store no structures need no JSON.
__getattr__, __dir__ = lazy_attributes(
    globals(),
    (),
    {
        "_json": "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL EnumEncoder enum_object_hook pytree_to_str str_to_pytree treespec_dumps "
        "treespec_loads treespec_pprint"
    },
)

__all__ = [  # noqa: F822 - imported at their first use
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
    "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_pytree_node", "tree_all",
    "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip
