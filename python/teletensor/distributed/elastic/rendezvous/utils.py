"""Texts that describe a rendezvous."""

from __future__ import annotations

import re

__all__ = ["parse_rendezvous_endpoint"]


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """Parses K=V,K=V. Raises ValueError."""
    config: dict[str, str] = {}
    for entry in config_str.split(",") if config_str.strip() else ():
        key, _, value = (part.strip() for part in entry.partition("="))
        if not key:
            raise ValueError("The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>.")
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value specified.")
        config[key] = value
    return config


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Returns host and port of HOST, HOST:PORT or [IPv6]:PORT; localhost if the text is empty. Raises ValueError."""
    text = (endpoint or "").strip()
    if not text:
        return "localhost", default_port
    host, colon, digits = (text, "", "") if text.endswith("]") else text.rpartition(":")
    if not colon:
        host = text
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if colon and not (re.fullmatch(r"[0-9]{1,5}", digits) and int(digits) < 2**16):
        raise ValueError(
            f"The port number of the rendezvous endpoint '{text}' must be an integer between 0 and 65536."
        )
    if not re.fullmatch(r"[\w.:-]+", host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{text}' must be a dot-separated list of labels, an IPv4 address, or an "
            "IPv6 address."
        )
    return host, int(digits) if colon else default_port
