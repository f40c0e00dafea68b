"""Invalid declarations are rejected with file, operator and reason."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from engine.codegen import api, composites, gradients, pointwise, schema
from engine.codegen.declaration import DeclarationError, load

ROOT = Path(__file__).resolve().parents[2]
PROBE = {
    "op": "probe", "id": 1, "sig": "(Tensor input, int dim=0) -> Tensor", "doc": "A probe.", "dtype": "same(input)",
    "shape": "drop(input, dim)", "kernel": "probe", "grad": "none", "ref": "none: a probe", "samples": [[2]],
}  # fmt: skip


def probe(without: str = "", **fields) -> dict:
    """A valid declaration, with the given fields replaced and one omitted."""
    return {name: value for name, value in (PROBE | fields).items() if name != without}


def composite(**fields) -> dict:
    """A second valid declaration, which calls PROBE."""
    entry = probe(op="twice", id=2, composite="probe(input, dim)") | fields
    return {name: value for name, value in entry.items() if name not in ("kernel", "grad")}


def generate(folder: Path, *entries: dict) -> None:
    """Declares the entries in FOLDER/probes.yaml and runs all generators that check them."""
    (folder / "probes.yaml").write_text(yaml.safe_dump(list(entries)))
    operators = load(folder)
    api.emit_header(operators)
    schema.emit_table(operators)
    schema.emit_rules(operators)
    composites.emit_composites(operators, [])
    gradients.emit_gradients(operators, [])
    pointwise.outputs(operators, ROOT / "kernels")


def refusal(folder: Path, *entries: dict) -> str:
    with pytest.raises(DeclarationError) as error:
        generate(folder, *entries)
    return str(error.value)


def test_unchanged_declaration_is_accepted(tmp_path):
    generate(tmp_path, PROBE, composite())


@pytest.mark.parametrize("field", ["id", "sig", "doc", "samples", "grad", "ref"])
def test_required_fields(tmp_path, field):
    assert refusal(tmp_path, probe(without=field)).startswith(f"probes.yaml: probe: needs '{field}'")


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"doc": "  "}, "doc is empty"),
        ({"colour": "blue"}, "unknown field 'colour'"),
        ({"op": "Probe!"}, "invalid operator name: 'Probe!'"),
        ({"out_variant": "soft"}, "'out_variant' requires 'kernel' and must be overwriting or updating or temporary, got 'soft'"),
        ({"out": "any"}, "'out' must be one of cast, exact, typed, got 'any'"),
        ({"session": "all"}, "'session' must be one of none, generator, state, got 'all'"),
        ({"out": "typed"}, "'out: typed' requires a parameter 'dtype'"),
        ({"body": "input"}, "needs exactly one of body, composite, kernel, view, got ['body', 'kernel']"),
        ({"older_orders": ["dim other"]}, "lists 'other' in 'older_orders', which is not a parameter"),
        (
            {"autocast": ["lower", "half"]},
            "'autocast' must be one of none, lower, float32, float32_to_lower, float32_result, widest, refused, or a list of "
            "two for CPUs and GPUs, got ['lower', 'half']",
        ),
        ({"grad": ["input"]}, "only a composite may declare 'grad' as a list; write formulas"),
        ({"grad": {"other": "g"}}, "declares a gradient for 'other', which is not a parameter"),
    ],
)
def test_field_values(tmp_path, fields, cause):
    entry = probe(**fields)
    assert refusal(tmp_path, entry) == f"probes.yaml: {entry['op']}: {cause}"


def test_operator_without_implementation(tmp_path):
    assert refusal(tmp_path, probe(without="kernel")) == (
        "probes.yaml: probe: needs exactly one of body, composite, kernel, view, got none"
    )


@pytest.mark.parametrize(
    ("sig", "cause"),
    [
        ("Tensor input -> Tensor", "expected a signature, got 'Tensor input -> Tensor'"),
        ("(Tensor input) -> int", "expected a signature, got '(Tensor input) -> int'"),
        ("(Tensor) -> Tensor", "expected a parameter, got 'Tensor'"),
        ("(Matrix input) -> Tensor", "unknown type 'Matrix' of parameter input"),
        ("(Tensor input, str[] names) -> Tensor", "unknown type 'str[]' of parameter names"),
        ("(Tensor input, int dim=first) -> Tensor", "default 'first' of dim is not a literal"),
        ("(Tensor input, int dim=1 +) -> Tensor", "default '1 +' of dim is not a literal"),
        ("(Tensor input, int dim=len('x')) -> Tensor", "default \"len('x')\" of dim is not a literal"),
        ("(Tensor input, int dim=None) -> Tensor", "dim defaults to None but is not optional: write int?"),
    ],
)
def test_signatures(tmp_path, sig, cause):
    assert refusal(tmp_path, probe(sig=sig)) == f"probes.yaml: probe: {cause}"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"dtype": ["same(input)", "index()"]}, "has 1 results but 2 dtype and 1 shape rules"),
        ({"shape": []}, "has 1 results but 1 dtype and 0 shape rules"),
        ({"sig": "(Tensor input, int dim) -> (Tensor a, Tensor b)"}, "has 2 results but 1 dtype and 1 shape rules"),
        ({"sig": "(Tensor input, int dim) -> (Tensor input)"}, "results must have other names than parameters, got input"),
        ({"shape": "drop(input, axis)"}, "'axis' in 'drop(input, axis)' is not a parameter"),
        ({"dtype": "same(inputs)"}, "'inputs' in 'same(inputs)' is not a parameter"),
        ({"shape": "drop(input,"}, "expected a rule, got 'drop(input,'"),
        ({"shape": "drop(input + 1)"}, "a rule may contain only calls, parameters and literals, got 'drop(input + 1)'"),
    ],
)
def test_rules(tmp_path, fields, cause):
    assert refusal(tmp_path, probe(**fields)) == f"probes.yaml: probe: {cause}"


@pytest.mark.parametrize(
    ("formula", "cause"),
    [
        ("frobnicate(g)", "'frobnicate' is neither an operator nor a function of formulas"),
        ("g * mystery", "'mystery' is unknown"),
        ("probe(g, dim, 1)", "probe takes 2 arguments, got 3"),
        ("probe(g, axis=1)", "probe has no parameter 'axis', or it is given twice"),
        ("probe(dim=1)", "probe requires the argument 'input'"),
        ("g.strides", "a tensor has sizes, dtype, dim, numel, device, not 'strides'"),
        ("[g, g]", "the gradient of 'input' must be a tensor, not Tensors"),
        ("probe(g, input)", "expected int, got b.tensor(0) of type Tensor"),
    ],
)
def test_gradients(tmp_path, formula, cause):
    said = refusal(tmp_path, probe(grad={"input": formula}))
    assert said.startswith("probes.yaml: probe: ")
    assert cause in said
    assert said.endswith(f"in {formula!r}")


@pytest.mark.parametrize(
    ("formula", "cause"),
    [
        ("frobnicate(input)", "'frobnicate' is neither an operator nor a function of composites"),
        ("probe(input, axis)", "'axis' is unknown"),
        ("dim", "a composite must return tensors, not int"),
        ("probe(input) if input else input", "expected bool, got input of type Tensor"),
        ("lambda: input", "'lambda: input' is not supported"),
    ],
)
def test_composites(tmp_path, formula, cause):
    assert refusal(tmp_path, PROBE, composite(composite=formula)) == f"probes.yaml: twice: {cause}, in {formula!r}"


def test_duplicate_id(tmp_path):
    assert refusal(tmp_path, PROBE, probe(op="other")) == "probes.yaml: other: id 1 is already used by probe"


def test_duplicate_name(tmp_path):
    assert refusal(tmp_path, PROBE, probe(id=2)) == "probes.yaml: probe is declared twice"


def test_duplicate_id_in_another_file(tmp_path):
    (tmp_path / "elsewhere.yaml").write_text(yaml.safe_dump([probe(op="other")]))
    assert refusal(tmp_path, PROBE) == "probes.yaml: probe: id 1 is already used by other"


def test_retired_id(tmp_path):
    (tmp_path / "retired.yaml").write_text(yaml.safe_dump([{"id": 1, "op": "old_probe"}]))
    assert refusal(tmp_path, PROBE) == "probes.yaml: probe: id 1 is retired; old_probe used it"
    generate(tmp_path, probe(id=2))


def test_no_retired_ids(tmp_path):
    (tmp_path / "retired.yaml").write_text("# The ids of removed operators.\n")
    generate(tmp_path, PROBE)


def test_command_reports_the_error_and_writes_nothing(tmp_path):
    ops, out = tmp_path / "ops", tmp_path / "generated"
    shutil.copytree(ROOT / "engine/ops", ops)
    (ops / "zz_probes.yaml").write_text(yaml.safe_dump([probe(id=3999, shape="drop(input, axis)")]))
    command = [sys.executable, "-m", "engine.codegen", "--ops", str(ops), "--kernels", "kernels", "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "generate: zz_probes.yaml: probe: 'axis' in 'drop(input, axis)' is not a parameter\n"
    assert not out.exists()
