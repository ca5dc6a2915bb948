"""How points are shown. Must not be used to compute with: points stay exact, rounding belongs to display."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def plain(points: Decimal) -> str:
    """At most two decimals, halves away from zero, no trailing zeros and no exponent: 10/3 is shown as 3.33."""
    text = f"{points.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP):f}"
    return text.rstrip("0").rstrip(".").replace("-0", "0") if float(text) == 0 else text.rstrip("0").rstrip(".")
