"""Markdown as it looks best between other lines: headings at the left, links with their true address.

A link that a terminal would open on a click could be called anything; so its address is text, and stands there.

It does not know whose words they are; they are harmless already.
"""

from typing import TYPE_CHECKING

from rich.markdown import Heading, Markdown, MarkdownElement

if TYPE_CHECKING:
    from typing import ClassVar

    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["markdown"]


class _Heading(Heading):
    """A heading that is no banner."""

    def __rich_console__(self, _console: "Console", _options: "ConsoleOptions") -> "RenderResult":
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _Markdown(Markdown):
    elements: "ClassVar[dict[str, type[MarkdownElement]]]" = Markdown.elements | {"heading_open": _Heading}


def markdown(text: str) -> Markdown:
    """The text, ready to be printed."""
    return _Markdown(text, code_theme="ansi_dark", inline_code_theme="ansi_dark", hyperlinks=False)
