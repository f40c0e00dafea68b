"""Reports ratios of teletensor's time to a reference: their distribution, the highest ratios, and a plot."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .cases import SIZES

LIMITS = (0.5, 1.0, 1.2, 2.0, 3.0)
PERCENTILES = (5, 25, 50, 75, 90, 95, 99, 100)


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def rows_of(results: list[dict], **wanted: str) -> list[dict]:
    """Returns the rows that have a ratio, teletensor's time divided by the reference. Below 1 teletensor is faster."""
    return [r for r in results if r.get("ratio") and all(r[k] == v for k, v in wanted.items())]


def distribution(console: Console, results: list[dict], title: str) -> None:
    """Prints the number of ratios per range, by family and size."""
    table = Table(title=title, title_justify="left")
    for column in ("family", "size", "cases", "geometric mean", *(f"<= {x}" for x in LIMITS), f"> {LIMITS[-1]}"):
        table.add_column(column, justify="left" if column in ("family", "size") else "right")
    families = list(dict.fromkeys(r["family"] for r in results))
    for family in (*families, "all"):
        for size in SIZES:
            wanted = {"size": size} if family == "all" else {"size": size, "family": family}
            ratios = sorted(r["ratio"] for r in rows_of(results, **wanted))
            if not ratios:
                continue
            edges = (0.0, *LIMITS, math.inf)
            counts = [sum(low < x <= high for x in ratios) for low, high in zip(edges, edges[1:])]
            table.add_row(family, size, str(len(ratios)), f"{geometric_mean(ratios):.2f}", *(str(c or "") for c in counts))
    console.print(table)


def percentiles(console: Console, results: list[dict]) -> None:
    """Prints percentiles of the ratios of each size."""
    for size in SIZES:
        ratios = sorted(r["ratio"] for r in rows_of(results, size=size))
        if ratios:
            at = {p: ratios[round(p / 100 * (len(ratios) - 1))] for p in PERCENTILES}
            named = ", ".join(f"{p}%: {ratio:.2f}" for p, ratio in at.items())
            console.print(f"{size}: geometric mean {geometric_mean(ratios):.2f} of {len(ratios)}; {named}", markup=False)


def not_compared(console: Console, results: list[dict]) -> None:
    """Prints the cases without a ratio, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for r in results:
        if not r.get("ratio"):
            why = f"ours: {r['error']}" if r["error"] else f"reference: {r['error_reference']}"
            reasons.setdefault(f"{r['name']}: {why}", []).append(f"{r['dtype']} {r['size']}")
    console.print(f"{sum(map(len, reasons.values()))} of {len(results)} not compared")
    for why, where in reasons.items():
        console.print(f"  {why} ({', '.join(where)})", markup=False)


def highest_ratios(console: Console, results: list[dict], count: int) -> None:
    """Prints the operators with the highest ratios."""
    table = Table(title=f"the {count} highest ratios", title_justify="left")
    for column in ("operator", "dtype", "size", "ours, us", "reference, us", "ours / reference"):
        table.add_column(column, justify="left" if column in ("operator", "dtype", "size") else "right")
    for r in sorted(rows_of(results), key=lambda r: -r["ratio"])[:count]:
        times = f"{r['ours']:,.1f}", f"{r['reference']:,.1f}"
        table.add_row(r["name"], r["dtype"], r["size"], *times, f"{r['ratio']:.2f}")
    console.print(table)


def draw(results: list[dict], reference: str, path: Path) -> None:
    """Plots each size's ratios in ascending order, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    for size in SIZES:
        ratios = sorted(r["ratio"] for r in rows_of(results, size=size))
        if ratios:
            share = [100 * (i + 1) / len(ratios) for i in range(len(ratios))]
            axes.plot(share, ratios, label=f"{size}: geometric mean {geometric_mean(ratios):.2f}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axhline(2, color="grey", linewidth=0.8, linestyle="--")
    axes.set_yscale("log")
    axes.set_xlabel("% of operators")
    axes.set_ylabel(f"time, ours / {reference}")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
