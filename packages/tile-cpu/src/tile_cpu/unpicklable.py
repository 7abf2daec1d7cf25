"""What holds objects of TVM: they end the process that pickles them."""

from __future__ import annotations

from typing import NoReturn

from tile_core.errors import UnsupportedOnTarget
from tile_core.records import Uncopied


class Unpicklable(Uncopied):
    """A stage of compilation that cannot leave its process."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled.

        Raises
        ------
        UnsupportedOnTarget
            Always.
        """
        raise UnsupportedOnTarget(
            f"{type(self).__name__} of the CPU backend cannot be pickled: TVM's objects stay in "
            "their process",
            hint="pickle the kernel: pickle.dumps(kernel)",
        )
