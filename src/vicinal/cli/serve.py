"""``vicinal serve``: a model as a web service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vicinal.cli.options import ModelPath
from vicinal.cli.output import Output
from vicinal.exceptions import missing_extra

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "VICINAL_TOKEN"


def serve(
    model: ModelPath,
    host: Annotated[str, typer.Option(help="Address; others than 127.0.0.1 are seen.")] = LOOPBACK[
        0
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help=f"File of the token; else ${TOKEN}."),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a request.")] = 1000,
    max_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 5_000_000,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let clients add and forget training rows.")
    ] = False,
) -> None:
    r"""Serve a model: predictions, neighbors and explanations by HTTP, and a page to try rows.

    Needs pip install 'vicinal\[serve]'. Only this machine is answered unless --host says
    otherwise. With a token, requests need the header Authorization: Bearer TOKEN. When the model
    file is replaced, the new one is read, and no request is lost. Ctrl-C or SIGTERM ends the
    server when the requests that run are answered.

    [bold]Examples[/bold]

    vicinal serve model.vicinal

    curl -s localhost:8000/predict --json '{"rows": [{"height": 51, "soil": "clay"}]}'
    """
    try:
        import uvicorn

        from vicinal.serve import ModelSource, ServeSettings, create_app
    except ImportError as error:
        raise missing_extra("vicinal serve", "fastapi and uvicorn", "serve") from error
    token = _token(token_file)
    output, local = Output(as_json=False), host in LOOPBACK
    settings = ServeSettings(
        token=token,
        max_rows=max_rows,
        max_bytes=max_bytes,
        changes=allow_changes,
        hosts=("127.0.0.1", "localhost", "[::1]") if local else None,
        threads=2 * (os.cpu_count() or 1),
    )
    app = create_app(ModelSource(model), settings)
    if not local and token is None:
        output.remark(f"note: everybody who reaches {host} may ask; give --token-file")
    config = uvicorn.Config(
        app, host=host, port=port, log_level="info", server_header=False,
        timeout_graceful_shutdown=30,
    )  # fmt: skip
    uvicorn.Server(config).run()


def _token(path: Path | None) -> str | None:
    """The token of the file or the environment; a usage error where it could not be sent."""
    token = os.environ.get(TOKEN) if path is None else path.read_text(encoding="utf-8").strip()
    if token is None or (path is None and not token):
        return None
    if not token.isascii() or not token.isprintable() or " " in token or len(token) < 8:
        raise typer.BadParameter(
            "a token has at least 8 characters, printable ASCII without spaces",
            param_hint="--token-file" if path else TOKEN,
        )
    return token
