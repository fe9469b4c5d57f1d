"""Small functions of others, compiled and called by kernels through an address.

A plain number is by far the cheapest thing to hand to a kernel, and a kernel compiled once serves all such functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_UNCOMPILED: dict[int, Callable[..., Any]] = {}  # by address, when Numba is switched off


def address_of(function: Callable[..., Any], signature: Any) -> int:
    """Returns where the machine code of `function` lies; compiles it the first time it is asked for."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        _UNCOMPILED[id(function)] = function
        return id(function)
    return int(_machine_code(function, signature).address)


@cache  # which also keeps the code in memory
def _machine_code(function: Callable[..., Any], signature: Any) -> Any:
    plain = getattr(function, "py_func", function)
    try:
        return numba.cfunc(signature, cache=True)(plain)
    except RuntimeError:  # Numba cannot cache functions typed into a prompt
        return numba.cfunc(signature)(plain)


def caller(signature: Any) -> Any:
    """Returns a function that kernels use to turn an address back into something they can call."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _UNCOMPILED.__getitem__
    function_type = types.FunctionType(signature)

    @intrinsic
    def from_address(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function = cgutils.create_struct_proxy(function_type)(context, builder)  # type: ignore[no-untyped-call]
            function.c_addr = builder.inttoptr(args[0], ir.PointerType(ir.IntType(8)))
            return function._getvalue()

        return function_type(types.int64), generate

    return from_address
