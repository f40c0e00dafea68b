"""Rank and world size of processes that Slurm or MPI has started, without ``teletensor launch``.

``init_process_group`` uses it if RANK is not set.
"""

from __future__ import annotations

import dataclasses
import os
import re
import zlib
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Environment:
    """A process's rank in a group, and the address of rank 0.

    Attributes:
        launcher: "slurm", "openmpi", "pmi" or "pmix".
        rank: from 0 to world_size - 1.
        world_size: number of processes.
        local_rank: number of this process among those on its host.
        local_world_size: number of processes on this host.
        master_addr: name or address of the host of rank 0.
        master_port: the same on every rank of one job, derived from `run_id`; different jobs rarely share one.
        run_id: name of the job and its step, the same on every rank; a prefix for keys in a shared store.
    """

    launcher: str
    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    master_addr: str
    master_port: int
    run_id: str


class ClusterError(RuntimeError):
    """The variables of a launcher are incomplete or contradict each other. The message names them."""


def cluster_environment(variables: Mapping[str, str] | None = None) -> Environment | None:
    """Returns this process's rank in a group that Slurm (srun), Open MPI or another MPI (PMI, PMIx) has started.

    Returns None if none of them has. MASTER_ADDR and MASTER_PORT, if set, replace the derived values. If variables of
    several launchers are set, the innermost launcher is used: mpirun within a Slurm job is Open MPI.

    Args:
        variables: the environment; by default that of this process.

    Raises:
        ClusterError: variables are missing or malformed, or the host of rank 0 is not known.
    """
    env = os.environ if variables is None else variables
    # A batch script has SLURM_PROCID but no step; it is not a rank.
    for present, read in (
        ("OMPI_COMM_WORLD_RANK" in env, _openmpi),
        ("SLURM_PROCID" in env and "SLURM_STEP_ID" in env and env.get("SLURM_STEP_ID") != "", _slurm),
        ("PMI_RANK" in env, _pmi),
        ("PMIX_RANK" in env, _pmix),
    ):
        if present:
            return _checked(read(env))
    return None


def _number(env: Mapping[str, str], *names: str, default: int | None = None) -> int:
    """Returns the number in the first of the variables that is set."""
    for name in names:
        value = env.get(name)
        if value is not None:
            if not (value.isascii() and value.isdigit()):
                raise ClusterError(f"[cluster] expected a number in {name}, got {value!r}")
            return int(value)
    if default is None:
        raise ClusterError(f"[cluster] expected {' or '.join(names)} in the environment")
    return default


def _master(env: Mapping[str, str], run_id: str, derived: str | None, local: bool) -> tuple[str, int]:
    """Returns MASTER_ADDR and MASTER_PORT, or the derived values. `local` means that all ranks are on this host."""
    address = env.get("MASTER_ADDR") or ("127.0.0.1" if local else derived)
    if not address:
        raise ClusterError(
            "[cluster] expected MASTER_ADDR, the host of rank 0, in the environment, such as mpirun -x MASTER_ADDR=host"
        )
    # Below the ephemeral ports, which systems use for outgoing connections.
    port = _number(env, "MASTER_PORT", default=15000 + zlib.crc32(run_id.encode()) % 16384)
    return address, port


def expand_hosts(text: str) -> list[str]:
    """Expands a host list of Slurm: "n[1-2,07],m" is n1, n2, n07, m.

    Raises:
        ClusterError: the list is malformed.
    """
    hosts: list[str] = []
    for entry in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        hosts += _expand(entry, text)
    if not hosts:
        raise ClusterError(f"[cluster] expected a list of hosts, got {text!r}")
    return hosts


def _expand(entry: str, text: str) -> list[str]:
    """Expands the first bracket of one entry, and then the others."""
    head, bracket, rest = entry.partition("[")
    if not bracket:
        return [entry]
    ranges, _, tail = rest.partition("]")
    hosts = []
    for part in ranges.split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not (low.isdigit() and high.isdigit() and 0 <= int(high) - int(low) < 1 << 20):
            raise ClusterError(f"[cluster] expected a list of hosts, got {text!r}")
        for number in range(int(low), int(high) + 1):
            hosts += [f"{head}{number:0{len(low)}d}{more}" for more in _expand(tail, text)]
    return hosts


def _tasks_on_node(text: str, node: int) -> int:
    """Returns an entry of SLURM_STEP_TASKS_PER_NODE: in "2(x3),1" nodes 0 to 2 have 2 tasks."""
    counts: list[int] = []
    for entry in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", entry)
        if not match:
            raise ClusterError(f"[cluster] expected a list such as 2(x3),1 of tasks per node, got {text!r}")
        counts += [int(match[1])] * int(match[2] or 1)
    if node >= len(counts):
        raise ClusterError(f"[cluster] SLURM_NODEID is {node}, but only {len(counts)} nodes have tasks ({text!r})")
    return counts[node]


def _slurm(env: Mapping[str, str]) -> Environment:
    world = _number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    run_id = f"slurm-{env.get('SLURM_JOB_ID') or env.get('SLURM_JOBID', '0')}.{env['SLURM_STEP_ID']}"
    tasks = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE")
    local_world = _tasks_on_node(tasks, _number(env, "SLURM_NODEID")) if tasks else 1
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST", "")
    first = expand_hosts(nodes)[0] if nodes else None  # srun starts rank 0 on the step's first node
    address, port = _master(env, run_id, first, local_world == world)
    return Environment(
        "slurm", _number(env, "SLURM_PROCID"), world, _number(env, "SLURM_LOCALID"), local_world, address, port, run_id
    )


def _openmpi(env: Mapping[str, str]) -> Environment:
    world, local_world = _number(env, "OMPI_COMM_WORLD_SIZE"), _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    # The name of the job, the same on every rank: from PMIx, or from Open MPI's own runtime before version 5.
    job = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or env.get("OMPI_MCA_orte_ess_jobid", "0")
    run_id = f"openmpi-{job.replace('/', '-')}"
    first = None
    if "SLURM_JOB_NODELIST" in env:  # mpirun within a Slurm job maps rank 0 to the job's first node
        first = expand_hosts(env["SLURM_JOB_NODELIST"])[0]
    address, port = _master(env, run_id, first, local_world == world)
    return Environment(
        "openmpi", _number(env, "OMPI_COMM_WORLD_RANK"), world, _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"), local_world,
        address, port, run_id,
    )  # fmt: skip


def _pmi(env: Mapping[str, str]) -> Environment:
    """MPICH, Intel MPI and Cray's launchers."""
    world = _number(env, "PMI_SIZE")
    rank = _number(env, "PMI_RANK")
    # With one process no address is needed.
    alone = world == 1
    local_rank = _number(env, "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", default=0 if alone else None)
    local_world = _number(env, "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", default=1 if alone else None)
    job = env.get("PMI_JOBID") or env.get("PALS_APID") or env.get("SLURM_JOB_ID") or env.get("PBS_JOBID") or "0"
    run_id = f"pmi-{job.replace('/', '-')}"
    address, port = _master(env, run_id, None, local_world == world)
    return Environment("pmi", rank, world, local_rank, local_world, address, port, run_id)


def _pmix(env: Mapping[str, str]) -> Environment:
    """A PMIx launcher without variables of its own. PMIx has no variable for the number of processes."""
    world = _number(env, "WORLD_SIZE")
    local_rank = _number(env, "LOCAL_RANK", default=0 if world == 1 else None)
    local_world = _number(env, "LOCAL_WORLD_SIZE", default=1 if world == 1 else None)
    run_id = f"pmix-{env.get('PMIX_NAMESPACE', '0').replace('/', '-')}"
    address, port = _master(env, run_id, None, local_world == world)
    return Environment("pmix", _number(env, "PMIX_RANK"), world, local_rank, local_world, address, port, run_id)


def _checked(environment: Environment) -> Environment:
    e = environment
    if not (0 <= e.rank < e.world_size and 0 <= e.local_rank < e.local_world_size <= e.world_size):
        raise ClusterError(
            f"[cluster] expected rank < world size and local rank < local world size, got {e.rank}, {e.world_size}, "
            f"{e.local_rank}, {e.local_world_size}"
        )
    return environment


Environment.__module__ = ClusterError.__module__ = "teletensor.launch.cluster"  # their public place
