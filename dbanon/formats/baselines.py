"""Baselines of tables as JSON documents."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbanon.domain.drift import Baseline, ColumnShape, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_document(baseline: Baseline) -> dict[str, Any]:
    """Return what ``from_document`` reads back."""
    return asdict(baseline)


def from_document(document: Mapping[str, Any]) -> Baseline:
    """Read a document that ``to_document`` wrote."""
    shape = dict(document["shape"])
    columns = tuple(ColumnShape(**column) for column in shape.pop("columns"))
    key = tuple(shape.pop("key"))
    return Baseline(Shape(**shape, key=key, columns=columns), dict(document["taxonomies"]))
