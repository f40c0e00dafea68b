#!/usr/bin/env bash
# Runs a command on a Slurm cluster of two nodes, n1 and n2, which are daemons on this machine. Stops it afterwards.
#   deploy/slurm/two_nodes.sh COMMAND...
# Requires root and the packages slurm-wlm and munge. All files are in a temporary folder.
set -euo pipefail
(($# > 0)) || { echo "usage: two_nodes.sh COMMAND..." >&2; exit 2; }
((EUID == 0)) || { echo "two_nodes.sh: run this as root" >&2; exit 1; }
. "$(dirname "$(readlink -f "$0")")/../common.sh"
require_programs "slurm-wlm and munge" slurmctld slurmd munged

folder=$(mktemp -d /tmp/teletensor-slurm-XXXXXX)
pids=()
stop() {
  # Jobs first: a slurmd that ends leaves the steps of its jobs running.
  scancel --quiet --full --signal=KILL --state=RUNNING >/dev/null 2>&1 || true
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  if [[ -n "${munge_folder:-}" ]]; then
    if [[ -f $munge_folder/munged.pid ]]; then
      munged=$(<"$munge_folder/munged.pid")
      kill "$munged" 2>/dev/null || true
      # It writes to its folder until it has ended.
      for _ in $(seq 100); do kill -0 "$munged" 2>/dev/null || break; sleep 0.1; done
    fi
    rm -rf "$munge_folder"
  fi
  rm -rf "$folder"
}
trap stop EXIT

# munged requires that its folders belong to its user, and that no folder above them is writable by a group.
munge_folder=$(mktemp -d /run/teletensor-munge-XXXXXX)
dd if=/dev/urandom of="$munge_folder/key" bs=1024 count=1 status=none
chmod 755 "$munge_folder"
chmod 400 "$munge_folder/key"
chown -R munge: "$munge_folder"
runuser -u munge -- munged --key-file="$munge_folder/key" --socket="$munge_folder/socket" --pid-file="$munge_folder/munged.pid" \
  --log-file="$munge_folder/log" --seed-file="$munge_folder/seed" --force

mkdir -p "$folder"/{state,n1,n2}
host=$(hostname -s)
cores=$(nproc)
cat >"$folder/slurm.conf" <<CONF
ClusterName=teletensor
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17000
AuthType=auth/munge
AuthInfo=socket=$munge_folder/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=n[1-2] Default=YES State=UP MaxTime=INFINITE
CONF
export SLURM_CONF=$folder/slurm.conf

slurmctld -D >"$folder/slurmctld.out" 2>&1 &
pids+=($!)
for node in n1 n2; do
  slurmd -D -N "$node" >"$folder/slurmd-$node.out" 2>&1 &
  pids+=($!)
done
for _ in $(seq 300); do
  [[ $(sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && break
  sleep 0.2
done
if [[ $(sinfo -h -t idle -o %D 2>/dev/null) != 2 ]]; then
  echo "two_nodes.sh: the nodes are not ready" >&2
  tail -n 20 "$folder"/*.log "$folder"/*.out >&2
  exit 1
fi
"$@"
