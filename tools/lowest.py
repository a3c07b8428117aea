"""The lowest versions that ``pyproject.toml`` admits, as constraints for pip.

python tools/lowest.py cli report > build/lowest.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>[0-9.]+)")


def lowest(extras: list[str]) -> list[str]:
    """``name==version`` for every requirement of the library and of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    matches = [REQUIREMENT.match(requirement) for requirement in wanted]
    return sorted({f"{m['name']}=={m['version']}" for m in matches if m and m["name"] != "vicinal"})


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
