"""The same fit, and the same certificate, over rows that lie on many machines."""

from __future__ import annotations
