"""DeviceMesh with one process per rank."""

from __future__ import annotations

from . import mesh_cases as cases


def test_mesh_of_two_dimensions(ranks):
    results = ranks.run(4, cases.two_dimensions)
    assert [r["dp"] for r in results] == [2.0, 4.0, 2.0, 4.0]
    assert [r["tp"] for r in results] == [1.0, 1.0, 5.0, 5.0]
    assert [r["flat"] for r in results] == [6.0] * 4
    assert [r["coordinate"] for r in results] == [r["local"] for r in results] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert [r["ranks"] for r in results] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert all("2 dimensions" in r["message"] for r in results)


def test_mesh_of_some_ranks(ranks):
    results = ranks.run(4, cases.other_meshes)
    assert [r["coordinate"] for r in results] == [[1], None, [0], None]
    assert [r["sum"] for r in results] == [2.0, None, 2.0, None]
    assert [r["whole"] for r in results] == [6.0] * 4
    assert [m[:30] for m in results[0]["messages"]] == [
        "mesh_shape and mesh_dim_names ", "Each mesh_dim_name must be uni", "Mesh should not be bigger than",
    ]  # fmt: skip
