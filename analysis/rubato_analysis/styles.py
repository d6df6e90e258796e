"""One look for each protocol, whatever else a figure shows and in whatever order.

Colours are those of Okabe and Ito (2008), which people with colour-vision deficiencies can tell apart, and a few of
Paul Tol's where they run out. Markers and line styles differ as well, so that a figure can be read in grey.
"""

import math
import zlib
from dataclasses import dataclass, replace

from matplotlib.colors import to_hex, to_rgb

Dash = str | tuple[float, tuple[float, ...]]
Marker = str | tuple[int, int, int]  # a letter of matplotlib, or (points, 1 for a star, degrees)

SOLID: Dash = (0, ())
DASHED: Dash = (0, (5, 2))
DASHDOT: Dash = (0, (6, 1.5, 1.2, 1.5))
DOTTED: Dash = (0, (1.2, 1.4))
DASHDOTDOT: Dash = (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5))
DASHES: tuple[Dash, ...] = (SOLID, DASHED, DASHDOT, DOTTED, DASHDOTDOT)
FILLS = ("full", "none", "left", "top", "right", "bottom")


@dataclass(frozen=True)
class Style:
    """How a series is drawn. `fill` is matplotlib's fillstyle of the marker."""

    color: str
    marker: Marker
    dash: Dash = SOLID
    fill: str = "full"

    def line(self) -> dict[str, object]:
        """Keyword arguments of Axes.plot."""
        return {"color": self.color, "linestyle": self.dash, **self.points()}

    def points(self) -> dict[str, object]:
        """Keyword arguments of the markers alone."""
        return {"color": self.color, "marker": self.marker, "fillstyle": self.fill, "markerfacecoloralt": "white"}


PROTOCOLS: dict[str, Style] = {
    "hardsync": Style("#000000", "s", SOLID),
    "n-softsync": Style("#0072B2", "o", SOLID),
    "async": Style("#D55E00", "^", DASHDOT),
    "bsp": Style("#009E73", "D", SOLID),
    "asp": Style("#CC79A7", "v", DASHDOT),
    "ssp": Style("#E69F00", "P", DASHED),
    "dssp": Style("#56B4E9", "X", DASHDOTDOT),
    "bounded-delay": Style("#882255", "<", DASHED),
    "backup-workers": Style("#999933", ">", SOLID),
    "rennala": Style("#661100", "1", DASHED),
    "ringmaster": Style("#117A65", "2", DASHDOT),
    "admission": Style("#5D6D7E", "3", DOTTED),
    "plugin": Style("#4B0082", "4", SOLID),
    "sparknet": Style("#44AA99", "p", DASHED),
    "easgd": Style("#332288", "h", DASHDOT),
    "mpca": Style("#AA4499", "*", DASHED),
    "delayed": Style("#117733", "d", DOTTED),
    "gadei": Style("#CC6677", "H", DOTTED),
    "diloco": Style("#6F4E37", "8", DASHED),
    "async-diloco": Style("#B5651D", (5, 1, 0), DASHDOTDOT),
    "gosgd": Style("#556B2F", (7, 1, 0), DOTTED),
    "streaming-diloco": Style("#C71585", (10, 1, 0), SOLID),
    "local-sgd": Style("#8B0000", (4, 1, 0), DASHDOT),
    "agd": Style("#9467BD", (6, 1, 0), DOTTED),
    "allreduce": Style("#1F4E5F", (8, 1, 0), SOLID),
}

# n-softsync from n = 1 (dark) to n = 64 and beyond (light): shades of the one blue.
_N_DARK, _N_LIGHT, _N_MAX = "#005A94", "#8CC5EE", 64


def protocol_style(protocol: str, n: int | None = None, variant: int = 0) -> Style:
    """The look of a protocol.

    n: of n-softsync; shade and line style follow from it alone.
    variant: tells runs of one protocol apart in a figure (seeds, learning rates): 0 is the protocol's own look, the
    others keep colour and marker shape and change fill and line style.
    """
    style = PROTOCOLS.get(protocol)
    if style is None:
        # A stable choice among the markers; grey, because every colour has its owner.
        markers = sorted({known.marker for known in PROTOCOLS.values()}, key=str)
        style = Style("#777777", markers[zlib.crc32(protocol.encode()) % len(markers)], DOTTED)
    if protocol == "n-softsync" and n is not None:
        style = replace(style, color=_shade(n), dash=DASHES[(n - 1) % len(DASHES)])
    return variant_of(style, variant)


def variant_of(style: Style, variant: int) -> Style:
    """The same colour and marker with another fill and line; 0 is the look itself."""
    if not variant:
        return style
    dash = DASHES[(DASHES.index(style.dash) + variant) % len(DASHES)]
    fills = FILLS[1:] if style.fill == "full" else tuple(fill for fill in FILLS if fill != style.fill)
    return replace(style, dash=dash, fill=fills[(variant - 1) % len(fills)])


def _shade(n: int) -> str:
    """Colour of n-softsync: by the logarithm of n between the two ends."""
    share = min(1.0, math.log(max(n, 1)) / math.log(_N_MAX))
    dark, light = to_rgb(_N_DARK), to_rgb(_N_LIGHT)
    return to_hex([a + share * (b - a) for a, b in zip(dark, light)])


@dataclass(frozen=True)
class KindStyle:
    """How a kind of work is drawn in a timeline; `traffic` stands in the lower half of a role's row."""

    color: str
    hatch: str = ""
    traffic: bool = False


KINDS: dict[str, KindStyle] = {
    "compute": KindStyle("#0072B2"),
    "apply": KindStyle("#D55E00"),
    "evaluate": KindStyle("#CC79A7", "xx"),
    "push": KindStyle("#E69F00", "", True),
    "pull": KindStyle("#009E73", "", True),
    "relay": KindStyle("#56B4E9", "", True),
    "inquiry": KindStyle("#000000", "", True),
    "copy": KindStyle("#F0E442"),
    "wait": KindStyle("#DDDDDD", "...", False),
}


def kind_style(kind: str) -> KindStyle:
    """The look of a kind of work; unknown kinds are grey."""
    return KINDS.get(kind, KindStyle("#999999", "\\\\\\"))


# The rest of the look: quiet axes, text that survives being halved in a two-column paper.
RC: dict[str, object] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "lines.markeredgewidth": 0.9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "rubato",
    "figure.dpi": 150,
    "savefig.dpi": 150,
}
