"""Settings in which a slip costs only itself.

Numbers out of range become the nearest that is allowed and anything else that is wrong becomes its default, so that one
wrong value never costs the rest of the file.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

log = logging.getLogger(__name__)


class Mended(BaseModel):
    """Base of such a part of the settings. Keys that are not known are kept."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _mended(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = _within(value, field.metadata)
        try:
            return handler(value)
        except ValidationError:
            log.warning("%s.%s cannot be %.80r: its default is used.", cls.__name__, info.field_name, value)
            return field.get_default(call_default_factory=True)

    @model_validator(mode="before")
    @classmethod
    def _of_another_kind(cls, data: Any) -> Any:
        return data if isinstance(data, dict | cls) else {}


def _within(value: float, limits: list[Any]) -> float:
    """The nearest allowed number; not-a-number is left for the validator to refuse."""
    if math.isnan(value):
        return value
    for limit in limits:
        value = max(value, getattr(limit, "ge", value))
        value = min(value, getattr(limit, "le", value))
    return value
