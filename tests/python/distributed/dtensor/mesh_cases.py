"""Device meshes. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor.distributed.tensor import DeviceMesh, init_device_mesh


def _sum(group) -> float:
    t = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(t, group=group)
    return t.item()


def two_dimensions(rank: int, size: int) -> dict:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.size() == 4 and mesh.size(1) == 2
    assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh == DeviceMesh.from_group(
        mesh.get_all_groups(), "cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp")
    )
    tp = mesh["tp"]
    assert tp.get_group() is mesh.get_group("tp") and mesh["dp", "tp"] is mesh
    assert mesh["tp", "dp"].mesh.tolist() == [[0, 2], [1, 3]]
    flat = mesh._flatten("all")
    assert mesh.mesh.dtype == torch.int32
    assert [repr(m) for m in (mesh, tp, mesh["dp"], mesh["tp", "dp"], flat)] == [
        "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))",
        "DeviceMesh((tp=2), 'cpu', stride=(1,))",
        "DeviceMesh((dp=2), 'cpu', stride=(2,))",
        "DeviceMesh((tp=2, dp=2), 'cpu', stride=(1, 2))",
        "DeviceMesh((all=4), 'cpu', stride=(1,))",
    ]
    try:
        mesh.get_group()
    except RuntimeError as error:
        message = str(error)
    return {
        "dp": _sum(mesh.get_group("dp")),
        "tp": _sum(mesh.get_group(1)),
        "flat": _sum(flat.get_group()),
        "coordinate": mesh.get_coordinate(),
        "local": [mesh.get_local_rank("dp"), mesh.get_local_rank("tp")],
        "ranks": tp.mesh.tolist(),
        "message": message,
    }


def other_meshes(rank: int, size: int) -> dict:
    whole = init_device_mesh("cpu", (size,))
    assert whole.get_group() is dist.group.WORLD
    part = DeviceMesh("cpu", [2, 0])
    messages = []
    for shape, names in (((2, 2), ("a",)), ((2, 2), ("a", "a")), ((8,), None)):
        try:
            init_device_mesh("cpu", shape, mesh_dim_names=names)
        except RuntimeError as error:
            messages.append(str(error))
    return {
        "coordinate": part.get_coordinate(),
        "sum": _sum(part.get_group()) if rank in (0, 2) else None,
        "whole": _sum(whole.get_group()),
        "messages": messages,
    }
