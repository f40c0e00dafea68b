#!/usr/bin/env bash
# Runs run.sh with two ranks on this machine, and checks what the ranks print.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export PYTHON=${PYTHON:-$(readlink -f "$here/../..")/.venv/bin/python}
. "$here/../common.sh"
require_programs openmpi-bin mpirun
out=$(mktemp)
trap 'rm -f "$out"' EXIT

"$here/run.sh" -n 2 --oversubscribe -- "$here/../cluster/report_rank.py" | tee "$out"
python3 - "$out" <<'PYTHON'
import json
import re
import sys

ranks = sorted((json.loads(line[line.index("{") :]) for line in open(sys.argv[1])), key=lambda rank: rank["rank"])
assert [(r["rank"], r["world_size"], r["local_rank"], r["local_world_size"]) for r in ranks] == [(0, 2, 0, 2), (1, 2, 1, 2)], ranks
assert {r["launcher"] for r in ranks} == {"openmpi"} and {r["master_addr"] for r in ranks} == {"127.0.0.1"}, ranks
assert len({(r["master_port"], r["run_id"]) for r in ranks}) == 1 and not re.search(r"-0$", ranks[0]["run_id"]), ranks
PYTHON
echo "mpi: passed"
