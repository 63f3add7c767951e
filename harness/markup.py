"""HTML in small pieces: text is escaped on its way in, and only the page's own script may run."""

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import Any

from harness.verdicts import BREAKS, ERROR, HOLDS, KNOWN, NOT_OFFERED

HERE = Path(__file__).parent
ORDER = (ERROR, BREAKS, KNOWN, HOLDS, NOT_OFFERED)
SIGNS = {ERROR: "!", BREAKS: "✕", KNOWN: "✕", HOLDS: "✓", NOT_OFFERED: "·"}
CLASSES = {ERROR: "error", BREAKS: "breaks", KNOWN: "known", HOLDS: "holds", NOT_OFFERED: "none"}


class Html(str):
    """Text that is HTML already; any other text is escaped on its way in."""


def tag(name: str, *inside: Any, **attributes: Any) -> Html:
    """tag("a", "text", href="#x") -> <a href="#x">text</a>; class_ is class, None leaves an attribute out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{said}>{joined(*inside)}</{name}>")


def joined(*parts: Any) -> Html:
    """Parts one after another; lists in place, None left out, plain text escaped."""
    found = (p for part in parts for p in (part if isinstance(part, list) else [part]) if p is not None)
    return Html("".join(p if isinstance(p, Html) else escape(str(p)) for p in found))


def folded(title: Any, *inside: Any, **attributes: Any) -> Html:
    return tag("details", tag("summary", title), *inside, **attributes)


def sign(verdict: str, **attributes: Any) -> Html:
    return tag("span", SIGNS[verdict], class_=f"v {CLASSES[verdict]}", **attributes)


def permalink(claim: str) -> str:
    return "#" + anchor(claim)


def anchor(claim: str) -> str:
    return claim.replace(" ", "-")


def document(body: Html) -> str:
    """The page around its body. Only this script may run, by its digest, and nothing is loaded."""
    style, script = (HERE / "page.css").read_text("utf-8"), (HERE / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>Transformer spec: verdicts</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )
