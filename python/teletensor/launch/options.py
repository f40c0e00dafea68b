"""Options of ``teletensor launch``: torchrun's flags, their checks and their defaults.

Every flag can be written with dashes or underscores, and torchrun's flags are also read from ``PET_<NAME>`` in the
environment, as torchrun does. A flag that would have no effect is rejected.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import secrets
import shlex
import signal
import socket
import string
from collections.abc import Mapping

from ..distributed.elastic.events import get_logging_handler

STDOUT, STDERR = 1, 2  # bits of --redirects and --tee
DEFAULT_SSH = "ssh -T -o BatchMode=yes {host} {command}"
_C10D_PORT = 29400  # torchrun's default ports
_STATIC_PORT = 29500
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
_SHUTDOWN_VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
_PREFIX_MACROS = ("rank", "local_rank", "role_name", "hostname")
# Keys of --rdzv-conf, with their defaults in seconds or counts.
_CONF = {
    "join_timeout": 600.0,
    "last_call_timeout": 30.0,
    "keep_alive_interval": 5.0,
    "keep_alive_max_attempt": 3.0,
    "read_timeout": 60.0,
}


class OptionError(ValueError):
    """A wrong command line. The message names the flag."""


@dataclasses.dataclass(frozen=True)
class Options:
    """A checked command line."""

    command: tuple[str, ...]  # of one rank: program and arguments
    min_nodes: int
    max_nodes: int
    ranks: int  # on this node
    node_rank: int | None  # None: assigned in the order of joining
    hosts: tuple[tuple[str, int], ...]  # names and ranks of --hosts
    ssh: tuple[str, ...]
    rendezvous: str  # "local", "c10d" or "static"
    endpoint: tuple[str, int]  # of the launchers' store; not used by "local"
    hosts_store: bool | None  # whether this launcher serves the store; None: if the endpoint is this machine
    master: tuple[str, int] | None  # MASTER_ADDR and MASTER_PORT of "static"
    local_address: str | None
    run_id: str | None  # None: that of the launcher that serves the store
    token: str | None
    max_restarts: int
    monitor_interval: float
    role: str
    log_dir: str | None
    redirects: dict[int, int]  # bits by local rank; None stands for the others
    tee: dict[int, int]
    ranks_shown: frozenset[int] | None  # local ranks
    event_log_handler: str  # a name of torch.distributed.elastic.events
    join_timeout: float
    last_call_timeout: float
    keep_alive_interval: float
    keep_alive_attempts: int
    read_timeout: float
    grace: float
    line_prefix: str | None  # template with ${rank}, ${local_rank}, ${role_name}, ${hostname}; None: "[rank]"
    filters: dict[int, tuple[str, ...]]  # by STDOUT, STDERR: lines with one of the texts are also written to one file
    signals: tuple[int, ...]  # that end the run and are passed on to the ranks
    virtual_local_rank: bool


class _UnderscoreParser:
    """Adds flags with dashes to a parser, and for each the same flag with underscores."""

    def __init__(self, parser: argparse._ActionsContainer):
        self._parser = parser
        self.torchrun: list[argparse.Action] = []

    def add(self, *names: str, torchrun: bool = True, **keywords) -> None:
        more = [n.replace("-", "_").replace("__", "--", 1) for n in names if n.startswith("--") and "-" in n[2:]]
        action = self._parser.add_argument(*names, *more, **keywords)
        if torchrun:
            self.torchrun.append(action)


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ) -> None:
    """Adds the flags and the script with its arguments. Defaults are replaced by PET_<NAME> variables of the environment."""
    group = _UnderscoreParser(parser)
    add = group.add
    add(
        "-n",
        "--nproc-per-node",
        default="1",
        metavar="N",
        help='ranks on this node: a number, "cpu", "gpu" or "auto" (default: 1)',
    )
    add("--nnodes", default=None, metavar="N|MIN:MAX", help="nodes; a range makes the run elastic (default: 1)")
    add(
        "--node-rank",
        default=None,
        type=int,
        metavar="K",
        help="this node's number; by default nodes are numbered as they join",
    )
    add(
        "--hosts", torchrun=False, metavar="A,B|A:4,B:2",
        help="start the command on these hosts, optionally with the number of ranks of each",
    )  # fmt: skip
    add(
        "--ssh-command", torchrun=False, default=None, metavar="TEMPLATE",
        help=f'command that runs {{command}} on {{host}} for --hosts (default: "{DEFAULT_SSH}")',
    )  # fmt: skip
    add(
        "--rdzv-backend",
        choices=("c10d", "static"),
        default=None,
        help="how several nodes find each other (default: static)",
    )
    add(
        "--rdzv-endpoint",
        default=None,
        metavar="HOST:PORT",
        help="address of the launchers' store; not used by c10d with one node",
    )
    add("--rdzv-id", default=None, metavar="ID", help="name of this run; the same on every node")
    add("--rdzv-conf", default="", metavar="K=V,...", help=f"{', '.join([*_CONF, 'is_host'])}")
    add("--standalone", action="store_true", help="one node that shares nothing with other runs on this machine")
    add("--master-addr", default=None, metavar="HOST", help="with static: address of node 0 (default: 127.0.0.1)")
    add(
        "--master-port",
        default=None,
        type=int,
        metavar="PORT",
        help=f"with static: MASTER_PORT of the ranks (default: {_STATIC_PORT})",
    )
    add(
        "--local-addr",
        default=None,
        metavar="HOST",
        help="address at which other nodes reach this one (default: detected)",
    )
    add("--max-restarts", default=0, type=int, metavar="N", help="restarts of all ranks after a failure (default: 0)")
    add(
        "--monitor-interval", default=0.1, type=float, metavar="SECONDS",
        help="interval of checks of the other nodes (default: 0.1); exits on this node are detected at once",
    )  # fmt: skip
    add(
        "--start-method",
        default=None,
        metavar="spawn",
        help="accepted for torchrun's scripts: every rank is a new process",
    )
    add("--role", default="default", help="name of this node's ranks; ROLE_RANK counts the ranks of one role")
    add("-m", "--module", action="store_true", help="the script is a Python module, as in python -m")
    add("--no-python", action="store_true", help="the script is a program; do not run it with Python")
    add(
        "--log-dir",
        default=None,
        metavar="DIR",
        help="also write each rank's output to DIR/ID/attempt_K/RANK/{stdout,stderr}.log",
    )
    add(
        "-r",
        "--redirects",
        default=None,
        metavar="BITS",
        help="output that goes to files only: 0, 1 (stdout), 2 (stderr), 3 or 0:1,1:3 by local rank",
    )
    add("-t", "--tee", default=None, metavar="BITS", help="output that goes to files and is shown; same values")
    add(
        "--local-ranks-filter",
        default=None,
        metavar="RANKS",
        help="local ranks whose output is shown, such as 0,2 (default: all)",
    )
    add(
        "--log-line-prefix-template", default=None, metavar="TEMPLATE",
        help="prefix of each line, with ${rank}, ${local_rank}, ${role_name}, ${hostname} (default: [RANK])",
    )  # fmt: skip
    for stream in ("stdout", "stderr"):
        add(
            f"--duplicate-{stream}-filters", default="", metavar="TEXTS",
            help=f"also write lines of {stream} with one of these texts to DIR/ID/attempt_K/filtered_{stream}.log; a comma in a "
            "text is doubled",
        )  # fmt: skip
    add(
        "--signals-to-handle", default=",".join(_SIGNALS), metavar="NAMES",
        help=f"signals that end the run and are passed on to the ranks (default: {','.join(_SIGNALS)})",
    )  # fmt: skip
    add(
        "--grace", "--shutdown-timeout", default=None, type=float, metavar="SECONDS",
        help=f"time from SIGTERM to SIGKILL when ranks are stopped (default: {_SHUTDOWN_VARIABLE}, then 10)",
    )  # fmt: skip
    add(
        "--virtual-local-rank", action="store_true",
        help="LOCAL_RANK is 0 in each rank, and CUDA_VISIBLE_DEVICES has its GPU only",
    )  # fmt: skip
    add("--run-path", action="store_true", help="the script is an absolute path that Python runs, whatever --no-python says")
    add(
        "--event-log-handler", default="null", metavar="NAME",
        help="handler of torch.distributed.elastic.events that receives the run's events; null and console exist",
    )  # fmt: skip
    add("--logs-specs", default=None, help="not supported: use --log-dir, --redirects and --tee")
    add("--numa-binding", default=None, help="not supported: use numactl in the command with --no-python")
    add(
        "--print-completion", choices=("bash", "zsh", "tcsh"), default=None,
        help="print a completion script for the shell and exit (needs the package shtab)",
    )  # fmt: skip
    parser.add_argument("training_script", metavar="script", help="script, module or program of each rank")
    parser.add_argument("training_script_args", metavar="arguments", nargs=argparse.REMAINDER, help="its arguments")
    _read_environment(parser, group.torchrun, environment)


def _read_environment(
    parser: argparse.ArgumentParser, actions: list[argparse.Action], environment: Mapping[str, str]
) -> None:
    """Replaces defaults by PET_<NAME> variables."""
    for action in actions:
        name = f"PET_{action.dest.upper()}"
        value = environment.get(name)
        if value is None:
            continue
        # check() validates what argparse does not check in defaults.
        is_switch = isinstance(action, argparse._StoreTrueAction)
        parser.set_defaults(**{action.dest: value == "1" if is_switch and value in ("0", "1") else value})


def _check_environment(args: argparse.Namespace) -> None:
    """Checks values from the environment as argparse checks those of the command line."""
    for name in ("standalone", "module", "no_python", "virtual_local_rank", "run_path"):
        if not isinstance(getattr(args, name), bool):
            raise OptionError(f"PET_{name.upper()}: expected 0 or 1, got {getattr(args, name)!r}")
    if args.rdzv_backend not in (None, "c10d", "static"):
        raise OptionError(f"PET_RDZV_BACKEND: expected c10d or static, got {args.rdzv_backend!r}")


def _positive(flag: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise OptionError(f"{flag}: expected a positive number, got {text!r}")
    return int(text)


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpus() -> int:
    """Number of GPUs that a process on this machine sees: by CUDA_VISIBLE_DEVICES, or of the driver."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        listed = [name.strip() for name in visible.split(",")]
        return next((i for i, name in enumerate(listed) if name in ("", "-1")), len(listed))
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def ranks_per_node(text: str) -> int:
    """Parses --nproc-per-node. Raises OptionError."""
    if text == "cpu":
        return cores()
    if text == "gpu":
        if gpus() == 0:
            raise OptionError("--nproc-per-node: expected a GPU for gpu, found none on this machine")
        return gpus()
    if text == "auto":
        return gpus() or cores()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise OptionError(f"--nproc-per-node: expected a positive number, cpu, gpu or auto, got {text!r}")
    return int(text)


def _nodes(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    smallest = _positive("--nnodes", low)
    largest = _positive("--nnodes", high) if colon else smallest
    if smallest > largest:
        raise OptionError(f"--nnodes: expected MIN <= MAX, got {text!r}")
    return smallest, largest


def split_address(flag: str, text: str, default_port: int) -> tuple[str, int]:
    """Splits HOST:PORT, HOST, or [IPv6]:PORT."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and int(port) < 65536)):
        raise OptionError(f"{flag}: expected HOST:PORT, got {text!r}")
    return host, int(port) if port else default_port


def _hosts(text: str, ranks: int) -> tuple[tuple[str, int], ...]:
    hosts = []
    for entry in text.split(","):
        name, colon, count = entry.strip().rpartition(":")
        if not colon or "]" in count:
            name, colon, count = entry.strip(), "", ""
        if not name or name.startswith("-"):  # ssh would parse a leading dash as an option
            raise OptionError(f"--hosts: expected A,B or A:4,B:2, got {text!r}")
        hosts.append((name, _positive("--hosts", count) if colon else ranks))
    return tuple(hosts)


def _stream_bits(flag: str, text: str | None) -> dict[int, int]:
    """Parses "3" or "0:1,1:3". The key -1 stands for every local rank."""
    if text is None:
        return {}
    bits = {}
    for entry in text.split(","):
        rank, colon, value = entry.rpartition(":")
        if value not in ("0", "1", "2", "3") or (colon and not rank.isdigit()) or (not colon and "," in text):
            raise OptionError(f"{flag}: expected 0, 1, 2, 3 or a list such as 0:1,1:3, got {text!r}")
        bits[int(rank) if colon else -1] = int(value)
    return bits


def _conf(text: str) -> tuple[dict[str, float], bool | None, int | None]:
    """Parses --rdzv-conf: the numbers, is_host, and static's rank."""
    numbers, is_host, rank = dict(_CONF), None, None
    for entry in filter(None, text.split(",")):
        key, _, value = entry.partition("=")
        key = {"timeout": "join_timeout"}.get(key.strip(), key.strip())
        if key == "is_host":
            if value.lower() not in ("0", "1", "true", "false"):
                raise OptionError(f"--rdzv-conf: expected is_host=true or false, got {value!r}")
            is_host = value.lower() in ("1", "true")
        elif key == "rank":
            if not value.isdigit():
                raise OptionError(f"--rdzv-conf: expected a number for rank, got {value!r}")
            rank = int(value)
        elif key in numbers:
            try:
                numbers[key] = float(value)
            except ValueError:
                raise OptionError(f"--rdzv-conf: expected a number for {key}, got {value!r}") from None
            if not numbers[key] > 0 and key != "last_call_timeout":
                raise OptionError(f"--rdzv-conf: expected a positive number for {key}, got {value!r}")
        else:
            raise OptionError(f"--rdzv-conf: expected one of {', '.join([*_CONF, 'is_host'])}, got {key!r}")
    return numbers, is_host, rank


def _grace(args: argparse.Namespace, environment: Mapping[str, str]) -> float:
    grace = args.grace if args.grace is not None else environment.get(_SHUTDOWN_VARIABLE, 10.0)
    try:
        grace = float(grace)
    except ValueError:
        raise OptionError(f"{_SHUTDOWN_VARIABLE}: expected a number, got {grace!r}") from None
    if not grace >= 0:
        raise OptionError(f"--grace: expected a number of at least 0, got {grace}")
    return grace


def _signals(text: str) -> tuple[int, ...]:
    numbers = []
    for name in filter(None, (name.strip() for name in text.split(","))):
        number = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
        if not isinstance(number, signal.Signals) or number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
            raise OptionError(f"--signals-to-handle: expected names such as SIGTERM,SIGUSR1, got {name!r}")
        numbers.append(int(number))
    return tuple(numbers)


def _line_prefix(text: str | None) -> str | None:
    try:
        string.Template(text or "").substitute(dict.fromkeys(_PREFIX_MACROS, ""))
    except (KeyError, ValueError):
        names = ", ".join(f"${{{name}}}" for name in _PREFIX_MACROS)
        raise OptionError(f"--log-line-prefix-template: expected a template of {names}, got {text!r}") from None
    return text


def _filters(args: argparse.Namespace) -> dict[int, tuple[str, ...]]:
    """Texts separated by commas, in which a doubled comma stands for a comma, or a list of texts from a program."""
    filters = {}
    for stream, text in ((STDOUT, args.duplicate_stdout_filters), (STDERR, args.duplicate_stderr_filters)):
        split = text.replace(",,", "\0").split(",") if isinstance(text, str) else text or ()
        texts = tuple(t.replace("\0", ",") for t in split if t)
        if texts:
            filters[stream] = texts
    return filters


def _command(args: argparse.Namespace, python: str) -> tuple[str, ...]:
    if args.run_path:
        if not os.path.isabs(args.training_script) or args.module:
            raise OptionError(f"--run-path: expected an absolute path without --module, got {args.training_script!r}")
    elif args.no_python:
        if args.module:
            raise OptionError("--module and --no-python exclude each other")
        return (args.training_script, *args.training_script_args)
    # -u: a line is shown when it is written, not when the rank ends.
    return (python, "-u", *(("-m",) if args.module else ()), args.training_script, *args.training_script_args)


def _reject(args: argparse.Namespace, reason: str, *names: str) -> None:
    """Raises if one of the flags was given."""
    for name in names:
        if getattr(args, name) not in (None, ""):
            raise OptionError(f"--{name.replace('_', '-')} has no effect {reason}")


def _rendezvous_address(
    args: argparse.Namespace, fixed: bool, single: bool
) -> tuple[str, tuple[str, int], tuple[str, int] | None]:
    """Returns the kind of rendezvous, the store's endpoint and static's master."""
    backend = args.rdzv_backend or "static"
    if args.hosts:
        _reject(args, "with --hosts, which determines it", "rdzv_backend", "node_rank", "master_addr", "master_port")
        endpoint = split_address("--rdzv-endpoint", args.rdzv_endpoint, 0) if args.rdzv_endpoint else ("", 0)
        return "c10d", endpoint, None
    if args.standalone:
        _reject(
            args,
            "with --standalone",
            "rdzv_backend",
            "rdzv_endpoint",
            "rdzv_id",
            "node_rank",
            "master_addr",
            "master_port",
        )
        return "local", ("", 0), None
    if backend == "c10d":
        _reject(args, "with --rdzv-backend c10d; use --rdzv-endpoint", "master_addr", "master_port")
        if single:  # a rendezvous of one node needs no store that other nodes can reach
            return "local", ("", 0), None
        if not args.rdzv_endpoint:
            raise OptionError("--rdzv-endpoint: expected HOST:PORT for several nodes with --rdzv-backend c10d")
        return "c10d", split_address("--rdzv-endpoint", args.rdzv_endpoint, _C10D_PORT), None
    if not fixed:
        raise OptionError("--nnodes MIN:MAX requires --rdzv-backend c10d")
    if args.rdzv_endpoint:
        _reject(args, "with --rdzv-endpoint", "master_addr", "master_port")
        master = split_address("--rdzv-endpoint", args.rdzv_endpoint, _STATIC_PORT)
    else:
        # A program may have set the port as a text.
        master = (args.master_addr or "127.0.0.1", int(args.master_port or _STATIC_PORT))
    if single:
        given = args.rdzv_endpoint or args.master_addr or args.master_port
        return "local", ("", 0), master if given else None
    return "static", (master[0], master[1] + 1), master


def check(args: argparse.Namespace, python: str, environment: dict[str, str]) -> Options:
    """Checks parsed arguments.

    Args:
        args: the result of a parser with add_arguments().
        python: the interpreter that runs the ranks.
        environment: contains TELETENSOR_GROUP_TOKEN if launchers on several nodes are started separately.

    Raises:
        OptionError: a value is wrong, or a flag has no effect in this combination.
    """
    _check_environment(args)
    if args.start_method not in (None, "spawn"):
        raise OptionError(f"--start-method: expected spawn, because every rank is a new process, got {args.start_method!r}")
    ranks = ranks_per_node(str(args.nproc_per_node))
    hosts = _hosts(args.hosts, ranks) if args.hosts else ()
    smallest, largest = _nodes(args.nnodes) if args.nnodes else (len(hosts) or 1,) * 2
    if hosts and largest != len(hosts):
        raise OptionError(f"--nnodes: expected at most {len(hosts)} nodes, the number of --hosts, got {args.nnodes}")
    if args.standalone and (hosts or largest != 1):
        raise OptionError("--standalone: expected one node")
    if args.ssh_command and not hosts:
        raise OptionError("--ssh-command has no effect without --hosts")
    conf, is_host, conf_rank = _conf(args.rdzv_conf)
    node_rank = args.node_rank if args.node_rank is not None else conf_rank
    kind, endpoint, master = _rendezvous_address(args, smallest == largest, largest == 1)
    if kind == "static" and node_rank is None:
        raise OptionError("--node-rank: expected this node's number for several nodes with --rdzv-backend static")
    if node_rank is not None and not 0 <= node_rank < largest:
        raise OptionError(f"--node-rank: expected a number from 0 to {largest - 1}, got {node_rank}")
    if is_host is not None and (kind != "c10d" or hosts):
        raise OptionError("--rdzv-conf: is_host has no effect except with --rdzv-backend c10d")
    if kind == "local":
        if args.rdzv_conf:
            raise OptionError("--rdzv-conf has no effect with one node")
        _reject(args, "with one node", "local_addr")
    token = environment.get("TELETENSOR_GROUP_TOKEN") or None
    if kind in ("c10d", "static") and not hosts and token is None:
        raise OptionError(
            "TELETENSOR_GROUP_TOKEN: expected a secret, the same on every node, such as the output of openssl rand -hex 32"
        )
    if args.max_restarts < 0:
        raise OptionError(f"--max-restarts: expected a number of at least 0, got {args.max_restarts}")
    if not args.monitor_interval > 0:
        raise OptionError(f"--monitor-interval: expected a positive number, got {args.monitor_interval}")
    try:
        get_logging_handler(args.event_log_handler)
    except KeyError:
        raise OptionError(
            f"--event-log-handler: expected the name of a handler, such as console, got {args.event_log_handler!r}"
        ) from None
    if args.event_log_handler != "null" and hosts:
        raise OptionError("--event-log-handler has no effect with --hosts")
    _reject(args, "here: use --log-dir, --redirects and --tee", "logs_specs")
    _reject(args, "here: use numactl in the command with --no-python", "numa_binding")
    shown = None
    if args.local_ranks_filter:
        if not all(r.strip().isdigit() for r in args.local_ranks_filter.split(",")):
            raise OptionError(f"--local-ranks-filter: expected numbers such as 0,2, got {args.local_ranks_filter!r}")
        shown = frozenset(int(r) for r in args.local_ranks_filter.split(","))
    redirects, tee = _stream_bits("--redirects", args.redirects), _stream_bits("--tee", args.tee)
    if args.log_dir and args.redirects is None and args.tee is None:
        tee = {-1: STDOUT | STDERR}
    ssh = tuple(shlex.split(args.ssh_command or DEFAULT_SSH))
    if "{command}" not in ssh:
        raise OptionError(f"--ssh-command: expected {{command}} as a word of the template, got {args.ssh_command!r}")
    run_id = args.rdzv_id
    if run_id is None and (kind == "local" or hosts):
        run_id = secrets.token_hex(4)
    if run_id is not None and ("/" in run_id or run_id in ("", ".", "..")):
        raise OptionError(f"--rdzv-id: expected a name without a slash, got {run_id!r}")
    return Options(
        command=_command(args, python), min_nodes=smallest, max_nodes=largest, ranks=ranks, node_rank=node_rank, hosts=hosts,
        ssh=ssh, rendezvous=kind, endpoint=endpoint, hosts_store=node_rank == 0 if kind == "static" else is_host,
        master=master, local_address=args.local_addr, run_id=run_id, token=token, max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval, role=args.role, log_dir=args.log_dir, redirects=redirects, tee=tee,
        ranks_shown=shown, event_log_handler=args.event_log_handler, join_timeout=conf["join_timeout"],
        last_call_timeout=conf["last_call_timeout"],
        keep_alive_interval=conf["keep_alive_interval"], keep_alive_attempts=int(conf["keep_alive_max_attempt"]),
        read_timeout=conf["read_timeout"], grace=_grace(args, environment),
        line_prefix=_line_prefix(args.log_line_prefix_template), filters=_filters(args),
        signals=_signals(args.signals_to_handle), virtual_local_rank=args.virtual_local_rank,
    )  # fmt: skip


def is_this_host(host: str) -> bool:
    """Whether the name has an address that this machine can bind."""
    try:
        addresses = {
            (family, info[0]) for family, _, _, _, info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        }
    except OSError:
        return host == socket.gethostname()
    for family, address in addresses:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((address, 0))
                return True
            except OSError:
                continue
    return False
