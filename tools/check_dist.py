"""Check the wheel and the source archive in a folder: contents, metadata, and that they install.

python -m tools.check_dist dist [--install]

``--install`` makes two empty environments, one with the lowest versions that ``pyproject.toml``
admits and one with the newest that pip finds, installs the wheel, and fits a model in each.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from tools.lowest import ROOT, lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {"vicinal/__init__.py", "vicinal/py.typed"}
FOREIGN = re.compile(r"(^|/)(tests?|experiments|benchmarks|results|\.ci|conftest\.py)(/|$)")
SMOKE = """
import numpy as np, vicinal as vc
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
print(vc.__version__, vc.NCA(max_iter=20, tol=1e-2).fit(X, y).transform(X).shape)
print(vc.ANNClassifier(effort=0.1).fit(X, y).score(X, y))
"""


def check_wheel(path: Path) -> list[str]:
    """What is wrong with the wheel."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(info).decode())
        scripts = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    tops = {name.partition("/")[0] for name in names}
    wrong = [f"{name} does not belong there" for name in names if FOREIGN.search(name)]
    wrong += [f"{name} is missing" for name in sorted(missing(names))]
    wrong += [f"{top} does not belong there" for top in tops if not re.match(r"vicinal(-|$)", top)]
    wrong += [] if "vicinal.cli:main" in scripts else ["the command is missing"]
    return wrong + check_metadata(metadata)


def missing(names: list[str]) -> set[str]:
    """Files of the package that are not in the wheel, and those that must be everywhere."""
    source = ROOT / "src"
    files = (file for file in (source / "vicinal").rglob("*") if file.is_file())
    package = {
        file.relative_to(source).as_posix()
        for file in files
        if "__pycache__" not in file.parts and file.suffix not in {".nbi", ".nbc"}
    }
    return (package | NEEDED) - set(names)


def check_metadata(metadata: Message) -> list[str]:
    """Name, version, requirements and texts as ``pyproject.toml`` has them."""
    wrong = [
        f"{field} is {metadata[field]}"
        for field in ("Name", "Version")
        if metadata[field] != PROJECT[field.lower()]
    ]
    required = metadata.get_all("Requires-Dist") or []
    wrong += [
        f"the requirement {wanted} is missing"
        for wanted in PROJECT["dependencies"]
        if wanted.replace(" ", "") not in {text.replace(" ", "") for text in required}
    ]
    for field in ("Requires-Python", "License-Expression", "Summary", "Description-Content-Type"):
        if not metadata[field]:
            wrong.append(f"{field} is missing")
    return wrong


def check_sdist(path: Path) -> list[str]:
    """What is wrong with the source archive."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/vicinal/__init__.py"}
    wrong = [f"{name} does not belong there" for name in names if FOREIGN.search(name)]
    return wrong + [f"{name} is missing" for name in sorted(needed - set(names))]


def install(wheel: Path, constraints: list[str], what: str) -> None:
    """Install the wheel into an empty environment, and fit a model there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        python = next(
            path
            for path in (place / "venv/bin/python", place / "venv/Scripts/python.exe")
            if path.exists()
        )
        (place / "constraints.txt").write_text("\n".join(constraints))
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        options = ["--quiet", "--no-compile", "--only-binary", ":all:"]
        limits = ["-c", str(place / "constraints.txt")]
        subprocess.run([*pip, "install", *options, *limits, str(wheel)], check=True)
        subprocess.run([*pip, "check"], check=True)
        done = subprocess.run(
            [str(python), "-W", "ignore", "-c", SMOKE], cwd=place, check=True, capture_output=True
        )
        versions = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
        installed = ", ".join(line for line in versions.stdout.split() if "@" not in line)
        print(f"{what}: {installed}\n  {done.stdout.decode().strip()}")


def main(folder: Path, installing: bool) -> int:
    """Print what is wrong; 1 if anything is."""
    (wheel,) = folder.glob("vicinal-*.whl")
    (sdist,) = folder.glob("vicinal-*.tar.gz")
    wrong = [f"{wheel.name}: {text}" for text in check_wheel(wheel)]
    wrong += [f"{sdist.name}: {text}" for text in check_sdist(sdist)]
    print("\n".join(wrong) or f"{wheel.name}, {sdist.name}: contents and metadata are right")
    if installing and not wrong:
        install(wheel, lowest([]), "lowest")
        install(wheel, [], "newest")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--install" in sys.argv))
