"""Attention rows out of llama.cpp: the soft-max nodes of chosen layers, read while a graph is evaluated.

llama.cpp asks `cb_eval` of every node of a graph whether its result is wanted, and calls again when it is there.
Without flash attention the attention probabilities of layer l are the node `kq_soft_max-l`: float32, in numpy's
order [streams, heads, tokens, KV slots]. The bindings do not cover `ggml_tensor`: it is described and checked here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from llama_cpp import llama_cpp as api
from llama_cpp._ctypes_extensions import load_shared_library
from numpy.typing import NDArray

_NODE = b"kq_soft_max-"
_OBJECT_BYTES = 32  # sizeof(struct ggml_object), the rest of ggml_tensor_overhead()
_PROBE_BYTES = 16_384
_OTHER_LAYOUT = "The installed llama-cpp-python has another tensor layout; install version 0.3.36."


class LayoutError(Exception):
    """This build of llama.cpp lays out its tensors in an unknown way; the message is one sentence."""


class Tensor(ctypes.Structure):
    """`struct ggml_tensor` of ggml.h."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
        ("extra", ctypes.c_void_p),
        ("padding", ctypes.c_char * 8),
    ]


class _InitParams(ctypes.Structure):
    """`struct ggml_init_params`."""

    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def _bind() -> ctypes.CDLL:
    library = load_shared_library("ggml-base", api._base_path)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    signatures = {
        "ggml_tensor_overhead": ([], size),
        "ggml_op_name": ([ctypes.c_int], ctypes.c_char_p),
        "ggml_init": ([_InitParams], pointer),
        "ggml_free": ([pointer], None),
        "ggml_new_tensor_3d": ([pointer, ctypes.c_int, *[ctypes.c_int64] * 3], pointer),
        "ggml_soft_max": ([pointer, pointer], pointer),
        "ggml_set_name": ([pointer, ctypes.c_char_p], pointer),
        "ggml_backend_tensor_get": ([pointer, pointer, size, size], None),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


def _check_layout(library: ctypes.CDLL) -> int:
    """The number of operation SOFT_MAX, after reading back a tensor of known make. Raises `LayoutError`."""
    if library.ggml_tensor_overhead() != ctypes.sizeof(Tensor) + _OBJECT_BYTES:
        raise LayoutError(_OTHER_LAYOUT)
    context = library.ggml_init(_InitParams(_PROBE_BYTES, None, True))
    try:
        source = library.ggml_new_tensor_3d(context, api.GGML_TYPE_F32, 5, 3, 2)
        probe = library.ggml_soft_max(context, source)
        library.ggml_set_name(probe, _NODE + b"7")
        tensor = Tensor.from_address(probe)
        op = library.ggml_op_name(tensor.op)
        seen = (tensor.type, *tensor.ne, *tensor.nb, tensor.src[0], tensor.name, op)
        if seen != (api.GGML_TYPE_F32, 5, 3, 2, 1, 4, 20, 60, 120, source, _NODE + b"7", b"SOFT_MAX"):
            raise LayoutError(_OTHER_LAYOUT)
        return tensor.op
    finally:
        library.ggml_free(context)


class RowCapture:
    """The attention rows of chosen (layer, head)s in one decode; `callback` is for the context's `cb_eval`.

    The object must outlive the context: llama.cpp keeps a bare pointer to `callback`.
    """

    def __init__(self, heads: Sequence[tuple[int, int]]) -> None:
        self._library = _bind()
        self._soft_max = _check_layout(self._library)
        self._by_layer: dict[int, list[tuple[int, int]]] = {}
        for index, (layer, head) in enumerate(heads):
            self._by_layer.setdefault(layer, []).append((index, head))
        self._n_heads = len(heads)
        self._last = 0
        self._rows: dict[int, NDArray[np.float32]] = {}
        self.error: BaseException | None = None
        self.callback = api.ggml_backend_sched_eval_callback(self._make_callback())

    def arm(self, last: int) -> None:
        """Read the rows of the last `last` tokens in the next decode; 0 asks for nothing."""
        self._last, self._rows, self.error = last, {}, None

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for has been delivered."""
        return self.error is None and (self._last == 0 or len(self._rows) == self._n_heads)

    def take(self, positions: int) -> NDArray[np.float32]:
        """Rows of the last decode, [heads, tokens, positions], heads as given; a KV slot is a position."""
        return np.stack([self._rows[index][:, :positions] for index in range(self._n_heads)])

    def _make_callback(self) -> Callable[[int, bool, object], bool]:
        wanted = {_NODE + b"%d" % layer: layer for layer in self._by_layer}
        op_at, name_at = Tensor.op.offset, Tensor.name.offset
        soft_max, int_at, string_at = self._soft_max, ctypes.c_int.from_address, ctypes.string_at

        def callback(address: int, ask: bool, _user_data: object) -> bool:
            # Asked some 800 times a decode: the operation first, names of soft-max nodes only. False on a
            # delivery would cut the graph short without an error, so an exception is kept for later.
            try:
                if ask:
                    if int_at(address + op_at).value != soft_max or not self._last:
                        return False
                    return string_at(address + name_at) in wanted
                self._read(address, wanted[string_at(address + name_at)])
            except BaseException as error:  # noqa: BLE001 - raised by whoever called decode
                self.error = self.error or error
            return True

        return callback

    def _read(self, address: int, layer: int) -> None:
        tensor = Tensor.from_address(address)
        slots, tokens, heads, streams = tensor.ne
        if tensor.type != api.GGML_TYPE_F32 or tensor.nb[0] != 4 or tensor.nb[1] != 4 * slots or streams != 1:
            raise LayoutError(f"The attention of layer {layer} is not laid out as one float32 array.")
        kept = min(self._last, tokens)
        for index, head in self._by_layer[layer]:
            if head >= heads:  # ggml would abort the process
                raise LayoutError(f"Layer {layer} has {heads} heads: there is no head {head}.")
            rows = np.empty((kept, slots), np.float32)
            offset = head * tensor.nb[2] + (tokens - kept) * tensor.nb[1]
            self._library.ggml_backend_tensor_get(address, rows.ctypes.data, offset, rows.nbytes)
            self._rows[index] = rows
