"""local_map, register_sharding, CommDebugMode and visualize_sharding."""

from __future__ import annotations

from . import dtensor_tool_cases as cases


def test_local_map(ranks):
    for result in ranks.run(2, cases.mapped):
        errors = result.pop("errors")
        assert result.pop("difference") < 1e-5 and result.pop("gradient") < 1e-4 and all(result.values()), result
        assert errors[0].startswith("ValueError: arg DTensor") and "redistribute_inputs=True" in errors[0]
        assert errors[1:] == [
            "AssertionError: in_placements length 2 does not match the number of input args 1!",
            "AssertionError: Non-tensor output 1 expects None placements but received [Shard(dim=0)]!",
        ]


def test_modes_and_handlers_receive_dtensors(ranks):
    names = ["add.Tensor", "slice.Tensor", "unsqueeze.default", "transpose.int", "sum.default", "max.dim", "index.Tensor", "neg.default",
             "detach.default", "clone.default", "mul_.Tensor"]  # fmt: skip
    for result in ranks.run(2, cases.dispatched):
        assert [call for call in result["calls"] if call[1]] == [[f"aten.{name}", ["DTensor"]] for name in names]
        assert all(result["values"]) and result["placements"] == ["(Replicate(),)", "(Shard(dim=0),)"]


def test_registered_placements(ranks):
    for result in ranks.run(2, cases.registered):
        assert {k: v[0] for k, v in result.items()} == {"S(0)": "S(0)", "S(1)": "P(sum)", "R": "R"}
        assert all(v[1] == v[2] == 0 for v in result.values()), result


def test_counts_of_collectives(ranks):
    first, second = ranks.run(2, cases.counted)
    text = first.pop("text")
    assert second.pop("text") == "" and "cpu:0" in text and "Row 2-3" in text and "Col 0-2" in text
    assert first == second
    assert first.pop("placements") == {
        "FeedForward.up.weight": "(Shard(dim=0),)", "FeedForward.down.weight": "(Shard(dim=1),)",
    }  # fmt: skip
    assert first == {
        "parallel": {"c10d_functional.all_reduce": 2},
        "gather": {"c10d_functional.all_gather_into_tensor": 1},
        "scatter": {"c10d_functional.reduce_scatter_tensor": 1},
        "exchange": {"c10d_functional.all_to_all_single": 1},
        "plain": {"c10d.allreduce_": 1, "c10d.broadcast_": 1},
        "many": {"c10d_functional.reduce_scatter_tensor": 100},
        "none": {},
    }


TABLE = """\
Global
  FORWARD PASS
    *c10d_functional.all_reduce: 1
  BACKWARD PASS
    *c10d_functional.all_reduce: 1
    Twice
      FORWARD PASS
        *c10d_functional.all_reduce: 1
      BACKWARD PASS
        *c10d_functional.all_reduce: 1
        Twice.body
          FORWARD PASS
            *c10d_functional.all_reduce: 1
          BACKWARD PASS
            *c10d_functional.all_reduce: 1
            Twice.body.up
              BACKWARD PASS
                *c10d_functional.all_reduce: 1
            Twice.body.down
              FORWARD PASS
                *c10d_functional.all_reduce: 1
        Twice.norm
"""  # PyTorch's


def test_collectives_by_module(ranks):
    for result in ranks.run(2, cases.traced):
        assert result["table"] == TABLE
        lines = result["operations"].splitlines()
        assert "    Twice" in lines and "            *module type: class 'teletensor.nn.modules.linear.Linear'" in lines
        down = lines[lines.index("            Twice.body.down") :]
        assert down[2:4] == ["            *Parameter List", "             *weight: (Shard(dim=1),)"]
        assert down[4:6] == ["              FORWARD PASS", "                *c10d_functional.all_reduce: 1"]
        product = down[down.index("                **aten.linear") + 1 :]
        assert product[0] == "                  shape: [torch.Size([3, 8]), torch.Size([4, 8])]"
        assert product[1] == "                  sharding: [(Shard(dim=1),), (Shard(dim=1),)]" and "device mesh: DeviceMesh(" in product[2]
        assert "\033" not in result["operations"] and "\033[1;33m" in result["coloured"]

        tree = result["json"]
        assert list(tree) == [
            "fqn", "module_type", "parameters", "children", "collectives_forward", "operations_forward", "collectives_backward",
            "operations_backward", "operations_checkpointing",
        ]  # fmt: skip
        assert tree["fqn"] == "Global" and tree["collectives_backward"] == [["c10d_functional.all_reduce", 1]]
        (root,) = tree["children"]
        body, norm = root["children"]
        assert [child["fqn"] for child in body["children"]] == ["Twice.body.up", "Twice.body.down"]
        assert body["children"][1]["parameters"] == [["weight", "(Shard(dim=1),)"]] and root["module_type"].endswith(".Twice'")
        names = [op["name"] for op in body["children"][1]["operations_forward"]]
        assert names.index("aten.linear") < names.index("c10d_functional.all_reduce")
        assert [op["name"] for op in norm["operations_forward"]][0].startswith("aten.layer_norm")
        assert body["children"][0]["collectives_backward"] == [["c10d_functional.all_reduce", 1]]
        backward = [op for part in (tree, root, body, *body["children"], norm) for op in part["operations_backward"]]
        assert all(op["is_bw"] for op in backward) and len(backward) > 5
        assert result["levels"] == sorted(result["levels"]) and result["levels"][0] == 0 < result["levels"][1] < result["levels"][3]
        assert result["sums"] == {"forward": {"reduce_scatter_tensor": 2}, "backward": {"all_reduce": 1}}


def test_functions_that_are_computed_from_others(ranks):
    assert ranks.run(2, cases.factored) == [[], []]
