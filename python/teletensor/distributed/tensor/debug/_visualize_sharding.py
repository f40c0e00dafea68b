"""visualize_sharding: prints which rank has which part of a DTensor."""

from __future__ import annotations

import importlib.util
import itertools

from .._dtensor import DTensor
from .._spec import Spec, part
from ..placement_types import Shard

__all__ = ["visualize_sharding"]

Range = tuple[int, int]  # the first and the last index
Block = tuple[Range, Range, int]  # rows, columns, rank


def _box(spec: Spec, size: tuple[int, ...], position: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The offsets and sizes of the part at a position of the mesh."""
    sizes, offsets = list(size), [0] * len(size)
    for m, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            start, sizes[placement.dim] = part(sizes[placement.dim], spec.mesh.shape[m], position[m])
            offsets[placement.dim] += start
    return offsets, sizes


def _blocks(tensor: DTensor) -> list[Block]:
    mesh, size = tensor.device_mesh, tuple(tensor.shape)
    ranks = mesh.mesh.flatten().tolist()
    found = []
    for rank, position in zip(ranks, itertools.product(*map(range, mesh.shape)), strict=True):
        offsets, sizes = _box(tensor._spec, size, position)
        rows, columns = ((o, o + n - 1) for o, n in zip([*offsets, 0][:2], [*sizes, 1][:2], strict=True))
        found.append((rows, columns, rank))
    return found


def _table(blocks: list[Block], device: str) -> tuple[list[str], list[str], list[list[str]]]:
    """The labels of columns and rows, and the text of each cell."""
    rows, columns = sorted({b[0] for b in blocks}), sorted({b[1] for b in blocks})
    cells = [[[str(rank) for r, c, rank in blocks if (r, c) == (row, column)] for column in columns] for row in rows]
    text = [[f"{device}:{','.join(ranks)}" if ranks else "" for ranks in line] for line in cells]
    return [f"Col {a}-{b}" for a, b in columns], [f"Row {a}-{b}" for a, b in rows], text


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Prints, on the first rank of the mesh, which rank has which rows and columns. For one and two dimensions.

    Args:
        use_rich: prints a table of the package `rich`, if it is installed, instead of one of `tabulate`.

    Raises:
        RuntimeError: the tensor has more dimensions.
        ValueError: neither package is installed.
    """
    if dtensor.numel() == 0:
        return
    if dtensor.dim() >= 3:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    if len(mesh._members()) == 0 or any(mesh._members()[0].coordinate):
        return
    columns, rows, cells = _table(_blocks(dtensor), mesh.device_type)
    if use_rich and importlib.util.find_spec("rich"):
        from rich.console import Console
        from rich.table import Table

        table = Table("", *columns, title=header or None)
        for label, line in zip(rows, cells, strict=True):
            table.add_row(label, *line)
        Console(width=80).print(table, end="\n\n")
    elif importlib.util.find_spec("tabulate"):
        from tabulate import tabulate

        print(tabulate(cells, headers=columns, showindex=rows))
    else:
        raise ValueError("`visualize_sharding` requires either `rich` or `tabulate`.")
