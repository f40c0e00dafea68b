"""The environment and the command of each rank."""

import json
import os
import sys

import pytest

from .conftest import environments

pytestmark = pytest.mark.slow

RECORD = "record_environment()"


def values(all_environments, *names):
    """One tuple of variables per rank."""
    return [tuple(all_environments[rank][name] for name in names) for rank in sorted(all_environments)]


def test_one_node(launch, tmp_path):
    code, _, err = launch("-n", "3", "--max-restarts", "2", "script.py", script=RECORD).finish()
    assert code == 0
    found = environments(tmp_path)
    assert values(found, "RANK", "LOCAL_RANK", "ROLE_RANK", "GROUP_RANK") == [
        (str(r), str(r), str(r), "0") for r in range(3)
    ]
    first = found[0]
    for name, expected in {
        "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "ROLE_WORLD_SIZE": "3", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "2", "OMP_NUM_THREADS": "1",
        "TELETENSOR_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 3)),
        "TELETENSOR_GROUP_RUN": first["TORCHELASTIC_RUN_ID"] + "/0",
    }.items():  # fmt: skip
        assert all(environment[name] == expected for environment in found.values()), name
    for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "TELETENSOR_GROUP_TOKEN"):
        assert len({environment[name] for environment in found.values()}) == 1, name
    assert 0 < int(first["MASTER_PORT"]) < 65536
    assert len(first["TELETENSOR_GROUP_TOKEN"]) == 64
    assert "OMP_NUM_THREADS is 1" in err


def test_runs_have_different_tokens_and_names(launch, tmp_path):
    seen = []
    for _ in range(2):
        assert launch("script.py", script=RECORD).finish()[0] == 0
        seen.append(values(environments(tmp_path), "TELETENSOR_GROUP_TOKEN", "TORCHELASTIC_RUN_ID")[0])
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


def test_variables_of_the_user_are_kept(launch, tmp_path):
    given = {"OMP_NUM_THREADS": "7", "TELETENSOR_THREADS": "5", "TELETENSOR_GROUP_TOKEN": "secret", "RANK": "9"}
    code, _, err = launch("-n", "2", "--rdzv-id", "mine", "script.py", script=RECORD, environment=given).finish()
    assert code == 0 and "OMP_NUM_THREADS" not in err
    found = environments(tmp_path)
    names = ("OMP_NUM_THREADS", "TELETENSOR_THREADS", "TELETENSOR_GROUP_TOKEN", "RANK", "TELETENSOR_GROUP_RUN")
    assert values(found, *names) == [("7", "5", "secret", str(r), "mine/0") for r in range(2)]


def test_one_rank_has_all_threads(launch, tmp_path):
    code, _, err = launch("script.py", script=RECORD).finish()
    first = environments(tmp_path)[0]
    assert code == 0 and "OMP_NUM_THREADS" not in first and "OMP_NUM_THREADS" not in err
    assert first["TELETENSOR_THREADS"] == str(len(os.sched_getaffinity(0)))


def test_master_of_one_node(launch, tmp_path):
    assert launch("--master-addr", "localhost", "--master-port", "29123", "script.py", script=RECORD).finish()[0] == 0
    assert values(environments(tmp_path), "MASTER_ADDR", "MASTER_PORT") == [("localhost", "29123")]


@pytest.mark.parametrize("count, expected", [("cpu", len(os.sched_getaffinity(0))), ("gpu", 3), ("auto", 3)])
def test_ranks_per_device(launch, tmp_path, count, expected):
    given = {"CUDA_VISIBLE_DEVICES": "0,2,3"}
    assert launch("--nproc_per_node", count, "script.py", script=RECORD, environment=given).finish()[0] == 0
    assert len(environments(tmp_path)) == expected


def test_flags_from_the_environment(launch, tmp_path):
    given = {"PET_NPROC_PER_NODE": "2", "PET_MAX_RESTARTS": "4", "PET_RDZV_ID": "env", "PET_STANDALONE": "0"}
    assert launch("--rdzv-id", "flag", "script.py", script=RECORD, environment=given).finish()[0] == 0
    names = ("WORLD_SIZE", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID")
    assert values(environments(tmp_path), *names) == [("2", "4", "flag")] * 2


@pytest.mark.parametrize(
    "given, message",
    [
        ({"PET_STANDALONE": "yes"}, "PET_STANDALONE"),
        ({"PET_RDZV_BACKEND": "etcd"}, "PET_RDZV_BACKEND"),
        ({"PET_NNODES": "x"}, "--nnodes"),
    ],
)
def test_wrong_flags_from_the_environment(launch, given, message):
    code, _, err = launch("script.py", script="", environment=given).finish()
    assert code == 2 and message in err


def test_arguments_and_module(launch, tmp_path):
    code, out, _ = launch(
        "-n", "1", "-m", "script", "-x", "--nnodes", "7", script="print(sys.argv[1:], __name__)"
    ).finish()
    assert code == 0 and out == "[0] ['-x', '--nnodes', '7'] __main__\n"


def test_program_without_python(launch):
    code, out, _ = launch("-n", "2", "--no-python", "sh", "-c", "echo $RANK of $WORLD_SIZE").finish()
    assert code == 0 and sorted(out.splitlines()) == ["[0] 0 of 2", "[1] 1 of 2"]


def test_standard_input_is_empty(launch):
    code, out, _ = launch(
        "script.py", script="print(repr(sys.stdin.read()))", stdin=sys.stdin and open("/dev/zero")
    ).finish()  # noqa: SIM115
    assert code == 0 and out == "[0] ''\n"


def test_roles_of_two_nodes(launch, tmp_path):
    common = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:29571", "--rdzv-id", "roles")
    token = {"TELETENSOR_GROUP_TOKEN": "t"}
    one = launch("-n", "1", "--role", "a", "--node-rank", "1", *common, "script.py", script=RECORD, environment=token)
    two = launch("-n", "2", "--role", "b", "--node-rank", "0", *common, "script.py", environment=token)
    assert one.finish()[0] == 0 and two.finish()[0] == 0
    names = ("ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE")
    assert values(environments(tmp_path), *names) == [
        ("b", "0", "2", "0", "0", "2", "3"), ("b", "1", "2", "0", "1", "2", "3"), ("a", "0", "1", "1", "0", "1", "3"),
    ]  # fmt: skip
    assert len(set(values(environments(tmp_path), "MASTER_ADDR", "MASTER_PORT"))) == 1


def test_virtual_local_rank(launch, tmp_path):
    run = launch("-n", "2", "--virtual-local-rank", "script.py", script=RECORD, environment={"CUDA_VISIBLE_DEVICES": "4,6"})
    assert run.finish()[0] == 0
    assert values(environments(tmp_path), "LOCAL_RANK", "CUDA_VISIBLE_DEVICES") == [("0", "4"), ("0", "6")]


@pytest.mark.parametrize(
    "module, arguments, expected",
    [
        ("run", [], ["a", "1"]),
        ("launch", [], ["--local-rank=1", "a", "1"]),
        ("launch", ["--use-env"], ["a", "1"]),
    ],
)
def test_commands_of_pytorch(launch, tmp_path, module, arguments, expected):
    script = "record(f'arguments.{rank}', json.dumps(sys.argv[1:]))"
    run = launch(
        *arguments, "--nproc-per-node=2", "script.py", "a", "${local_rank}", script=script,
        module=f"teletensor.distributed.{module}",
    )  # fmt: skip
    assert run.finish()[0] == 0
    assert json.loads(run.wait_for("arguments.1")[0]) == expected
