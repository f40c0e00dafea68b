"""The ``teletensor`` command: runs PyTorch programs, shows and controls a running engine, launches the ranks of a group."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from . import (
    _C,
    _connection,
    _models_command,
    _operators_command,
    _principals,
    _printable,
    _script,
    _status_view,
    _top,
    launch,
)
from ._status_rows import size
from ._toplevel import published
from ._version import __version__
from .convert import _command as _convert_command

# Options that select an engine, and the variables that have their effect.
_ENGINE_VARIABLES = (
    ("address", "TELETENSOR_ADDRESS"),
    ("token", "TELETENSOR_TOKEN"),
    ("fingerprint", "TELETENSOR_TLS_FINGERPRINT"),
    ("ca", "TELETENSOR_TLS_CA"),
)
_ALL_COLUMNS = 160  # terminal columns for the tables of status --wide


def _status(admin: _C.Admin, args) -> None:
    text = admin.status()
    if args.json:
        print(json.dumps(json.loads(text), indent=2))
        return
    from rich.console import Console

    console = Console(width=max(_ALL_COLUMNS, Console().width) if args.wide else None)
    console.print(
        _status_view.view(
            _printable.loads(text), admin.address,
            _status_view.Options(console.width, hint=lambda what, n: "use --wide or a wider terminal"),
        )
    )  # fmt: skip


def _top_command(admin: _C.Admin, args) -> None:
    order = _top.sort_order(args.sort, principals=args.principals) if args.sort else None
    _top.run(admin, args.interval, args.count, order, principals=args.principals)


def _empty_cache(admin: _C.Admin, _args) -> None:
    released = _printable.loads(admin.empty_cache())["released"]
    print(f"released {size(released)}")


def _drain(admin: _C.Admin, args) -> None:
    admin.drain(args.seconds)
    print(f"the engine at {admin.address} accepts no new sessions and exits within {args.seconds:g} s")


def _upgrade(admin: _C.Admin, args) -> None:
    reply = _printable.loads(admin.upgrade(args.wait, args.force))
    print(
        f"process {reply['pid']} has taken over {reply['sessions']} sessions ({size(reply['bytes'])}) "
        f"after a pause of {float(reply['pause_seconds']):.2f} s"
    )
    for lost in reply["lost"]:
        print(f"lost: {lost}")


def _end_session(admin: _C.Admin, args) -> None:
    admin.end_session(args.id)
    print(f"session {args.id} has ended; its memory is freed")


def _session(admin: _C.Admin, args) -> _C.Connection:
    """A session with the engine, for commands that are not calls of the Admin service."""
    token = args.admin_token or args.token
    return _connection.connect(admin.address, token=token, fingerprint=args.fingerprint, ca=args.ca, compression=None)


def _published(admin: _C.Admin, args) -> None:
    _session(admin, args)
    found = published.published()
    if args.json:
        print(json.dumps(found, indent=2))
        return
    from rich.console import Console

    Console().print(_status_view.publications(found))


def _unpublish(admin: _C.Admin, args) -> None:
    _session(admin, args)
    published.unpublish(args.name)
    print(f"{args.name} was unpublished")


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


def _lines(error: Exception) -> str:
    """An error's message, of which an engine may have chosen parts; ours has several lines."""
    return "\n".join(map(_printable.printable, str(error).split("\n")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="teletensor", description="Runs PyTorch programs, controls an engine and launches ranks."
    )
    parser.add_argument("--version", action="version", version=f"teletensor {__version__}")
    parser.add_argument(
        "--address",
        default="",
        help="host:port, teletensors://host:port (TLS) or unix:PATH (default: TELETENSOR_ADDRESS, then the socket of your own engine)",
    )
    parser.add_argument(
        "--token", default="", help="the engine's token (default: TELETENSOR_TOKEN, then the token file)"
    )
    parser.add_argument(
        "--admin-token", default="",
        help="the admin token, not needed for status and top (default: TELETENSOR_ADMIN_TOKEN, then its token file)",
    )  # fmt: skip
    parser.add_argument(
        "--fingerprint", default="", help="with TLS: of the engine's certificate, as teletensord prints it"
    )
    parser.add_argument("--ca", default="", metavar="FILE", help="with TLS: authorities (PEM) instead of the system's")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    status = commands.add_parser("status", help="version, devices, sessions and memory")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.add_argument("--wide", action="store_true", help="all columns, also if the terminal is narrower")
    status.set_defaults(run=_status)
    top = commands.add_parser(
        "top", help="status, updated continuously, with rates and the last minute of each session",
        description=f"Shows the engine's status and how it changed within the last minute. Keys: {_top.KEYS}.",
    )  # fmt: skip
    top.add_argument("--interval", type=float, default=1.0, help="seconds between updates (default: 1)")
    top.add_argument(
        "--sort", metavar="COLUMN", default="", help="column to sort by, as in its header: held, per-s, state"
    )
    top.add_argument(
        "--principals", action="store_true", help="begin with the table of principals instead of that of sessions"
    )
    top.add_argument("--count", type=int, default=None, help="stop after this many updates")
    top.set_defaults(run=_top_command)
    empty = commands.add_parser("empty-cache", help="return cached memory to the system")
    empty.set_defaults(run=_empty_cache)
    drain = commands.add_parser("drain", help="accept no new sessions, wait for the existing ones, then exit")
    drain.add_argument("--seconds", type=float, default=60.0, help="maximum wait (default: 60)")
    drain.set_defaults(run=_drain)
    upgrade = commands.add_parser(
        "upgrade", help="replace the engine by the program that is installed now; its sessions continue",
        description="Starts the engine's program as it is installed now, passes the listening sockets and every session "
        "to the new process, and ends the old one. If that is not possible, says why, and the engine continues.",
    )  # fmt: skip
    upgrade.add_argument("--wait", type=float, default=10.0,
                         help="seconds to wait for frames and collectives in progress (default: 10)")  # fmt: skip
    upgrade.add_argument(
        "--force", action="store_true", help="end the sessions that cannot be passed on, instead of refusing"
    )
    upgrade.set_defaults(run=_upgrade)
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
    listed = commands.add_parser(
        "published", help="the published tensors that you may open; all of them with the admin token"
    )
    listed.add_argument("--json", action="store_true", help="print JSON")
    listed.set_defaults(run=_published)
    ended = commands.add_parser("unpublish", help="end a publication; sessions that have opened it keep its tensors")
    ended.add_argument("name", help="NAME, or PRINCIPAL/NAME for that of another principal (with the admin token)")
    ended.set_defaults(run=_unpublish)
    users = commands.add_parser(
        "user", help="add, list and revoke those who may use an engine (its option --principals)"
    )
    _principals.add_arguments(users)
    models = commands.add_parser("models", help="list, load, unload and show the models that the engine serves")
    server = commands.add_parser("serve", help="start an engine that serves the models of a folder, or one model")
    _models_command.add_arguments(models, server)
    script = commands.add_parser("run", help="run an unmodified PyTorch program with teletensor", allow_abbrev=False)
    _script.add_arguments(script)
    _operators_command.add_parser(commands)
    converted = commands.add_parser("convert", help="convert a model between ONNX, .pt2 and native model folders")
    _convert_command.add_arguments(converted)
    ranks = commands.add_parser(
        "launch", help="start one process per rank, on one or several hosts", allow_abbrev=False
    )
    launch.add_arguments(ranks)
    return parser


def _reject_engine_options(args, advice: str = "") -> None:
    """Raises ValueError if an option that selects an engine was given before a command that uses none."""
    for flag, variable in (*_ENGINE_VARIABLES, ("admin_token", "")):
        if getattr(args, flag):
            hint = f"; {advice}" if advice else f"; set {variable} in the ranks' environment" if variable else ""
            raise ValueError(f"--{flag.replace('_', '-')} has no effect on {args.command}{hint}")


def _select_engine(args) -> None:
    """Passes the options that select an engine to a program in its environment."""
    if args.admin_token:
        raise ValueError(f"--admin-token has no effect on {args.command}")
    for flag, variable in _ENGINE_VARIABLES:
        if getattr(args, flag):
            os.environ[variable] = getattr(args, flag)


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "run":
            _select_engine(args)
            return _script.run(args)
        if args.command == "convert":
            _select_engine(args)
            return _convert_command.run(args)
        if args.command == "user":
            return _principals.run(args)
        if args.command == "models":
            return _models_command.run_models(args)
        if args.command == "serve":
            return _models_command.run_serve(args)
        if args.command == "operators":
            _reject_engine_options(args, "use `teletensor operators` of the engine's version")
            return _operators_command.run(args)
        if args.command == "launch":
            _reject_engine_options(args)
            return launch.run(args)
        deadline = args.wait + 480 if args.command == "upgrade" else 5.0
        admin = _C.Admin(
            args.address, args.token, deadline, admin_token=args.admin_token, fingerprint=args.fingerprint, ca=args.ca
        )
        args.run(admin, args)
    except BrokenPipeError:  # the reader of the output has ended, as in `teletensor operators | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
        return 1
    except ConnectionError as e:
        print(f"teletensor: {_lines(e)}\nSelect the engine with --address or TELETENSOR_ADDRESS.", file=sys.stderr)
        return 1
    except (ValueError, PermissionError, FileNotFoundError) as e:
        print(f"teletensor: {_lines(e)}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "rich":
            raise
        print(f"teletensor: {args.command} needs rich: pip install 'teletensor[cli]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
