"""The page of `retrograd report` in a notebook."""
from __future__ import annotations

import html
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Optional, Sequence

from ._program import ProgramNotFound, run

SECONDS = 300.0


def _page(path: Path) -> tuple[Optional[str], str]:
    """The page, or None and the reason."""
    try:
        made = run(["report", str(path), "-o", "-", "--quiet"], timeout=SECONDS)
    except (ProgramNotFound, OSError, TimeoutExpired) as error:
        return None, str(error)
    return (made.stdout, "") if made.stdout.startswith("<!DOCTYPE html>") else (None, made.stderr.strip())


def embedded(path: Path, facts: Sequence[str]) -> str:
    """HTML for a notebook cell: the page in a frame, so that its script reaches nothing outside; only `facts` if the page cannot be made."""
    page, reason = _page(path)
    if page is not None:
        return (f'<iframe title="Retrograd: {html.escape(path.name)}" sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
                'style="width: 100%; height: 760px; border: 1px solid #8884; border-radius: 8px"></iframe>')
    lines = [*facts, f"no report: {reason}"] if reason else list(facts)
    return "<p><code>retrograd</code><br>" + "<br>".join(html.escape(line) for line in lines) + "</p>"
