"""Validates a bill of materials with cyclonedx-python-lib, and compares it with a folder of licences. Run by check.sh."""

import json
import sys
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
errors = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if errors:
    raise SystemExit(f"check_sbom.py: expected CycloneDX 1.5 in {sys.argv[1]}: {errors}")
document = json.loads(text)
bill = Bom.from_json(document)
bill.validate()


def used(use: str) -> set[str]:
    """The names of the packages that are listed for a reason."""
    value = {"name": "teletensor:use", "value": use}
    return {component["name"] for component in document["components"] if value in component["properties"]}


missing = {"libgrpc29", "libssl3"} - used("loaded") | {"libstdc++-12-dev"} - used("compiled")
if missing:
    raise SystemExit(f"check_sbom.py: expected {missing} in {sys.argv[1]}")
if len(sys.argv) > 2:
    copied = {file.name for file in Path(sys.argv[2]).iterdir()}
    if copied != {name for name in used("compiled") if (Path("/usr/share/doc") / name / "copyright").exists()}:
        raise SystemExit(f"check_sbom.py: expected the licences of {used('compiled')} in {sys.argv[2]}, got {copied}")
print(f"bill: {len(bill.components)} packages, {len(used('loaded'))} loaded, {len(used('compiled'))} compiled in")
