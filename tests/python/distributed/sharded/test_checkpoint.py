"""Distributed checkpoints: training continues at another number of ranks; failures leave the previous checkpoint."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ..ranks import free_port
from . import checkpoint_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "fsdp_originals", "fully_shard", "no_shard"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_training_continues_at_another_world_size(torch, ranks, tmp_path, kind, optimizer):
    path, losses, begin = str(tmp_path / "checkpoint"), [], 0
    for size in (4, 2, 1, 3, 4):
        results = ranks.run(size, cases.train, kind=kind, optimizer=optimizer, path=path, begin=begin, end=begin + 3)
        assert all(result == results[0] for result in results)
        losses += results[0]
        begin += 3
    assert losses == pytest.approx(cases.alone(begin, optimizer), rel=2e-5)
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_asynchronous_save_has_the_values_of_the_call(torch, ranks, tmp_path):
    path = str(tmp_path / "checkpoint")
    options = {"kind": "fsdp", "optimizer": "adamw", "path": path}
    losses = ranks.run(4, cases.train, begin=0, end=3, save="async", **options)[0]
    losses += ranks.run(2, cases.train, begin=3, end=6, save="async", **options)[0]
    losses += ranks.run(3, cases.train, begin=6, end=9, **options)[0]
    assert losses == pytest.approx(cases.alone(9, "adamw"), rel=2e-5)


def test_the_kind_of_parallelism_may_change(torch, ranks, tmp_path):
    path, losses = str(tmp_path / "checkpoint"), []
    for i, (size, kind) in enumerate(
        [(4, "fsdp"), (2, "ddp"), (3, "fully_shard"), (1, "none"), (4, "hybrid"), (2, "fsdp")]
    ):
        losses += ranks.run(size, cases.train, kind=kind, optimizer="adamw", path=path, begin=2 * i, end=2 * i + 2)[0]
    assert losses == pytest.approx(cases.alone(12, "adamw"), rel=2e-5)


def test_state_dicts_of_fully_shard_and_its_optimizer(torch, ranks, tmp_path):
    path, losses = str(tmp_path / "checkpoint"), []
    for i, size in enumerate((4, 2, 1)):
        losses += ranks.run(size, cases.train_with_optimizer_numbers, path=path, begin=3 * i, end=3 * i + 3)[0]
    assert losses == pytest.approx(cases.alone(9, "adamw"), rel=2e-5)


def test_equal_tensors_are_stored_once(ranks, tmp_path):
    sizes = ranks.run(4, cases.stored_once, path=str(tmp_path / "checkpoint"))[0]
    assert all(8000 < size < 9000 for size in sizes)  # two tensors each


def test_full_state_dicts(ranks, tmp_path):
    ranks.run(3, cases.full_and_sharded, path=str(tmp_path / "checkpoint"))


def test_errors_of_one_rank_are_raised_on_all(ranks, tmp_path):
    ranks.run(3, cases.errors, path=str(tmp_path / "checkpoint"))
    assert sorted(os.listdir(tmp_path)) in (["checkpoint"], [".checkpoint.saving", "checkpoint"])


def test_values_with_the_protocol(ranks, tmp_path):
    ranks.run(4, cases.any_sharded_value, path=str(tmp_path / "checkpoint"))


def test_engines_must_share_the_folder(ranks, tmp_path):
    paths = [str(tmp_path / f"disk{i}" / "checkpoint") for i in range(2)]
    for message in ranks.run(2, cases.separate_disks, paths=paths):
        assert "does not see __1_0.safetensors, which another rank wrote" in message


@pytest.mark.parametrize("columns", [False, True])
def test_dtensors(ranks, tmp_path, columns):
    path = str(tmp_path / "checkpoint")
    ranks.run(4, cases.save_dtensors, path=path, columns=columns)
    for size in (1, 2, 3):
        ranks.run(size, cases.load_dtensors, path=path, columns=not columns)


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_engine_leaves_the_previous_checkpoint(own_ranks, tmp_path, victim):
    path = str(tmp_path / "checkpoint")
    group = own_ranks(2)
    pids = group.run_without_group(2, cases.form_and_save, free_port(), path)
    group.run_without_group(2, cases.start_saving, path, 192)
    deadline = time.monotonic() + 10
    while not Path(tmp_path / ".checkpoint.saving").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(pids[victim], signal.SIGKILL)
    for rank in range(2):
        group.all[rank].start(cases.saving_error)
    messages = [group.all[rank].result() for rank in range(2)]
    # If the save was complete before the signal, there is nothing to see; the files take far longer than that to write.
    assert all(messages), messages
    for rank in range(2):
        group.all[rank].start(cases.load_alone, path)
        assert group.all[rank].result() == [1, 1, 1]


def test_files_and_sharded_checkpoints_are_converted(torch, ranks, tmp_path):
    for result in ranks.run(2, cases.converted, folder=str(tmp_path)):
        assert result == [True, [1, 2], 7, "list", True, [1, 1, 1], True, [1, 1, 1]]
