"""The look of a series that goes by a label: that of the protocol whose name the label is, else one of its own."""

import re
import zlib

from rubato_analysis.protocols import canonical_name
from rubato_analysis.styles import DASHES, FILLS, PROTOCOLS, Marker, Style, protocol_style, variant_of

# Colours that no protocol has. Several labels may share one: marker, line and fill tell them apart.
COLORS = ("#D81BD8", "#6A1BE0", "#1B3FE0", "#E0004A", "#3FB800", "#00B8C8", "#7F6A00", "#86A800")
MARKERS: tuple[Marker, ...] = (*(style.marker for style in PROTOCOLS.values()), (4, 0, 30), (7, 1, 0), (9, 1, 0))

_SOFTSYNC = re.compile(r"(\d+|lambda|λ)-softsync")
_N_LAMBDA = 64  # lambda-softsync: an n of its own for each lambda, so it takes the end of the scale


def protocol_of_label(label: str) -> tuple[str, int | None] | None:
    """(canonical name, n) where a label is the name of a protocol: hardsync, SSGD, 4-softsync, lambda-softsync."""
    plain = label.strip().lower()
    if found := _SOFTSYNC.fullmatch(plain):
        return "n-softsync", int(found[1]) if found[1].isdigit() else _N_LAMBDA
    name = canonical_name(plain)
    return (name, None) if name in PROTOCOLS else None


def label_style(label: str, attempt: int = 0) -> Style:
    """The look that follows from a label alone; `attempt` gives others where two labels meet in one look."""
    if protocol := protocol_of_label(label):
        return protocol_style(*protocol)
    number = zlib.crc32(f"{label}{' ' * attempt}".encode())
    number, color = divmod(number, len(COLORS))
    number, marker = divmod(number, len(MARKERS))
    number, dash = divmod(number, len(DASHES))
    return Style(COLORS[color], MARKERS[marker], DASHES[dash], FILLS[number % len(FILLS)])


def label_styles(labels: list[str]) -> dict[str, Style]:
    """The look of each label. It depends on the label alone, but where two labels that are no names of protocols have
    the same marker and line: then the later in the alphabet takes its next look."""
    styles: dict[str, Style] = {}
    taken: set[tuple[Marker, object]] = set()
    for label in sorted(set(labels), key=lambda one: (protocol_of_label(one) is None, one)):
        attempt, style = 0, label_style(label)
        while protocol_of_label(label) is None and (style.marker, style.dash) in taken and attempt < 500:
            attempt += 1
            style = label_style(label, attempt)
        taken.add((style.marker, style.dash))
        styles[label] = style
    return styles


def series_styles(names: list[tuple[str, str]]) -> dict[tuple[str, str | None], Style]:
    """Of series (label, what tells it from others of the label): the first of a label has the label's look, the others
    its colour and marker with another line and fill. The look of a label alone is that of (label, None)."""
    base = label_styles([label for label, _ in names])
    styles: dict[tuple[str, str | None], Style] = {(label, None): look for label, look in base.items()}
    for label, look in base.items():
        for variant, rest in enumerate(sorted({rest for other, rest in names if other == label}, key=natural)):
            styles[label, rest] = variant_of(look, variant)
    return styles


def natural(text: str) -> list[tuple[int, float, str]]:
    """Key of an order in which `batch 8` comes before `batch 16`."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return [(0, float(part), "") if i % 2 else (1, 0.0, part) for i, part in enumerate(parts)]
