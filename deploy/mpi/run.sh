#!/usr/bin/env bash
# Runs a training script with Open MPI, one rank per slot:
#   deploy/mpi/run.sh -n 8 --host a:4,b:4 -- train.py --epochs 3
# init_process_group() reads the rank and the world size from mpirun's variables. MASTER_ADDR is the host of rank 0; it
# must be set if the ranks are on several hosts.
set -euo pipefail
options=()
while (($# > 0)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
(($# > 1)) || { echo "usage: run.sh [MPIRUN OPTION]... -- SCRIPT [ARGUMENT]..." >&2; exit 2; }
shift

export TELETENSOR_GROUP_TOKEN=${TELETENSOR_GROUP_TOKEN:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
pass=(-x TELETENSOR_GROUP_TOKEN)
for name in MASTER_ADDR MASTER_PORT TELETENSOR_THREADS OMP_NUM_THREADS PYTHONPATH; do
  [[ -n "${!name:-}" ]] && pass+=(-x "$name")
done
((EUID == 0)) && options+=(--allow-run-as-root)
exec mpirun --tag-output "${pass[@]}" "${options[@]}" "${PYTHON:-python3}" -u "$@"
