"""Where vLLM and transformers disagree about a model's configuration, and where versions of vLLM differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def plain_attributes(config: Any) -> Any:
    """Let vLLM read what newer transformers keep per layer: Gemma 4's head widths of sliding and full layers.

    vLLM 0.26 reads `head_dim` and `global_head_dim` of the text configuration; transformers from 5.17 on refuse the
    first as ambiguous and drop the second, and with the first alone the full layers would get sliding heads.
    """
    text = config.get_text_config()
    if "head_dim" not in (getattr(text, "per_layer_attributes", None) or ()):
        return config
    text.allow_global_per_layer_attribute_access = True
    full = [number for number, kind in enumerate(text.layer_types) if kind == "full_attention"]
    if full and not hasattr(text, "global_head_dim"):
        text.global_head_dim = text.per_layer_config[full[0]].head_dim
    return config


def kv_cache_groups() -> Callable[[Any, Any], list[Any]]:
    """vLLM's function from its configuration and the layers' KV-cache specs to their groups."""
    try:
        from vllm.v1.core.kv_cache_planning import get_kv_cache_groups  # from 0.33 on
    except ImportError:
        from vllm.v1.core.kv_cache_utils import get_kv_cache_groups
    groups: Callable[[Any, Any], list[Any]] = get_kv_cache_groups
    return groups
