"""Ranks that Slurm or MPI has started. The variables are those that real runs showed."""

import pytest

from teletensor.launch.cluster import ClusterError, cluster_environment, expand_hosts

SLURM = {
    "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "5", "SLURM_NTASKS": "9",
    "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_STEP_NODELIST": "gpu[07-08],x1",
    "SLURM_JOB_NODELIST": "other[1-9]",
}  # fmt: skip
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_COMM_WORLD_NODE_RANK": "1", "PMIX_NAMESPACE": "225050625", "PMIX_RANK": "1",
}  # fmt: skip
MPICH = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2", "PMI_JOBID": "j"}
PMIX = {
    "PMIX_RANK": "0",
    "PMIX_NAMESPACE": "prterun-h-1@1",
    "WORLD_SIZE": "2",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",
}


def place(environment):
    return environment.rank, environment.world_size, environment.local_rank, environment.local_world_size


def test_slurm():
    found = cluster_environment(SLURM)
    assert found.launcher == "slurm" and place(found) == (3, 5, 1, 2)
    assert found.master_addr == "gpu07" and found.run_id == "slurm-41.0"
    assert 15000 <= found.master_port < 32768
    other_rank = cluster_environment({**SLURM, "SLURM_PROCID": "4", "SLURM_NODEID": "2", "SLURM_LOCALID": "0"})
    assert place(other_rank) == (4, 5, 0, 1)
    assert (other_rank.master_addr, other_rank.master_port) == (found.master_addr, found.master_port)
    assert cluster_environment({**SLURM, "SLURM_JOB_ID": "42"}).master_port != found.master_port


def test_slurm_on_one_node():
    found = cluster_environment({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "5", "SLURM_NODEID": "0"})
    assert found.master_addr == "127.0.0.1" and found.local_world_size == 5


def test_batch_script_is_no_rank():
    assert cluster_environment({k: v for k, v in SLURM.items() if k != "SLURM_STEP_ID"}) is None


def test_openmpi():
    found = cluster_environment(OPENMPI)
    assert found.launcher == "openmpi" and place(found) == (1, 2, 1, 2)
    assert found.master_addr == "127.0.0.1" and found.run_id == "openmpi-225050625"


def test_openmpi_in_a_slurm_job():
    """mpirun's daemons on the nodes are tasks of a Slurm step themselves."""
    found = cluster_environment({**SLURM, **OPENMPI, "OMPI_COMM_WORLD_SIZE": "4", "SLURM_JOB_NODELIST": "n[3-4]"})
    assert found.launcher == "openmpi" and place(found) == (1, 4, 1, 2) and found.master_addr == "n3"


@pytest.mark.parametrize("variables", [{**OPENMPI, "OMPI_COMM_WORLD_SIZE": "4"}, MPICH])
def test_several_hosts_require_the_address(variables):
    with pytest.raises(ClusterError, match="MASTER_ADDR"):
        cluster_environment(variables)
    found = cluster_environment({**variables, "MASTER_ADDR": "h", "MASTER_PORT": "77"})
    assert (found.master_addr, found.master_port) == ("h", 77)


def test_mpich():
    found = cluster_environment({**MPICH, "MASTER_ADDR": "h"})
    assert found.launcher == "pmi" and place(found) == (2, 4, 0, 2) and found.run_id == "pmi-j"


def test_pmix_requires_the_world_size():
    found = cluster_environment(PMIX)
    assert found.launcher == "pmix" and place(found) == (0, 2, 0, 2) and found.run_id == "pmix-prterun-h-1@1"
    with pytest.raises(ClusterError, match="WORLD_SIZE"):
        cluster_environment({k: v for k, v in PMIX.items() if k != "WORLD_SIZE"})


def test_no_cluster(monkeypatch):
    assert cluster_environment({}) is None
    monkeypatch.setattr("os.environ", OPENMPI)
    assert cluster_environment().rank == 1


@pytest.mark.parametrize(
    "change, message",
    [
        ({"SLURM_PROCID": "x"}, "SLURM_PROCID"), ({"SLURM_PROCID": "5"}, "rank < world size"), ({"SLURM_NODEID": "3"}, "SLURM_NODEID"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2x"}, "tasks per node"), ({"SLURM_STEP_NODELIST": "n[2-1]"}, "list of hosts"),
        ({"MASTER_PORT": "x"}, "MASTER_PORT"),
    ],
)  # fmt: skip
def test_malformed(change, message):
    with pytest.raises(ClusterError, match=message):
        cluster_environment({**SLURM, **change})


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("a", ["a"]), ("a,b", ["a", "b"]), ("n[1-3]", ["n1", "n2", "n3"]), ("n[08-10],m", ["n08", "n09", "n10", "m"]),
        ("n[1,3-4]x", ["n1x", "n3x", "n4x"]), ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)  # fmt: skip
def test_expand_hosts(text, hosts):
    assert expand_hosts(text) == hosts
