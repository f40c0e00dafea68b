"""ErrorHandler: writes a process's failure file."""

from __future__ import annotations

import faulthandler
import io
import json
import os
import sys

from ...._failure_file import VARIABLE, describe, write

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Writes an exception to the file named by TORCHELASTIC_ERROR_FILE, in JSON. Without the variable it writes nothing.

    Subclasses may override ``initialize``, ``record_exception`` and ``record_success``.
    """

    _fn_name: str | None = None

    def _get_error_file_path(self) -> str | None:
        return os.environ.get(VARIABLE)

    def set_entrypoint_fn_name(self, fn_name: str | None) -> None:
        """Sets the name of the function that `record` decorates."""
        self._fn_name = fn_name

    def initialize(self) -> None:
        """Prints Python's stacks at a fatal signal. Called before the entry point."""
        try:
            faulthandler.enable(all_threads=True)
        except (RuntimeError, ValueError, io.UnsupportedOperation):
            pass  # standard error has no descriptor

    def record_exception(self, e: BaseException) -> None:
        """Writes the exception, if the file does not exist yet."""
        if self._get_error_file_path() == os.environ.get(VARIABLE):
            write(e)
        else:
            self._write_error_file(self._get_error_file_path(), json.dumps(describe(e)))

    def record_success(self) -> None:
        """Called after the entry point has returned. Does nothing."""

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict, error_code: int = 0
    ) -> None:
        """Adds the exit code, which a process that ends by a signal cannot write itself, to the contents of its file."""
        if isinstance(rootcause_error.get("message"), dict):
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copies a child's failure file to this process's file."""
        with open(rootcause_error_file) as file:
            contents = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, contents, error_code)
        if path := self._get_error_file_path():
            self._write_error_file(path, json.dumps(contents))

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        try:
            with open(file_path, "w") as file:
                file.write(error_msg)
        except OSError as error:  # the exception that is being recorded matters more
            print(f"[record] cannot write {file_path}: {error}", file=sys.stderr)
