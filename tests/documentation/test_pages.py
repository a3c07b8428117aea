"""Every code block of the README and of the documentation runs as it stands."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from tests.documentation.code_blocks import ROOT, blocks_of, run_page, run_python

MARKS = {"setup", "skip", "needs", "output"}
GENERATED = {"gallery", "api"}
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not GENERATED & set(page.relative_to(ROOT / "docs").parts)
    ),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short fits
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # of their trainers
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_code_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    needed = {b.text for b in blocks_of(page) if b.kind == "needs"}
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_block_is_overlooked(page: Path):
    """Each fence begins or ends a block that was found, whatever its indent and its marks."""
    fences = re.findall(r"^[ >]*(?:`{3,}|~{3,})", page.read_text(encoding="utf-8"), re.MULTILINE)
    blocks = [block for block in blocks_of(page) if block.kind not in MARKS]
    assert len(fences) == 2 * len(blocks)


def test_what_is_not_run_needs_hardware_that_a_test_lacks():
    skipped = {block.text for page in PAGES for block in blocks_of(page) if block.kind == "skip"}
    assert skipped == {
        "needs an NVIDIA GPU",
        "needs several NVIDIA GPUs and torchrun",
        "needs a Dask cluster",
    }


def test_what_the_pages_need_is_installed_by_make_test():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    installed = {
        re.split(r"[\[>=; ]", requirement)[0].removesuffix("-learn").replace("-", "_")
        for requirements in extras.values()
        for requirement in requirements
    }
    needed = {block.text for page in PAGES for block in blocks_of(page) if block.kind == "needs"}
    assert {name.partition(".")[0] for name in needed} <= installed


def test_a_block_that_fails_is_found_with_its_line(tmp_path: Path):
    page = ROOT / "docs" / "none.md"
    (tmp_path / "page.md").write_text("text\n\n```python\n1 / 0\n```\n")
    (block,) = blocks_of(tmp_path / "page.md")
    assert (block.kind, block.line) == ("python", 3)
    with pytest.raises(ZeroDivisionError) as raised:
        run_python(block, {}, f"{page}:3")
    assert raised.traceback[-1].lineno + 1 == 4
