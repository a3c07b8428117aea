"""Code blocks of Markdown pages, and what it takes to run them.

Python blocks of a page share one namespace and one empty folder, from top to bottom, as a reader
pastes them. Of shell blocks the ``vicinal`` commands are run; ``vicinal serve`` answers the
``curl`` commands that follow, until the page ends. Other commands are looked up (does the target,
the script, the extra exist?). Comments that readers do not see say what a page cannot:

    <!-- setup             Python, run before the next block: the reader's own files and variables
    <!-- skip: reason -->  the next block is not run
    <!-- needs: module --> the page is not run where the module is missing
    <!-- output -->        the next block is what the one before printed, but for digits and ``...``
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
IGNORED = {"text", "json", "bibtex", "toml", "yaml", "html", "sql", "c", "javascript"}
PIECE = re.compile(
    r"^<!-- (?P<word>setup|skip|needs|output)(?P<rest>.*?)-->$"
    r"|^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
VICINAL = [sys.executable, "-c", "from vicinal.cli import main; main()"]
SERVED = "localhost:8000"
"""Where ``vicinal serve`` answers on the pages; in a test it takes a free port."""


@dataclass(frozen=True)
class Block:
    """A piece of a page: its language or the word of a comment, its text, and its first line."""

    kind: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks and marked comments of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in PIECE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["word"]:
            found.append(Block(match["word"], match["rest"].lstrip(":").strip(), line))
        else:
            indent = match["indent"]
            code = re.sub(rf"^{indent}", "", match["code"], flags=re.MULTILINE)
            found.append(Block(match["language"].strip() or "text", code, line))
    return found


def run_page(page: Path, folder: Path) -> None:
    """Run the blocks of a page in a folder, which is the working folder already."""
    with contextlib.ExitStack() as servers:
        _run_blocks(page, folder, servers)


def _run_blocks(page: Path, folder: Path, servers: contextlib.ExitStack) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed, skip, output = "", False, False
    for block in blocks_of(page):
        kind = block.kind
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if kind == "skip":
            assert block.text, f"{where}: say why"
            skip = True
        elif kind == "output":
            output = True
        elif kind == "needs" or kind.startswith("{"):
            continue
        elif skip and kind != "setup":
            skip = False
        elif kind in {"python", "setup"}:
            printed = run_python(block, namespace, where)
        elif kind == "sh":
            printed = run_shell(block, folder, servers, where)
        elif output:
            check_output(block.text, printed, where)
            output = False
        else:
            assert kind in IGNORED, f"{where}: a block of {kind!r}: neither run nor known"


def run_python(block: Block, namespace: dict[str, Any], where: str) -> str:
    """What the block prints; tracebacks name the page and its line."""
    code = "\n" * block.line + block.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where.rpartition(":")[0], "exec"), namespace)
    return printed.getvalue()


def run_shell(block: Block, folder: Path, servers: contextlib.ExitStack, where: str) -> str:
    """Run the ``vicinal`` commands of a block in one shell; the others must be possible."""
    lines = block.text.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    ours, answers = [], []
    for line in commands:
        words = shlex.split(line, comments=True)
        if words[:2] == ["vicinal", "serve"]:
            servers.enter_context(served(words, folder, where))
        elif words[0] == "curl":
            answers.append(ask(words, folder, where))
        elif words[0] == "vicinal":
            ours.append(line)
        else:
            check_command(words, where)
    if not ours:
        return "\n".join(answers)
    name = folder / ".bin" / "vicinal"
    if not name.exists():
        name.parent.mkdir()
        name.write_text(f'#!/bin/sh\nexec {shlex.join(VICINAL)} "$@"\n')
        name.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join(ours)],
        cwd=folder,
        env={**environment(), "PATH": f"{name.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    # 141: the reader of a pipe (head) had seen enough.
    assert done.returncode in {0, 141}, f"{where}: {done.stdout}{done.stderr}"
    return done.stdout


def environment() -> dict[str, str]:
    """That of a process which runs this source tree."""
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": source}


@contextlib.contextmanager
def served(words: list[str], folder: Path, where: str):
    """``vicinal serve`` on a free port, which a file of the folder names for :func:`ask`."""
    log = folder / ".serve.log"
    with log.open("w") as file:
        command = [*VICINAL, *words[1:], "--port", "0"]
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=file, stderr=file)
    try:
        while (found := re.search(r"running on http://([\d.:]+)", log.read_text())) is None:
            assert process.poll() is None, f"{where}: {log.read_text()}"
            time.sleep(0.1)
        (folder / ".address").write_text(found[1])
        yield
    finally:
        process.terminate()
        # Having ended in order, it passes the signal on.
        assert process.wait(60) in {0, -signal.SIGTERM}, f"{where}: {log.read_text()}"


def ask(words: list[str], folder: Path, where: str) -> str:
    """What the server answers to a ``curl`` command, as JSON."""
    (url,) = (word for word in words if word.startswith(SERVED))
    address = (folder / ".address").read_text()
    body = words[words.index("--json") + 1].encode() if "--json" in words else None
    request = urllib.request.Request(
        f"http://{url.replace(SERVED, address)}", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200, f"{where}: {answer.status}"
        return json.dumps(json.load(answer), ensure_ascii=False)


def check_command(words: list[str], where: str) -> None:
    """A command that is not run must at least name things that exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    program, *arguments = [word for word in words if not re.match(r"^[A-Z_]+=", word)]
    if program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        missing = {word for word in arguments if "=" not in word} - targets
    elif program == "pip" or arguments[:2] == ["-m", "pip"]:
        extras = re.findall(r"\[(.*?)\]", " ".join(arguments))
        known = set(project["optional-dependencies"])
        missing = {extra for group in extras for extra in group.split(",")} - known
    elif Path(program).name.startswith("python"):
        script = next((word for word in arguments if word.endswith(".py")), None)
        missing = {script} - {None} if script and not (ROOT / script).is_file() else set()
        assert script or arguments[:1] == ["-m"], f"{where}: {words}"
    else:
        known_programs = {"git", "cd", "pre-commit", "psql", "apt-get", "docker", "source"}
        missing = {program} - known_programs if "/" not in program else set()
    assert not missing, f"{where}: there is no {', '.join(map(str, missing))}"


def check_output(wanted: str, printed: str, where: str) -> None:
    """Texts must be the same, but for spaces, digits and what ``...`` stands for."""
    same = doctest.OutputChecker().check_output(_digitless(wanted), _digitless(printed), FLAGS)
    assert same, f"{where}: the block before prints\n{printed}"


def _digitless(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "0", text)
