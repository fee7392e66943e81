"""Triton's interpreter on a CPU; TRITON_INTERPRET=1 has to be set before torch is imported."""

from triton.runtime import interpreter

_patch = interpreter._patch_lang_tensor


def _patch_for_new_numpy(tensor, scope):
    """Triton 3.6 takes int() of an array of one number, which numpy 2.4 no longer allows."""
    _patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = _patch_for_new_numpy
