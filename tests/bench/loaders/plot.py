"""The rates of a comparison as a picture (SVG): a panel for each workload, in it a bar for each loader."""
import textwrap
from dataclasses import dataclass
from html import escape

WIDTH, COLUMNS, MARGIN = 960, 2, 20
NAMES, VALUES = 180, 70  # what the texts left and right of the bars take
LINE, BAR = 18, 12
TITLE_LETTERS = 66
OURS, OTHERS, NO_LOADER = "#c2410c", "#94a3b8", "#d5dce5"


@dataclass(frozen=True)
class Panel:
    title: str
    ours: float  # records a second
    peers: dict  # name: records a second
    no_loaders: frozenset = frozenset()  # those of `peers` that make no batches


def rate_text(rate):
    return f"{rate / 1e6:.3g} M/s" if rate >= 1e6 else f"{rate / 1e3:.3g} k/s"


def text(x, y, what, anchor="start", bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{weight}>{escape(what)}</text>'


def panel_lines(panel, left, top, width):
    """The panel's elements, and where it ends."""
    y, elements = top, []
    for line in textwrap.wrap(panel.title, TITLE_LETTERS):
        elements.append(text(left, y, line, bold=True))
        y += LINE
    bars = sorted(panel.peers.items(), key=lambda peer: -peer[1])
    longest = max(rate for _, rate in [("headrace", panel.ours), *bars])
    for name, rate in [("headrace", panel.ours), *bars]:
        colour = OURS if name == "headrace" else NO_LOADER if name in panel.no_loaders else OTHERS
        length = max(1, rate / longest * (width - NAMES - VALUES))
        elements.append(text(left + NAMES - 8, y, name, "end"))
        elements.append(f'<rect x="{left + NAMES}" y="{y - BAR + 2:.0f}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        elements.append(text(left + NAMES + length + 6, y, rate_text(rate)))
        y += LINE
    return elements, y


def svg(panels, note):
    """`note`: a line below them all."""
    width = (WIDTH - MARGIN * (COLUMNS + 1)) / COLUMNS
    elements, y = [], MARGIN + LINE
    for row in range(0, len(panels), COLUMNS):
        ends = []
        for column, panel in enumerate(panels[row:row + COLUMNS]):
            added, end = panel_lines(panel, MARGIN + column * (width + MARGIN), y, width)
            elements += added
            ends.append(end)
        y = max(ends) + LINE
    elements.append(text(MARGIN, y, note))
    height = y + MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#1e293b">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>', *elements, "</svg>", ""])
