"""The ``teletensor`` command: shows and controls a running engine, and launches the ranks of a group."""

from __future__ import annotations

import argparse
import json
import sys
import time

from . import _C, launch
from ._version import __version__


def _bytes(n) -> str:
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _device(number: int) -> str:
    """Decodes the device number used in instructions."""
    return "cpu" if number == 0 else f"cuda:{number & 0xFF}"


def _device_description(device: dict) -> str:
    capability, driver = device["compute_capability"], device["driver"]
    return f"{device['name']}, capability {capability}, driver {driver}" if capability else device["name"]


def _libraries(status: dict) -> str:
    """Lists the libraries that the devices have used so far, and the missing ones."""
    libraries = {library["name"]: library for device in status["devices"] for library in device["libraries"]}
    found = [f"{name} {library['version']}" for name, library in libraries.items() if library["version"]]
    lines = [f"libraries: {', '.join(found)}"] if found else []
    lines += [f"{name} is missing: {library['missing']}" for name, library in libraries.items() if library["missing"]]
    return "\n".join(lines)


def _tables(status: dict, address: str, rates: dict):
    """Returns the status as a rich renderable. `rates` maps session ids to instructions per second."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(
        f"engine {status['engine_version']} at {address}, pid {status['pid']}, up {_duration(status['uptime_seconds'])}, "
        f"resident {_bytes(status['resident_bytes'])}"
    )
    devices = Table(title="devices", title_justify="left")
    for column in ("device", "name", "memory", "allocated", "active", "reserved", "peak", "limit", "out of memory"):
        devices.add_column(column, justify="left" if column in ("device", "name") else "right")
    for d in status["devices"]:
        memory, limit = d["memory"], int(d["memory"]["limit"])
        devices.add_row(
            _device(int(d["device"]["device"])), _device_description(d["device"]), _bytes(d["device"]["total_memory"]),
            *(_bytes(memory[k]) for k in ("allocated", "active", "reserved", "peak_allocated")),
            _bytes(limit) if limit else "none", memory["out_of_memory"],
        )  # fmt: skip
    sessions = Table(title=f"sessions ({len(status['sessions'])})", title_justify="left")
    for column in ("id", "client", "age", "link", "handles", "held", "peak", "limit", "instructions", "per s", "replayed", "failed"):
        sessions.add_column(column, justify="left" if column in ("client", "link") else "right")
    for s in status["sessions"]:
        limit = int(s["limit_bytes"])
        sessions.add_row(
            s["id"], s["client"], _duration(s["age_seconds"]), "up" if s["connected"] else "lost", s["handles"],
            _bytes(s["held_bytes"]), _bytes(s["peak_bytes"]), _bytes(limit) if limit else "none", s["instructions"],
            f"{rates.get(s['id'], 0):,.0f}", s["replayed"], s["failed"],
        )  # fmt: skip
    libraries = _libraries(status)
    return Group(head, devices, *([Text(libraries)] if libraries else []), sessions)


def _status(admin: _C.Admin, args) -> None:
    text = admin.status()
    if args.json:
        print(json.dumps(json.loads(text), indent=2))
        return
    from rich.console import Console

    Console().print(_tables(json.loads(text), admin.address, {}))


def _top(admin: _C.Admin, args) -> None:
    from rich.live import Live

    before: dict[str, int] = {}
    rates: dict[str, float] = {}
    at = time.monotonic()
    with Live(refresh_per_second=4, screen=sys.stdout.isatty()) as live:
        rounds = 0
        while args.count is None or rounds < args.count:
            status = json.loads(admin.status())
            now = time.monotonic()
            counts = {s["id"]: int(s["instructions"]) for s in status["sessions"]}
            if before:
                rates = {k: (n - before.get(k, n)) / max(now - at, 1e-6) for k, n in counts.items()}
            before, at = counts, now
            live.update(_tables(status, admin.address, rates))
            rounds += 1
            if args.count is None or rounds < args.count:
                time.sleep(args.interval)


def _empty_cache(admin: _C.Admin, _args) -> None:
    released = json.loads(admin.empty_cache())["released"]
    print(f"released {_bytes(released)}")


def _drain(admin: _C.Admin, args) -> None:
    admin.drain(args.seconds)
    print(f"the engine at {admin.address} accepts no new sessions and exits within {args.seconds:g} s")


def _end_session(admin: _C.Admin, args) -> None:
    admin.end_session(args.id)
    print(f"session {args.id} has ended; its memory is freed")


def _profile(admin: _C.Admin, args) -> None:
    from .profiler import _engine_profile as profiles

    found = profiles.decode(admin.profile())
    if args.seconds is not None:
        time.sleep(args.seconds)
        found = profiles.since(found, profiles.decode(admin.profile()))
    if args.format == "table":
        print(profiles.table(found, tuple(args.by.split(",")), args.limit))
    else:
        print(json.dumps(found, indent=2) if args.format == "json" else profiles.collapsed(found), end="")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="teletensor", description="Controls an engine and launches ranks.")
    parser.add_argument("--version", action="version", version=f"teletensor {__version__}")
    parser.add_argument(
        "--address",
        default="",
        help="host:port or unix:PATH (default: TELETENSOR_ADDRESS, then the socket of your own engine)",
    )
    parser.add_argument("--token", default="", help="the engine's token (default: TELETENSOR_TOKEN, then the token file)")
    parser.add_argument(
        "--admin-token", default="",
        help="the admin token, not needed for status and top (default: TELETENSOR_ADMIN_TOKEN, then its token file)",
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    status = commands.add_parser("status", help="version, devices, sessions and memory")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=_status)
    top = commands.add_parser("top", help="status, updated continuously, with instructions per second")
    top.add_argument("--interval", type=float, default=1.0, help="seconds between updates (default: 1)")
    top.add_argument("--count", type=int, default=None, help="stop after this many updates")
    top.set_defaults(run=_top)
    empty = commands.add_parser("empty-cache", help="return cached memory to the system")
    empty.set_defaults(run=_empty_cache)
    drain = commands.add_parser("drain", help="accept no new sessions, wait for the existing ones, then exit")
    drain.add_argument("--seconds", type=float, default=60.0, help="maximum wait (default: 60)")
    drain.set_defaults(run=_drain)
    end = commands.add_parser("end-session", help="cancel a session's work and free its memory")
    end.add_argument("id", type=int, help="the session's id, as shown by status")
    end.set_defaults(run=_end_session)
    profile = commands.add_parser("profile", help="what the sessions do, from the engine's samples since its start")
    profile.add_argument("--seconds", type=float, default=None, help="only the samples of the next seconds")
    profile.add_argument("--format", choices=("table", "collapsed", "json"), default="table",
                         help="collapsed: one line per stack, for flame graphs (default: table)")  # fmt: skip
    profile.add_argument("--by", default="session,phase,op,site",
                         help="columns of the table, of: principal, session, phase, op, kernel, site")  # fmt: skip
    profile.add_argument("--limit", type=int, default=30, help="maximum number of rows (default: 30)")
    profile.set_defaults(run=_profile)
    ranks = commands.add_parser("launch", help="start one process per rank, on one or several hosts", allow_abbrev=False)
    launch.add_arguments(ranks)
    return parser


def _reject_engine_options(args) -> None:
    """Raises ValueError if an option that selects an engine was given before `launch`."""
    for flag, variable in (("address", "TELETENSOR_ADDRESS"), ("token", "TELETENSOR_TOKEN"), ("admin_token", "")):
        if getattr(args, flag):
            hint = f"; set {variable} in the ranks' environment" if variable else ""
            raise ValueError(f"--{flag.replace('_', '-')} has no effect on launch{hint}")


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "launch":
            _reject_engine_options(args)
            return launch.run(args)
        args.run(_C.Admin(args.address, args.token, admin_token=args.admin_token), args)
    except (ConnectionError, ValueError) as e:
        print(f"teletensor: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
