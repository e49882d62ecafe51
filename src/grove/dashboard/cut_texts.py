"""Cuts texts that tenants write: events and conditions may have messages of any length. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.explanation.model import EventView, ObjectRef, ReasonView


def cut(text: str, longest: int = timing.SHOWN_MESSAGE) -> str:
    """A text, shortened to a number of characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_event(event: EventView) -> EventView:
    """An event. The API server does not bound most of its texts."""
    return replace(
        event,
        type=cut(event.type, timing.SHOWN_NAME),
        reason=cut(event.reason, timing.SHOWN_NAME),
        about=_cut_object(event.about),
        message=cut(event.message),
    )


def cut_reason(reason: ReasonView) -> ReasonView:
    """A reason, whose message and remedy may be of a condition or of an error."""
    about = _cut_object(reason.about) if reason.about is not None else None
    return replace(reason, message=cut(reason.message), remedy=cut(reason.remedy), about=about)


def _cut_object(found: ObjectRef) -> ObjectRef:
    longest = timing.SHOWN_NAME
    return ObjectRef(cut(found.kind, longest), cut(found.name, longest), cut(found.namespace, longest))
