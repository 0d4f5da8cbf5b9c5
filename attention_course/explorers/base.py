"""`Explorer`: an interactive figure that is written once and can be seen everywhere.

An explorer is a Python class with a few traits and, beside its module, two files: `name.js` (an
ES module with `export default { render }`, as anywidget wants it) and `name.css`. All computing and
drawing happens in the browser, so a slider answers at once even on a slow connection, with a busy
kernel, or with no kernel at all.

Its output holds three twins:

- the live widget, whose traits Python can read after the reader has moved something;
- `text/html`: the same script in a sandboxed frame with the state inside, for saved notebooks,
  exported pages and nbgrader's feedback;
- `text/plain`: what the figure shows, in words.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anywidget

from attention_course.explorers.frame import code_for_script, json_for_script, sandboxed_frame

_HERE = Path(__file__).parent
_COMMON_JS = (_HERE / "common.js").read_text(encoding="utf-8")
_COMMON_CSS = (_HERE / "common.css").read_text(encoding="utf-8")
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# Plays the part of the widget model where there is no kernel: same methods, nothing is sent.
_STANDALONE_JS = """
const state = JSON.parse(document.getElementById("state").textContent);
const listeners = {};
EXPLORER.render({
  el: document.getElementById("explorer"),
  model: {
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      (listeners["change:" + name] ?? []).forEach((listener) => listener());
    },
    save_changes() {},
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off() {},
  },
});
"""


class Explorer(anywidget.AnyWidget):
    """Base class of the explorers.

    A subclass sets `files` (the name shared by its script and style sheet), `title`, its synced
    traits, and the methods `text` and `frame_height`.
    """

    files: str | None = None
    title = "Explorer"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("files"):
            folder = Path(sys.modules[cls.__module__].__file__).parent
            own_js = (folder / f"{cls.files}.js").read_text(encoding="utf-8")
            own_css = (folder / f"{cls.files}.css").read_text(encoding="utf-8")
            cls._esm = f"{_COMMON_JS}\n{own_js}"
            cls._css = f"{_COMMON_CSS}\n{own_css}"

    def text(self) -> str:
        """What the figure shows now, in words."""
        raise NotImplementedError(f"{type(self).__name__} needs a method text()")

    def frame_height(self) -> int:
        """Height of the frame in the HTML twin, in CSS pixels."""
        return 420

    def state(self) -> dict:
        """The synced traits that belong to the explorer, as JSON can hold them."""
        inherited = set(Explorer.class_trait_names())
        return {
            name: getattr(self, name)
            for name in self.trait_names(sync=True)
            if name not in inherited and not name.startswith("_")
        }

    def to_html(self) -> str:
        """The HTML twin: a frame that works with no kernel and no network, and a text fold."""
        script = code_for_script(self._esm.replace("export default", "const EXPLORER ="))
        body = (
            '<div id="explorer"></div>\n'
            f'<script type="application/json" id="state">{json_for_script(self.state())}</script>\n'
            f'<script type="module">{script}\n{_STANDALONE_JS}</script>'
        )
        return sandboxed_frame(
            body,
            title=self.title,
            height=self.frame_height(),
            text=self.text(),
            style=self._css,
        )

    def __repr__(self):
        return self.text()

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = self.text()
        data["text/html"] = self.to_html()
        if os.environ.get("NBGRADER_EXECUTION"):
            # A machine runs this cell and a person reads the result as a plain page.
            data.pop(_WIDGET_VIEW, None)
        return data, metadata
