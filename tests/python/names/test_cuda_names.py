"""Names of torch.cuda, with and without GPUs of the engine."""

import warnings

import pytest

from tests.expression_table import check_row

NAMES = "cuda = torch.cuda"
ROWS = [
    ('cuda.check_error(0)', None),
    ('cuda.check_error(cuda.cudaStatus.ERROR_NOT_READY)', RuntimeError),
    ('cuda.get_allocator_backend()', "native"),
    ('cuda.get_sync_debug_mode()', 0),
    ('cuda.set_sync_debug_mode("default")', None),
    ('(cuda.set_sync_debug_mode("warn"), cuda.get_sync_debug_mode(), cuda.set_sync_debug_mode(0))[1]', 1),
    ('cuda.set_sync_debug_mode("later")', RuntimeError),
    ('dict(cuda.host_memory_stats()), cuda.host_memory_stats_as_nested_dict(), cuda.ipc_collect()', ({}, {}, None)),
    ('cuda.reset_peak_host_memory_stats()', None),
    ('(cuda.has_half, cuda.has_magma)', (True, False)),
    ('cuda.set_per_process_memory_fraction(1)', TypeError),
    ('cuda.set_per_process_memory_fraction(1.5)', ValueError),
    ('cuda.temperature()', NotImplementedError),
    ('cuda.caching_allocator_alloc(8, 0, "stream")', TypeError),
    ('(cuda.caching_allocator_alloc(0, 0), cuda.caching_allocator_delete(0))', (0, None)),
    ('cuda.caching_allocator_delete(12345)', RuntimeError),
    ('cuda.MemPool()', NotImplementedError),
    ('(cuda.nvtx.range_push("a"), cuda.nvtx.range_push("b"), cuda.nvtx.range_pop(), cuda.nvtx.range_pop(), cuda.nvtx.range_pop())',
     (0, 1, 1, 0, -2)),
    ('cuda.nvtx.range_end(cuda.nvtx.range_start("a"))', None),
    ('cuda.nvtx.range_push(3)', TypeError),
    ('cuda.tunable.is_enabled(), cuda.tunable.tuning_is_enabled(), cuda.graph_annotations.is_available()', (False, False, False)),
    ('cuda.nccl.is_available([])', False),
    ('cuda.is_initialized() == cuda._initialized == cuda.is_available()', True),
    ('cuda._utils._get_device_index("cuda:1"), cuda._utils._get_device_index(torch.device("cpu"), allow_cpu=True)', (1, -1)),
    ('cuda._utils._get_device_index("cpu")', ValueError),
    ('cuda.nccl.all_reduce([])', NotImplementedError),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", ROWS)
def test_row(torch, code, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(expected, type):
            check_row(torch, NAMES, code, expected)
        else:
            assert eval(code, {"torch": torch, "cuda": torch.cuda}) == expected


def test_state_of_gpus(torch):
    cuda = torch.cuda
    if not cuda.is_available():
        assert cuda.get_arch_list() == [] and cuda.get_gencode_flags() == "" and cuda.default_generators == ()
        assert not cuda.is_tf32_supported()
        with pytest.raises(RuntimeError, match="an engine with a GPU"):
            cuda.cudart()
        return
    major, minor = cuda.get_device_capability()
    assert cuda.get_arch_list() == [f"sm_{major}{minor}"] and f"code=sm_{major}{minor}" in cuda.get_gencode_flags()
    assert cuda.is_tf32_supported() == (major >= 8) and len(cuda.default_generators) == cuda.device_count()
    free, total = cuda.mem_get_info()
    assert cuda.device_memory_used() == total - free and 0 < cuda.get_per_process_memory_fraction() <= 1
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"].keys() == {"current", "peak"} and "num_ooms" in nested
    if cuda.device_count() > 1:
        assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(1, 1)
    with pytest.raises(AssertionError, match="Invalid device id"):
        cuda.can_device_access_peer(99, 0)
    with pytest.warns(FutureWarning, match="reset_max_memory_cached"):
        cuda.reset_max_memory_cached()


def test_the_sessions_generator(torch):
    generator = torch.default_generator
    generator.manual_seed(7)
    first = torch.rand(3, generator=generator)
    torch.manual_seed(7)
    assert torch.equal(first, torch.rand(3)) and generator.initial_seed() == torch.initial_seed() == 7
    state = generator.get_state()
    second = torch.rand(3)
    generator.set_state(state)
    assert torch.equal(second, torch.rand(3)) and isinstance(generator, torch.Generator)
