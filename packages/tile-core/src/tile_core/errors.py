"""Errors raised on purpose: each has a code, a place, a reason and a way out.

Those that launches raise too, and their root, are `tile_launch.errors`; what the interpreter and
the emulator find is in `tile_core.finding_errors`. All are imported from here.
"""

from __future__ import annotations

from typing import Any

from tile_core.finding_errors import BarrierMisuse as BarrierMisuse
from tile_core.finding_errors import DataRace as DataRace
from tile_core.finding_errors import Deadlock as Deadlock
from tile_core.finding_errors import InstructionHazard as InstructionHazard
from tile_core.finding_errors import MisalignedAccess as MisalignedAccess
from tile_core.finding_errors import MissingFence as MissingFence
from tile_core.finding_errors import MissingWait as MissingWait
from tile_core.finding_errors import OutOfBounds as OutOfBounds
from tile_core.finding_errors import UndefinedOperation as UndefinedOperation
from tile_core.finding_errors import UninitialisedRead as UninitialisedRead
from tile_core.finding_errors import UnknownInstruction as UnknownInstruction
from tile_launch.errors import ArgumentCountError as ArgumentCountError
from tile_launch.errors import ArgumentDtypeError as ArgumentDtypeError
from tile_launch.errors import ArgumentLayoutError as ArgumentLayoutError
from tile_launch.errors import ArgumentShapeError as ArgumentShapeError
from tile_launch.errors import ArgumentTypeError as ArgumentTypeError
from tile_launch.errors import AssumptionError as AssumptionError
from tile_launch.errors import ContractViolation as ContractViolation
from tile_launch.errors import DeviceAssertError as DeviceAssertError
from tile_launch.errors import EmptyGridError as EmptyGridError
from tile_launch.errors import LaunchError as LaunchError
from tile_launch.errors import MissingFeature as MissingFeature
from tile_launch.errors import Note as Note
from tile_launch.errors import RankError as RankError
from tile_launch.errors import RankLost as RankLost
from tile_launch.errors import RankMismatch as RankMismatch
from tile_launch.errors import RankTimeout as RankTimeout
from tile_launch.errors import Span as Span
from tile_launch.errors import TileError as TileError
from tile_launch.errors import TileWarning as TileWarning

# TL1xxx: the Python inside the kernel ------------------------------------------------------


class FrontendError(TileError):
    """A Python construct that has no meaning inside a kernel."""

    code = "TL1001"


class FrontendValueError(FrontendError, ValueError):
    """An argument of a language function has a value it does not accept."""

    code = "TL1002"


class FrontendTypeError(FrontendError, TypeError):
    """An argument of a language function has a type it does not accept."""

    code = "TL1003"


class ScopeError(FrontendError, RuntimeError):
    """A name is used outside the block that bound it, or outside a kernel."""

    code = "TL1004"


class MutationError(FrontendError, RuntimeError):
    """An immutable value or a whole buffer is assigned to."""

    code = "TL1005"


class ControlFlowError(FrontendError, RuntimeError):
    """A loop or branch that cannot be traced: endless, or in the wrong place."""

    code = "TL1006"


class SignatureError(FrontendError, ValueError):
    """The parameters of a kernel function are not what the language asks for."""

    code = "TL1007"


class ConstBindingError(FrontendError, RuntimeError):
    """A `T.const` symbol is misplaced, or no tensor dimension determines it."""

    code = "TL1008"


class OutputError(FrontendError, ValueError):
    """`out_idx`, `T.empty` and `return` contradict each other."""

    code = "TL1009"


class TraceAssertionError(FrontendError, AssertionError):
    """An `assert` on a compile-time value inside a kernel is false."""

    code = "TL1010"


class ReturnInControlFlow(ControlFlowError, NotImplementedError):
    """A `return` stands inside a branch or loop that is taken only at run time."""

    code = "TL1011"


class MissingReturn(FrontendError, RuntimeError):
    """A tensor declared with `T.empty` is not returned."""

    code = "TL1012"


class UnknownName(FrontendError, AttributeError):
    """An object of the language has no attribute of this name."""

    code = "TL1013"


class UnsupportedForm(FrontendError, NotImplementedError):
    """An operation exists, but not in this form."""

    code = "TL1014"


class ContractError(FrontendValueError):
    """A contract on a dimension contradicts itself, or its type."""

    code = "TL1015"


class ParseError(TileError, ValueError):
    """The text of a printed kernel is not well-formed."""

    code = "TL1101"


class VerifyError(TileError):
    """A kernel breaks an invariant of tile IR; the verifier names it."""

    code = "TL1102"


# TL12xx: functions of whole arrays ---------------------------------------------------------


class ElementUnknown(FrontendError, TypeError):
    """An element of an array is asked for before a kernel has computed it."""

    code = "TL1201"


class ImmutableArray(FrontendError, TypeError):
    """An array is written to in a function in which arrays are values."""

    code = "TL1202"


class UnknownArrayFunction(FrontendError, TypeError):
    """A function, a method or a keyword of NumPy that cannot be captured."""

    code = "TL1203"


class ArrayShapeError(FrontendError, ValueError):
    """Shapes, axes or indices of arrays that do not fit."""

    code = "TL1204"


class DataDependentShape(FrontendError, ValueError):
    """The shape of an array would depend on elements."""

    code = "TL1205"


class TooManyEquations(FrontendError, ValueError):
    """A function of arrays that is written out by a loop of Python."""

    code = "TL1206"


class NoGradient(FrontendError, TypeError):
    """A gradient is asked for where there is none: of integers, or of what has no derivative."""

    code = "TL1207"


class ImpureFunction(FrontendError, ValueError):
    """A function of arrays computes something else each time that it is captured."""

    code = "TL1208"


class KernelFileError(FrontendError, ValueError):
    """A file of kernels that cannot stand for those of a function of arrays."""

    code = "TL1210"


class OtherEquations(FrontendError, ValueError):
    """A file of kernels was printed for other equations than the function has now."""

    code = "TL1211"


class KernelsDiffer(FrontendError, ArithmeticError):
    """Edited kernels compute something else than the equations of their function."""

    code = "TL1212"


# TL2xxx: operands --------------------------------------------------------------------------


class ShapeMismatch(TileError, ValueError):
    """Operand shapes do not fit together."""

    code = "TL2001"


class DtypeMismatch(TileError, TypeError):
    """Operand element types do not fit together."""

    code = "TL2002"


class IndexMismatch(TileError, ValueError):
    """A buffer is indexed with the wrong rank, kind or order of indices."""

    code = "TL2003"


class GemmShapeMismatch(ShapeMismatch, AssertionError):
    """The M, N or K extents of a matrix product disagree."""

    code = "TL2004"


class ScopeMismatch(TileError, ValueError):
    """An operand lives in a memory scope the operator cannot use."""

    code = "TL2005"


class ViewMismatch(TileError, AssertionError):
    """A view or reshape does not cover the same bits as its buffer."""

    code = "TL2006"


class ParallelBodyError(TileError, ValueError):
    """A data-parallel loop contains something that is not element-wise."""

    code = "TL2007"


class ReducerMisuse(TileError, ValueError):
    """The init, update, finalize protocol of a reducer is broken."""

    code = "TL2008"


class AliasedOperands(TileError, ValueError):
    """An operator writes elements that it still has to read."""

    code = "TL2009"


# TL3xxx: layouts ---------------------------------------------------------------------------


class LayoutError(TileError, ValueError):
    """An operation of the layout algebra has no exact answer."""

    code = "TL3001"


class LayoutConflict(TileError):
    """Two operators demand different layouts for one buffer."""

    code = "TL3002"


class LayoutUnknown(TileError):
    """Nothing determines the layout of a buffer."""

    code = "TL3003"


# TL4xxx: the target; TL5xxx: toolchains ----------------------------------------------------


class UnsupportedOnTarget(TileError):
    """The target has no way to run an operator or intrinsic; notes say why."""

    code = "TL4001"


class AmbiguousRule(TileError):
    """Two rules of equal priority accept one operator."""

    code = "TL4002"


class TargetError(TileError, ValueError):
    """A target string that names no machine."""

    code = "TL4003"


class OutOfScratch(TileError):
    """The tiles of one block do not fit the memory the machine offers them.

    Parameters
    ----------
    is_by_tiles
        Whether those of the program alone do not, whatever threads exchange beside them.
    """

    code = "TL4005"

    def __init__(self, message: str, *, is_by_tiles: bool = False, **where: Any) -> None:
        super().__init__(message, **where)
        self.is_by_tiles = is_by_tiles


class ScheduleError(TileError, ValueError):
    """A schedule of a pipelined loop would change what the loop computes."""

    code = "TL4006"


class WarpPartitionError(TileError, ValueError):
    """The warps of a block cannot share a matrix product."""

    code = "TL4007"


class ToolchainError(TileError):
    """A compiler was missing or failed; its output is attached.

    It `refuses_text` if the text of a kernel was refused, rather than a flag.
    """

    code = "TL5001"
    refuses_text = False

    def of_text(self) -> ToolchainError:
        """Return this error, said to be about the text of a kernel."""
        self.refuses_text = True
        return self


class ToolchainCrash(ToolchainError):
    """A compiler crashed over a kernel, or did not come to an end."""

    code = "TL5002"


# TL7xxx: the installation ------------------------------------------------------------------


class BackendNotFound(TileError):
    """No installed plugin understands a target."""

    code = "TL7001"


class PluginConflict(TileError):
    """Two plugins claim the same name, target or operator."""

    code = "TL7002"


class PluginError(TileError):
    """A plugin is installed but cannot be used; its own error is attached."""

    code = "TL7003"


class CompanionError(TileError, ImportError):
    """A package of the name of one of ours is somebody else's, or of another version."""

    code = "TL7004"


class PassError(TileError, ValueError):
    """A pass is named that a pipeline does not have, or cannot do without."""

    code = "TL7005"


class MissingPackage(TileError, ImportError):
    """A package that something needs is missing, too old, or cannot be imported."""

    code = "TL7006"


# TL81xx: the autotuner ---------------------------------------------------------------------


class TuningError(TileError, ValueError):
    """What the autotuner is asked makes no sense: configurations, budgets, options, inputs."""

    code = "TL8101"


class MeasuringImpossible(TileError, RuntimeError):
    """Candidates cannot be measured here."""

    code = "TL8102"


class NoConfigWorks(TileError, RuntimeError):
    """Every configuration failed, or gave wrong results."""

    code = "TL8103"


class InvalidTuningTable(TileError, ValueError):
    """A file is not a table of tuning results."""

    code = "TL8104"


# TL82xx: other libraries; TL83xx: smaller kernels; TL84xx: TileLang; TL9xxx: us ------------


class TorchOpNameError(TileError, ValueError):
    """The name of a torch operator is malformed or taken."""

    code = "TL8201"


class TorchOpSignatureError(TileError, TypeError):
    """A kernel's parameters cannot be those of a torch operator, or not as was asked for."""

    code = "TL8202"


class TorchOpGradientError(TileError, TypeError):
    """A gradient does not fit the torch operator it was given for."""

    code = "TL8203"


class JaxCallError(TileError, TypeError):
    """A kernel cannot be called by JAX, or not on these arguments."""

    code = "TL8204"


class NothingToReduce(TileError, ValueError):
    """A kernel that was to be reduced does not fail, or not in the way that was asked for."""

    code = "TL8301"


class AliasConflict(TileError, ImportError):
    """A name or a target that was to stand in for TileLang's is taken."""

    code = "TL8401"


class UnmappedDevice(TileError, RuntimeError):
    """A program uses a GPU in a way that cannot be answered without one."""

    code = "TL8402"


class UnsupportedName(TileError, NotImplementedError):
    """A name of TileLang outside its language that has no counterpart here."""

    code = "TL8403"


class InternalError(TileError):
    """A defect of the compiler itself: please report it."""

    code = "TL9001"
