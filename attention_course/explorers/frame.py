"""A sandboxed iframe that carries a whole page inside one HTML attribute.

Everything interactive in this course that must survive without a kernel (a saved notebook, an
exported page, nbgrader's feedback) goes through `sandboxed_frame`: scripts run, but with an origin
of their own and a content policy that refuses every request, so a frame can reach neither the
network nor the Jupyter page around it.
"""

from __future__ import annotations

import html
import json
import re

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'"
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>:root {{ color-scheme: light; }} body {{ margin: 4px; background: #fff; color: #111; }}
{style}</style>
</head><body>
{body}
</body></html>"""


def json_for_script(value: object) -> str:
    r"""JSON text that is safe inside a `<script>` element: every `<` is written `\u003c`."""
    return json.dumps(value).replace("<", "\\u003c")


def code_for_script(code: str) -> str:
    """JavaScript that cannot end its own `<script>` element.

    `</script` and `<!--` get a backslash; inside JavaScript strings, template literals and regular
    expressions, the only places where they can stand, the meaning stays the same.
    """
    code = re.sub(r"</(script)", r"<\\/\1", code, flags=re.IGNORECASE)
    return code.replace("<!--", "<\\!--")


def sandboxed_frame(body: str, *, title: str, height: int, text: str, style: str = "") -> str:
    """The HTML of an iframe that shows `body`, followed by a fold that says the same in words.

    Args:
        body: inner HTML, scripts included (see `json_for_script` and `code_for_script`).
        title: the accessible name of the frame; escaped here.
        height: of the frame, in CSS pixels.
        text: what the frame shows, in words; escaped here. Viewers that drop iframes keep it.
        style: CSS for the page inside.

    Returns:
        HTML text that asks nothing of the network.
    """
    page = _PAGE.format(policy=POLICY, title=html.escape(title), style=style, body=body)
    source = page.replace("&", "&amp;").replace('"', "&quot;")
    return (
        f'<iframe sandbox="allow-scripts" title="{html.escape(title)}" srcdoc="{source}" '
        f'style="width:100%;height:{int(height)}px;border:0;resize:vertical;overflow:auto;'
        f'background:#fff"></iframe>\n'
        f"<details><summary>The same in words</summary><pre>{html.escape(text)}</pre></details>"
    )
