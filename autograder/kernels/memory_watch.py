"""Runs inside the sandbox: how much memory a kernel and all that it started use together.

The limit that the system sets counts for each process; a hundred processes could each take as much.
What a process has inherited from the warm process is not its own and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def _fields(process: str) -> dict[str, int]:
    """Read parent and memory (in bytes) of a process; {} if it has ended meanwhile."""
    try:
        text = Path("/proc", process, "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    found = {name: value.split() for name, value in pairs}
    memory = {name: int(found[name][0]) * 1024 for name in ("RssAnon", "RssShmem") if name in found}
    return {"parent": int(found["PPid"][0]), **memory}


def used(roots: Iterable[int]) -> dict[int, int]:
    """Return for each root process the bytes that it and its descendants have of their own."""
    processes = {
        int(entry.name): fields
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (fields := _fields(entry.name))
    }
    inherited = _fields("self").get("RssAnon", 0)
    children: dict[int, list[int]] = {}
    for number, fields in processes.items():
        children.setdefault(fields["parent"], []).append(number)

    def tree(root: int) -> list[int]:
        found = [root]
        for number in found:  # grows meanwhile
            found += children.get(number, [])
        return found

    def own(members: list[int]) -> int:
        known = [processes[number] for number in members if number in processes]
        private = sum(max(fields.get("RssAnon", 0) - inherited, 0) for fields in known)
        return private + max((fields.get("RssShmem", 0) for fields in known), default=0)

    return {root: own(tree(root)) for root in roots}
