"""ProcessGroup: this rank's membership in a group of engines that run collectives together."""

from __future__ import annotations

import collections
import enum
import itertools
import time
import weakref
from datetime import timedelta

from .. import _C
from .._component_tensor import ComponentTensor
from .._lazy import set_module
from . import _options, _work
from ._backend import BackendConfig
from ._reduce_op import name_and_factor
from ._run_store import run_store
from ._sparse_reduction import all_reduce_sparse, require_reducible
from ._store import PrefixStore, TCPStore
from ._work import Work

# numbers of asynchronous collectives; 0 in a call means that the session waits for the collective
_numbers = itertools.count(1)

# Tags of messages between two ranks that a user cannot choose.
_BARRIER_TAG = (1 << 32) - 1
_ACKNOWLEDGE_TAG = (1 << 32) - 2


def _detached(tensors) -> list[_C.Tensor]:
    """Aliases that the engine does not record gradients for."""
    return [t.detach() if t.requires_grad else t for t in tensors]


def _check_list(op: str, kind: str, tensors, size: int, like: _C.Tensor | None) -> None:
    """Checks a list with one tensor per rank."""
    if len(tensors) != size:
        raise RuntimeError(f"[{op}] invalid {kind} tensor list (expected length {size}, got {len(tensors)})")
    for i, tensor in enumerate(tensors):
        if like is not None and tensor.shape != like.shape:
            raise RuntimeError(
                f"[{op}] invalid {kind} tensor size at index {i} (expected {tuple(like.shape)}, got {tuple(tensor.shape)})"
            )


def _may_differ(tensors, size: int) -> bool:
    """Whether the sizes of the tensors of a list, one per rank, differ, which is valid on GPUs, as with NCCL; Gloo
    rejects it.
    """
    return len(tensors) == size and len({t.shape for t in tensors}) > 1 and all(t.is_cuda for t in tensors)


def _split(op: str, tensor: _C.Tensor, sizes: list[int], ranks: int) -> list[_C.Tensor]:
    """Views of a tensor, one per rank, of the given or equal sizes along dimension 0."""
    if tensor.dim() == 0:
        raise RuntimeError(f"[{op}] expected a tensor with at least one dimension")
    if not sizes:
        if tensor.shape[0] % ranks != 0:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [tensor.shape[0] // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != tensor.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.split(list(sizes), 0))


class ProcessGroup:
    """A process group. ``init_process_group`` and ``new_group`` create it.

    The methods are those of PyTorch's class; scripts use the functions of torch.distributed, which check their arguments.
    Each method returns a Work. Unless ``opts.asyncOp`` is False, the collective's tensors must not be used before
    ``Work.wait()``.
    """

    class BackendType(enum.Enum):
        UNDEFINED = 0
        GLOO = 1
        NCCL = 2
        XCCL = 3
        UCC = 4
        MPI = 5
        CUSTOM = 6

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, CUSTOM = BackendType

    _MAX_DROPPED = 64  # number of collectives whose Work was dropped without wait() that the engine keeps

    def __init__(self, handle: _C.Tensor, *, name: str, desc: str, rank: int, size: int, backend: str, config: BackendConfig,
                 timeout: timedelta, store=None):  # fmt: skip
        self._handle = handle  # the result of group_create
        self._name, self._desc, self._rank, self._size = name, desc, rank, size
        self._backend, self._config, self._timeout, self._store = backend, config, timeout, store
        self._started: dict[int, tuple] = {}  # by number: a weak reference to the Work, and the tensors that it writes
        self._to_wait: collections.deque[int] = collections.deque()  # numbers of Works that were dropped
        self._is_open = True
        self.bound_device_id = None

    def rank(self) -> int:
        """Returns this process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """Returns the number of ranks."""
        return self._size

    def name(self) -> str:
        """Returns the backend's name."""
        return self._backend

    _get_backend_name = name

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._desc

    @property
    def _device_types(self) -> list[_C.device]:
        return [_C.device(kind) for kind in self._config.get_device_backend_map()]

    def get_group_store(self):
        """Returns a store that the group's ranks share: the one given to init_process_group, or the engines' own."""
        if self._store is None:
            host, _, port = run_store.address.rpartition(":")
            engines = TCPStore(host.strip("[]"), int(port), timeout=self._timeout, wait_for_workers=False)
            self._store = PrefixStore(f"{run_store.run}/{self._name}/user", engines)
        return self._store

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._name!r}: rank {self._rank} of {self._size}>"

    # Collectives in progress.

    def _run(
        self, operator: str, *arguments, written=(), outputs=None, opts=None, blocks: bool = False, **options
    ) -> Work:
        """Issues a collective. `written`: the tensors that it writes; `outputs`: the Work's result."""
        if not self._is_open:
            raise RuntimeError(f"process group {self._name!r} was destroyed")
        while len(self._to_wait) > self._MAX_DROPPED:
            self._wait_for_dropped()
        written = list(written)
        outputs = written if outputs is None else outputs
        issue = getattr(_C.ops, operator)
        is_async = opts is None or opts.asyncOp
        if not is_async and not _work.process_waits:
            return Work(self, 0, written, outputs, status=issue(*arguments, work=0, **options), blocks=blocks)
        number = next(_numbers)
        issue(*arguments, work=number, **options)
        work = Work(self, number, written, outputs, blocks=blocks)
        self._started[number] = (weakref.ref(work), written, operator)
        if not is_async:
            work._issue_wait()
        return work

    def _waited(self, number: int) -> None:
        self._started.pop(number, None)

    def _dropped(self, number: int) -> None:
        # Called by a finalizer, so it issues nothing: the session may be in use.
        self._to_wait.append(number)

    def _wait_for_dropped(self) -> None:
        number = self._to_wait.popleft()
        if entry := self._started.pop(number, None):
            _C.ops.group_wait(entry[1], number)

    # Collectives. As in PyTorch, most lists of tensors have one entry.

    def _reduction(self, operator: str, tensors, opts, **options) -> Work:
        name, factor = name_and_factor(opts.reduceOp)
        written = _detached(tensors)
        return self._run(operator, written, self._handle, op=name, factor=factor, written=written, outputs=list(tensors),
                         opts=opts, **options)  # fmt: skip

    def allreduce(self, tensors, opts=None) -> Work:
        """Reduces tensors over all ranks, in place. `opts` may be a ReduceOp. Tensors of layout sparse_coo are added; this waits for
        the ranks' numbers of elements."""
        tensors = [tensors] if isinstance(tensors, _C.Tensor) else tensors
        if opts is not None and not isinstance(opts, _options.AllreduceOptions):
            opts = _options.AllreduceOptions(reduceOp=opts)
        opts = opts or _options.AllreduceOptions()
        if any(isinstance(t, ComponentTensor) for t in tensors):
            return self._allreduce_composed(tensors, opts)
        return self._reduction("group_all_reduce", tensors, opts)

    def _allreduce_composed(self, tensors, opts) -> Work:
        """allreduce() of sparse tensors, one after another."""
        for tensor in tensors:
            require_reducible(tensor, opts.reduceOp)
        works = [all_reduce_sparse(self, tensor) for tensor in tensors]
        works[-1]._outputs = list(tensors)
        return works[-1]

    def allreduce_coalesced(self, tensors, opts=None) -> Work:
        """Reduces several tensors of one dtype in one collective."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts=None, op=None) -> Work:
        """Reduces tensors over all ranks into those of a rank. `opts` may be the rank."""
        tensors = [tensors] if isinstance(tensors, _C.Tensor) else tensors
        if not isinstance(opts, _options.ReduceOptions):
            opts = _options.ReduceOptions(rootRank=opts or 0)
            opts.reduceOp = opts.reduceOp if op is None else op
        return self._reduction("group_reduce", tensors, opts, root=opts.rootRank)

    def broadcast(self, tensors, opts=None) -> Work:
        """Copies tensors of a rank to all ranks. `opts` may be the rank."""
        tensors = [tensors] if isinstance(tensors, _C.Tensor) else tensors
        if not isinstance(opts, _options.BroadcastOptions):
            opts = _options.BroadcastOptions(rootRank=opts or 0)
        written = _detached(tensors)
        return self._run("group_broadcast", written, self._handle, root=opts.rootRank, written=written,
                         outputs=list(tensors), opts=opts)  # fmt: skip

    def _gather_all(self, outputs, inputs, opts) -> Work:
        written = _detached(outputs)
        return self._run("group_all_gather", written, _detached(inputs), self._handle, written=written,
                         outputs=list(outputs), opts=opts)  # fmt: skip

    def allgather(self, output_tensors, input_tensors, opts=None) -> Work:
        """Gathers one tensor of each rank: ``allgather([outputs], [input])``."""
        if isinstance(input_tensors, _C.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        if len(input_tensors) != 1 or len(output_tensors) != 1:
            raise RuntimeError("[all_gather] requires a single-element input and output list")
        outputs, (tensor,) = output_tensors[0], input_tensors
        if _may_differ(outputs, self._size) and outputs[self._rank].shape == tensor.shape:
            return self._broadcast_each(outputs, tensor)
        _check_list("all_gather", "output", outputs, self._size, tensor)
        return self._gather_all(outputs, [tensor], opts)

    def _broadcast_each(self, outputs, tensor) -> Work:
        """allgather() of tensors with different sizes: one collective per rank."""
        outputs[self._rank].detach().copy_(tensor)
        works = [self.broadcast([output], _options.BroadcastOptions(asyncOp=False, rootRank=root))
                 for root, output in enumerate(outputs)]  # fmt: skip
        return works[-1]

    def allgather_coalesced(self, output_lists, input_list, opts=None) -> Work:
        """Gathers several tensors of each rank: ``output_lists[rank][i]``."""
        if len(output_lists) != self._size:
            raise RuntimeError(
                f"[all_gather_coalesced] output lists should be equal to world size {self._size}, got {len(output_lists)}"
            )
        for outputs in output_lists:
            if len(outputs) != len(input_list):
                raise RuntimeError(
                    f"[all_gather_coalesced] expected {len(input_list)} output tensors per rank, got {len(outputs)}"
                )
            for i, (output, tensor) in enumerate(zip(outputs, input_list, strict=True)):
                if output.shape != tensor.shape:
                    raise RuntimeError(
                        f"[all_gather_coalesced] Size of tensor at index {i} (expected {tuple(tensor.shape)}, got {tuple(output.shape)})"
                    )
        return self._gather_all(list(itertools.chain.from_iterable(output_lists)), input_list, opts)

    def all_gather_single(self, output_tensor, input_tensor, opts=None) -> Work:
        """Gathers one tensor of each rank into one tensor."""
        if output_tensor.dtype != input_tensor.dtype:
            raise RuntimeError("output tensor must have the same type as input tensor")
        if input_tensor.numel() * self._size != output_tensor.numel():
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        return self._gather_all([output_tensor], [input_tensor], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        """Gathers several tensors of each rank, each into one tensor."""
        pieces = [output.detach().view(self._size, output.numel() // self._size) for output in outputs]
        order = [piece[rank] for rank in range(self._size) for piece in pieces]
        work = self._gather_all(order, inputs, opts)
        work._outputs = list(outputs)
        return work

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_tensors, input_tensors, opts=None) -> Work:
        """Gathers one tensor of each rank at a rank: ``gather([outputs], [input])`` there, ``gather([], [input])`` elsewhere."""
        opts = opts or _options.GatherOptions()
        (tensor,) = input_tensors
        outputs = output_tensors[0] if output_tensors else []
        if opts.rootRank == self._rank:
            _check_list("gather", "output", outputs, self._size, tensor)
        written = _detached(outputs)
        return self._run("group_gather", written, _detached([tensor]), self._handle, root=opts.rootRank, written=written,
                         outputs=list(outputs), opts=opts)  # fmt: skip

    def gather_single(self, output_tensor, input_tensor, opts=None) -> Work:
        """Gathers one tensor of each rank into one tensor at a rank."""
        opts = opts or _options.GatherOptions()
        outputs = [output_tensor] if opts.rootRank == self._rank else []
        if outputs and output_tensor.numel() != input_tensor.numel() * self._size:
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        written = _detached(outputs)
        return self._run("group_gather", written, _detached([input_tensor]), self._handle, root=opts.rootRank,
                         written=written, outputs=outputs, opts=opts)  # fmt: skip

    gather_into_tensor = gather_single

    def scatter(self, output_tensors, input_tensors, opts=None) -> Work:
        """Copies a rank's input of each rank there: ``scatter([output], [inputs])`` at that rank, ``scatter([output], [])``
        elsewhere."""
        opts = opts or _options.ScatterOptions()
        (output,) = output_tensors
        inputs = input_tensors[0] if input_tensors else []
        if opts.rootRank == self._rank:
            _check_list("scatter", "input", inputs, self._size, output)
        written = _detached([output])
        return self._run("group_scatter", written, _detached(inputs), self._handle, root=opts.rootRank, written=written,
                         outputs=[output], opts=opts)  # fmt: skip

    def _scatter_reduced(self, outputs, inputs, opts) -> Work:
        opts = opts or _options.ReduceScatterOptions()
        name, factor = name_and_factor(opts.reduceOp)
        written = _detached(outputs)
        return self._run("group_reduce_scatter", written, _detached(inputs), self._handle, op=name, factor=factor,
                         written=written, outputs=list(outputs), opts=opts)  # fmt: skip

    def reduce_scatter(self, output_tensors, input_tensors, opts=None) -> Work:
        """Reduces a list over all ranks and gives each rank its entry: ``reduce_scatter([output], [inputs])``."""
        if isinstance(output_tensors, _C.Tensor):
            output_tensors, input_tensors = [output_tensors], [input_tensors]
        (output,), (inputs,) = output_tensors, input_tensors
        if _may_differ(inputs, self._size) and inputs[self._rank].shape == output.shape:
            return self._reduce_each(output, inputs, opts)
        _check_list("reduce_scatter", "input", inputs, self._size, output)
        return self._scatter_reduced([output], inputs, opts)

    def _reduce_each(self, output, inputs, opts) -> Work:
        """reduce_scatter() of entries with different sizes: one collective per entry."""
        output.detach().copy_(inputs[self._rank])
        works = []
        for root, entry in enumerate(inputs):
            options = _options.ReduceOptions(asyncOp=False, rootRank=root)
            options.reduceOp = _options.ReduceScatterOptions().reduceOp if opts is None else opts.reduceOp
            works.append(self.reduce([output if root == self._rank else entry], options))
        return works[-1]

    def reduce_scatter_single(self, output_tensor, input_tensor, opts=None) -> Work:
        """Reduces a tensor over all ranks and gives each rank its part."""
        if output_tensor.dtype != input_tensor.dtype:
            raise RuntimeError("input tensor must be the same type as the output tensor.")
        if output_tensor.numel() * self._size != input_tensor.numel():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        return self._scatter_reduced([output_tensor], [input_tensor], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None) -> Work:
        """Reduces several tensors over all ranks and gives each rank its part of each."""
        pieces = [tensor.detach().reshape(self._size, tensor.numel() // self._size) for tensor in inputs]
        return self._scatter_reduced(outputs, [piece[rank] for rank in range(self._size) for piece in pieces], opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall(self, output_tensors, input_tensors, opts=None) -> Work:
        """Sends one tensor to each rank and receives one from each."""
        _check_list("all_to_all", "output", output_tensors, self._size, None)
        _check_list("all_to_all", "input", input_tensors, self._size, None)
        written = _detached(output_tensors)
        return self._run("group_all_to_all", written, _detached(input_tensors), self._handle, written=written,
                         outputs=list(output_tensors), opts=opts)  # fmt: skip

    def all_to_all_single(self, output, input, output_split_sizes=(), input_split_sizes=(), opts=None) -> Work:  # noqa: A002
        """Sends a part of a tensor to each rank and receives a part from each."""
        (written,), (read,) = _detached([output]), _detached([input])
        outputs = _split("all_to_all_single", written, output_split_sizes, self._size)
        inputs = _split("all_to_all_single", read, input_split_sizes, self._size)
        return self._run(
            "group_all_to_all", outputs, inputs, self._handle, written=outputs, outputs=[output], opts=opts
        )

    alltoall_base = all_to_all_single

    def send(self, tensors, dst_rank: int, tag: int = 0, opts=None) -> Work:
        """Sends tensors to a rank of the group."""
        return self._run("group_send", _detached(tensors), self._handle, peer=dst_rank, tag=tag, outputs=list(tensors),
                         opts=opts)  # fmt: skip

    def recv(self, tensors, src_rank: int, tag: int = 0, opts=None) -> Work:
        """Receives tensors from a rank of the group."""
        written = _detached(tensors)
        work = self._run("group_receive", written, self._handle, peer=src_rank, tag=tag, written=written,
                         outputs=list(tensors), opts=opts)  # fmt: skip
        work._source = src_rank
        return work

    def recv_anysource(self, tensors, tag: int = 0, opts=None) -> Work:
        """Receives tensors from the rank of the group whose message arrives first."""
        if self._size == 1:
            raise ValueError("[recv] expected a group of at least 2 ranks to receive from another rank, got 1")
        written = _detached(tensors)
        work = self._run("group_receive", written, self._handle, peer=-1, tag=tag, written=written,
                         outputs=list(tensors), opts=opts)  # fmt: skip
        work._receives_from_any = True
        return work

    def barrier(self, opts=None) -> Work:
        """Waits until all ranks have called it. The Work's wait() waits in this process."""
        return self._run("group_barrier", self._handle, blocks=True, opts=opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Waits in this process until all ranks have called it. See torch.distributed.monitored_barrier."""
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        deadline = time.monotonic() + seconds
        token = _C.tensor([self._rank], device="cpu")
        if self._rank != 0:
            self.send([token], 0, _BARRIER_TAG)
            if self._incomplete({0: self.recv([token], 0, _ACKNOWLEDGE_TAG)}, deadline):
                raise RuntimeError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                    f"from rank 0. Please check rank 0 logs for faulty rank."
                )
            token.item()
            return
        arrivals = {rank: _C.tensor([0], device="cpu") for rank in range(1, self._size)}
        works = {rank: self.recv([arrival], rank, _BARRIER_TAG) for rank, arrival in arrivals.items()}
        if missing := self._incomplete(works, deadline):
            named = missing if wait_all_ranks else missing[:1]
            if seconds <= 0:
                text = f"Rank 0 timed out in monitoredBarrier after 0 ms. Ranks {', '.join(map(str, missing))} did not arrive"
                self.abort(text)
                raise RuntimeError(f"[Rank 0]: {text}")
            text = f"Rank{'s' * (len(named) > 1)} {', '.join(map(str, named))} failed to pass monitoredBarrier in {seconds * 1000:.0f} ms"
            self.abort(text)
            raise RuntimeError(f"[Rank 0]: {text}")
        for arrival in arrivals.values():
            arrival.item()  # raises the rank's error
        for rank in arrivals:
            self.send([token], rank, _ACKNOWLEDGE_TAG, _options.BroadcastOptions(asyncOp=False))

    @staticmethod
    def _incomplete(works: dict[int, Work], deadline: float) -> list[int]:
        """Waits until all works are complete; returns the keys of those that are not at the deadline."""
        while True:
            missing = [rank for rank, work in works.items() if not work.is_completed()]
            if not missing:
                for work in works.values():
                    work.wait()
                return []
            if time.monotonic() >= deadline:
                return missing
            time.sleep(0.002)

    def set_timeout(self, timeout: timedelta) -> None:
        """Not supported: a group's timeout is fixed at its formation."""
        raise NotImplementedError(
            "[set_timeout] a group's timeout is fixed: pass it to init_process_group or new_group"
        )

    def abort(self, reason: str = "the group was aborted") -> None:
        """Fails the collectives in progress and all later ones, on all ranks. Does not wait."""
        if self._is_open:
            _C.ops.group_abort(self._handle, reason)

    def shutdown(self) -> None:
        """Leaves the group after the collectives that this rank has started. Does not wait in this process."""
        if not self._is_open:
            return
        for number, (reference, written, operator) in list(self._started.items()):
            if operator == "group_receive":
                continue  # a message that may never be sent
            work = reference()
            if work is not None:
                work._issue_wait()
            else:
                _C.ops.group_wait(written, number)
        self._started.clear()
        self._is_open = False
        _C.ops.group_destroy(self._handle)


set_module("teletensor.distributed.distributed_c10d", ProcessGroup)
