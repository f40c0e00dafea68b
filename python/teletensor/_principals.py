"""``teletensor user``: adds, lists and revokes the principals of an engine, in the file of its option --principals.

The file is JSON without secrets: it has the SHA-256 of each token. A running engine reads it again within a second.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from typing import Any

from . import _C
from ._printable import printable
from ._status_rows import size

ROLES = ("observer", "user", "operator")
# Fields of the file with limits of a principal's sessions together: whether in bytes, and what they limit.
LIMITS = {
    "memory": (True, "tensors on all devices and bookkeeping"),
    "host_memory": (True, "tensors on the CPU and bookkeeping"),
    "gpu_memory": (True, "tensors on each GPU"),
    "handles": (False, "tensors with a name"),
    "transfers": (False, "uploads and downloads at a time"),
    "checkpoints": (True, "files of checkpoints"),
}
PRIORITIES = ("interactive", "batch")
MAX_WEIGHT = 1000
_NAME = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9._@-]{0,63}")


def default_file() -> str:
    """The file that TELETENSOR_PRINCIPALS names, else teletensor/principals.json in the user's configuration folder."""
    if named := os.environ.get("TELETENSOR_PRINCIPALS"):
        return named
    if not (config := _C.user_folder("config")):
        raise ValueError("[user] expected an absolute path in HOME, XDG_CONFIG_HOME or the password database: set HOME, or use --file")
    return os.path.join(config, "teletensor", "principals.json")


def _read(file: str) -> list[dict[str, Any]]:
    try:
        with open(file) as opened:
            return json.load(opened)["principals"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"[user] expected principals in {file}: {error}") from None


@contextlib.contextmanager
def _changed(file: str) -> Iterator[list[dict[str, Any]]]:
    """The principals of the file, which is replaced at the end of the context. Other commands wait meanwhile."""
    file = os.path.realpath(file)
    folder = os.path.dirname(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{file}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        principals = _read(file)
        yield principals
        _check_certificates(principals)
        descriptor, draft = tempfile.mkstemp(dir=folder, prefix=".principals-")
        try:
            with os.fdopen(descriptor, "w") as out:
                if os.path.exists(file):  # an engine of another user goes on reading it
                    before = os.stat(file)
                    os.fchmod(descriptor, before.st_mode & 0o755)
                    if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                json.dump({"principals": principals}, out, indent=2)
                out.write("\n")
                out.flush()
                os.fsync(out.fileno())
            os.replace(draft, file)
        except BaseException:
            os.unlink(draft)
            raise


def _check_certificates(principals: list[dict[str, Any]]) -> None:
    """Raises ValueError if the engine would refuse the names of certificates."""
    names = [name for each in principals for name in each.get("certificates", [])]
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(f"[user] expected names of certificates that no other principal has, got {name!r}")


def _checked_date(text: str) -> str:
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d))?", text):
            raise ValueError
        datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"[user] expected a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got {text!r}") from None
    return text


def _checked_limit(field: str, text: str) -> int:
    """The number that `text` states: "8GB" and "8GiB" are 8 * 2**30, as in the engine's options."""
    in_bytes, _ = LIMITS[field]
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)I?B?", text.upper()) if in_bytes else re.fullmatch(r"(\d+)()", text)
    if not found:
        raise ValueError(f"[user] expected {field} as {'bytes, such as 8GB' if in_bytes else 'a number'}, got {text!r}")
    number = int(found[1]) << 10 * " KMGT".index(found[2] or " ")
    if number >= 1 << 63:
        raise ValueError(f"[user] expected {field} below 2**63, got {text!r}")
    return number


def _set(entry: dict[str, Any], limits: dict[str, str], expires: str | None = None, sessions: int | None = None,
         weight: int | None = None, priority: str | None = None) -> None:  # fmt: skip
    """Sets fields of an entry; an empty date and 0 remove one."""
    if weight is not None and not 1 <= weight <= MAX_WEIGHT:
        raise ValueError(f"[user] expected a weight from 1 to {MAX_WEIGHT}, got {weight}")
    if sessions is not None and sessions < 0:
        raise ValueError(f"[user] expected a number of sessions, got {sessions}")
    values: dict[str, Any] = {field: _checked_limit(field, text) for field, text in limits.items()}
    if expires is not None:
        values["expires"] = expires and _checked_date(expires)
    values |= {f: v for f, v in (("sessions", sessions), ("weight", weight), ("priority", priority)) if v is not None}
    for field, value in values.items():
        entry.pop(field, None)
        if value:
            entry[field] = value


def add(
    file: str, name: str, *, role: str = "user", certificates: list[str] | None = None, limits: dict[str, str] | None = None,
    **fields: Any,
) -> str | None:  # fmt: skip
    """Adds a principal. Returns its new token, or None if it is recognised by certificates only.

    Args:
        fields: `expires`, `sessions`, `weight`, `priority`; None leaves one out.

    Raises:
        ValueError: the name is malformed or exists; `expires` is not a date; a number or a limit is malformed.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"[user] expected a name of 1 to 64 letters, digits and .-_@, got {name!r}")
    if name in ("user", "admin"):
        raise ValueError(f"[user] {name} is the principal of the engine's own {name} token")
    entry: dict[str, Any] = {"name": name, "role": role}
    token = None if certificates else secrets.token_hex(32)
    if token:
        entry["token_sha256"] = hashlib.sha256(token.encode()).hexdigest()
    else:
        entry["certificates"] = certificates
    _set(entry, limits or {}, **fields)
    with _changed(file) as principals:
        if any(each.get("name") == name for each in principals):
            raise ValueError(f"[user] {name} exists; revoke it first")
        principals.append(entry)
    return token


def change(file: str, name: str, *, limits: dict[str, str], **fields: Any) -> None:
    """Changes a principal's fields and limits, whose sessions go on. An empty date and 0 remove one.

    Raises:
        ValueError: there is none of that name; `expires` is not a date; a number or a limit is malformed.
    """
    with _changed(file) as principals:
        found = [each for each in principals if each.get("name") == name]
        if not found:
            raise ValueError(f"[user] no principal {name} in {file}")
        _set(found[0], limits, **fields)


def revoke(file: str, name: str) -> None:
    """Removes a principal, whose sessions then end. Raises ValueError if there is none of that name."""
    with _changed(file) as principals:
        remaining = [each for each in principals if each.get("name") != name]
        if len(remaining) == len(principals):
            raise ValueError(f"[user] no principal {name} in {file}")
        principals[:] = remaining


def table(file: str):
    """Returns the principals as a rich table."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=f"principals in {file}", title_justify="left")
    for column in ("name", "role", "recognised by", "expires", "sessions", "weight", "limits"):
        shown.add_column(column, overflow="fold")  # nothing is cut off
    for each in _read(file):
        by = ["token"] if "token_sha256" in each else []
        by += [f"certificate {name}" for name in each.get("certificates", [])]
        limits = [f"{field} {size(each[field]) if in_bytes else each[field]}" for field, (in_bytes, _) in LIMITS.items() if field in each]
        weight = f"{each.get('weight', 1)}{' batch' if each.get('priority') == 'batch' else ''}"
        row = (each["name"], each.get("role", "user"), ", ".join(by), each.get("expires", "never"), str(each.get("sessions", "64")),
               weight, ", ".join(limits))  # fmt: skip
        shown.add_row(*(Text(printable(cell)) for cell in row))
    return shown


def add_arguments(parser) -> None:
    """Adds the sub-commands add, set, list and revoke."""
    parser.add_argument("--file", default="", help="file of principals (default: TELETENSOR_PRINCIPALS, then your configuration folder's)")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("add", help="add a principal and print its token, which is stored nowhere")
    new.add_argument("name", help="1 to 64 letters, digits and .-_@")
    new.add_argument("--role", choices=ROLES, default="user",
                     help="observer: status only; user: sessions; operator: administrative calls, too (default: user)")  # fmt: skip
    new.add_argument("--certificate", action="append", default=[], metavar="NAME",
                     help="recognise it by a client certificate of this name instead of a token; may be repeated")  # fmt: skip
    changed = actions.add_parser("set", help="change the date and the limits of a principal, whose sessions go on; 0 removes a limit")
    changed.add_argument("name")
    for each in (new, changed):
        each.add_argument("--expires", metavar="DATE", help="such as 2027-01-31 (its end, UTC) or 2027-01-31T12:00:00Z")
        each.add_argument("--sessions", type=int, metavar="N", help="maximum number of sessions at a time (default: 64)")
        each.add_argument("--weight", type=int, metavar="N", help=f"part of the processors' time, from 1 to {MAX_WEIGHT} (default: 1)")
        each.add_argument("--priority", choices=PRIORITIES, help="batch: runs when no interactive one has work (default: interactive)")
        limits = each.add_argument_group("limits of its sessions together")
        for field, (in_bytes, what) in LIMITS.items():
            limits.add_argument(f"--{field.replace('_', '-')}", metavar="BYTES" if in_bytes else "N",
                                help=f"{what}{', such as 8GB' if in_bytes else ''}")  # fmt: skip
    actions.add_parser("list", help="show the principals")
    old = actions.add_parser("revoke", help="remove a principal; its sessions end within a second")
    old.add_argument("name")


def run(args) -> int:
    """Runs the command. Returns its exit status."""
    file = args.file or default_file()
    if args.action in ("add", "set"):
        limits = {field: text for field in LIMITS if (text := getattr(args, field)) is not None}
        changes = {"expires": args.expires, "sessions": args.sessions, "weight": args.weight, "priority": args.priority, "limits": limits}
    if args.action == "set":
        change(file, args.name, **changes)
        print(f"{args.name} was changed in {file}")
    elif args.action == "add":
        token = add(file, args.name, role=args.role, certificates=args.certificate, **changes)
        if token:
            print(token)
    elif args.action == "revoke":
        revoke(file, args.name)
        print(f"{args.name} was removed from {file}")
    else:
        from rich.console import Console

        Console().print(table(file))
    return 0
