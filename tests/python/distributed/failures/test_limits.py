"""What groups and stores take is charged to the session that causes it."""

from tests.python.session.test_session import run_script

STORE = """
import teletensor as torch, teletensor.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 1, True)
stored = []
try:
    for i in range(40):
        store.set(f"k{i}", "x" * (1 << 20))
        stored.append(i)
except RuntimeError as error:
    assert "memory limit of the session that serves the store" in str(error), error
assert 10 < len(stored) < 24, stored
store.delete_key("k0")
store.set("k1", "small")  # a smaller value fits
assert torch.ones(3).sum().item() == 3
"""

GROUPS = """
import teletensor as torch, teletensor.distributed as dist
dist.init_process_group("gloo", store=dist.TCPStore("127.0.0.1", 0, 1, True), rank=0, world_size=1)
groups = []
try:
    for i in range(40):
        groups.append(dist.new_group([0]))
except torch.OutOfMemoryError as error:
    assert "a group requires 1.25 MiB; the session has a limit of 16 MiB" in str(error), error
assert 5 < len(groups) < 20, groups
dist.destroy_process_group(groups.pop())
group = dist.new_group([0])
x = torch.ones(3)
dist.all_reduce(x, group=group)
assert x.tolist() == [1, 1, 1]
"""


def test_store_is_charged(own_daemon):
    done = run_script(STORE, own_daemon("--session-memory-limit", "16MB"))
    assert done.returncode == 0, done.stderr


def test_groups_are_charged(own_daemon):
    done = run_script(GROUPS, own_daemon("--session-memory-limit", "16MB"))
    assert done.returncode == 0, done.stderr
