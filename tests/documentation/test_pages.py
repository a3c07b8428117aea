"""Every code block of the README and of the documentation runs as it stands."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.documentation.code_blocks import ROOT, blocks_of, run_page, run_python

GENERATED = {"gallery", "api"}
PAGES = [
    ROOT / "README.md",
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


def test_a_block_that_fails_is_found_with_its_line(tmp_path: Path):
    page = ROOT / "docs" / "none.md"
    (tmp_path / "page.md").write_text("text\n\n```python\n1 / 0\n```\n")
    (block,) = blocks_of(tmp_path / "page.md")
    assert (block.kind, block.line) == ("python", 3)
    with pytest.raises(ZeroDivisionError) as raised:
        run_python(block, {}, f"{page}:3")
    assert raised.traceback[-1].lineno + 1 == 4
