#!/usr/bin/env bash
# Submits the batch scripts of this folder to a Slurm cluster of two nodes on this machine, and checks what the ranks print.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export PYTHON=${PYTHON:-$(readlink -f "$here/../..")/.venv/bin/python}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"

"$here/two_nodes.sh" bash -euo pipefail -c "
  sbatch --quiet --wait --nodes=2 --ntasks-per-node=1 --output=train.out '$here/train.sbatch' '$here/../cluster/report_rank.py'
  # Both daemons are on one host, so the store's host is this one and not n1.
  STORE_HOST=127.0.0.1 RANKS=2 sbatch --quiet --wait --nodes=2 --output=launch.out '$here/launch.sbatch' --no-python \
    sh -c 'echo \$SLURMD_NODENAME rank \$RANK of \$WORLD_SIZE'
  # A rank that fails ends the job, with its exit code.
  STORE_HOST=127.0.0.1 sbatch --quiet --wait --nodes=2 --output=failed.out '$here/launch.sbatch' --no-python sh -c 'exit 7' && exit 1
  scontrol show job | grep -E 'JobId|ExitCode' >jobs.out
" || { tail -n 30 ./*.out >&2; exit 1; }
cat ./*.out
python3 - <<'PYTHON'
import json
import re

ranks = [json.loads(line.partition(": ")[2]) for line in open("train.out")]
ranks.sort(key=lambda rank: rank["rank"])
assert [(r["rank"], r["world_size"], r["local_rank"], r["local_world_size"]) for r in ranks] == [(0, 2, 0, 1), (1, 2, 0, 1)], ranks
assert [r["node"] for r in ranks] == ["n1", "n2"] and {r["master_addr"] for r in ranks} == {"n1"}, ranks
assert len({(r["master_port"], r["run_id"]) for r in ranks}) == 1, ranks
lines = sorted(line.strip() for line in open("launch.out") if line.startswith("["))
assert [re.sub(r" n\d", "", line) for line in lines] == [f"[{k}] rank {k} of 4" for k in range(4)], lines
assert len({re.search(r" n\d", line)[0] for line in lines}) == 2, lines
assert "ExitCode=7:0" in open("jobs.out").read()
PYTHON
echo "slurm: passed"
