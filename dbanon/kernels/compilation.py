"""Decorators that compile a kernel, and its machine code: in a trusted folder, without settings."""

from __future__ import annotations

import functools
import gc
import hashlib
import operator
import os
import re
import stat
import sys
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import platformdirs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from dbanon\.kernels\.([\w.]+) import", re.MULTILINE)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

# Kernels of this process that could not be cached.
unkept: set[str] = set()


@contextmanager
def _without(*names: str) -> Iterator[None]:
    """Hide modules from what is imported in the block."""
    modules: dict[str, Any] = sys.modules
    there = {name: modules[name] for name in names if name in modules}
    modules.update(dict.fromkeys(names))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A Numba config file is found")
            yield
    finally:
        for name in names:
            del modules[name]
        modules.update(there)


# Numba reads ``.numba_config.yaml`` of the current folder if it finds PyYAML: others may have
# written it, and a setting can name code to load and a file to write to. It imports all of
# scipy.linalg to find out whether there is a BLAS, which no kernel uses.
with _without("yaml", "scipy.linalg.cython_blas"):
    from numba import __version__ as numba_version
    from numba import extending, njit
    from numba.core import caching, cgutils, codegen, config, event, imputils, types
    from numba.core import typed_passes as typed
    from numba.core import untyped_passes as untyped
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import PassManager
    from numba.core.runtime import rtsys as runtime  # type: ignore[attr-defined]
    from numba.core.typeconv.castgraph import Conversion
    from numba.core.typing.templates import AttributeTemplate
    from numba.np import arraymath, arrayobj  # noqa: F401 - the first looks for a BLAS

_settings: Any = config  # numba makes its settings at import
_settings._config_fname = os.devnull  # noqa: SLF001 - it looks again before it compiles


def _sources(module: str, found: dict[str, bytes]) -> dict[str, bytes]:
    """Return the sources of a kernel module and of all kernel modules it calls into, by name."""
    if module not in found:
        found[module] = (_HERE / f"{module.replace('.', '/')}.py").read_bytes()
        for name in _IMPORT.findall(found[module].decode()):
            _sources(name, found)
    return found


def _fingerprint(module: str) -> str:
    """Return a digest of a kernel module, the modules it calls into, and numba's version.

    Numba itself detects changes only of the file of a kernel.
    """
    digest = hashlib.blake2b(numba_version.encode(), digest_size=8)
    for _, source in sorted(_sources(module, {}).items()):
        digest.update(source)
    return f"{module}-{digest.hexdigest()}"


@functools.cache
def cache_folder(module: str) -> str | None:
    """Return the folder of a module's compiled code, None if none can be trusted.

    Loading cached code runs it, so a folder that others can change is not used; a read-only one is.
    """
    try:
        folder = cache_base().resolve() / _fingerprint(module)
        for made in (*reversed(folder.parents), folder):
            made.mkdir(mode=0o700, exist_ok=True)  # the parents, too, whatever the umask lets be
        return str(folder) if _is_private(folder) else None
    except (OSError, RuntimeError):  # from a loop of links, or an unknown home
        return None


def cache_base() -> Path:
    """Return the folder of all compiled code: ``NUMBA_CACHE_DIR``, or one in the user's cache."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else platformdirs.user_cache_path("dbanon") / "numba"


def _is_private(folder: Path) -> bool:
    """Return True if only this user can change files in a folder (no links), or replace it."""
    if not hasattr(os, "geteuid"):
        return True
    own = folder.lstat()
    if own.st_uid != os.geteuid() or stat.S_IMODE(own.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
        return False
    return all(_keeps(above.lstat()) for above in folder.parents)


def _keeps(above: os.stat_result) -> bool:
    """Return True if only root and this user can rename entries of a folder."""
    shut = not above.st_mode & _OTHERS_WRITE or bool(above.st_mode & stat.S_ISVTX)
    return above.st_uid in {0, os.geteuid()} and shut


class _Locator(caching.UserProvidedCacheLocator):
    """The given folder, even if this process cannot write to it."""

    def __init__(self, function: object, file: str) -> None:
        numba: Any = super()
        numba.__init__(function, file)
        self._cache_path: str = _settings.CACHE_DIR

    def get_source_stamp(self) -> str:
        """Return the same for every copy of the sources."""
        return ""

    def ensure_cache_path(self) -> None:
        """Create the folder if possible."""
        path: Any = self
        with suppress(OSError):
            Path(path.get_cache_path()).mkdir(mode=0o700, exist_ok=True)


class _Place(caching.CompileResultCacheImpl):
    """Numba's cache in the given folder, without numba's alternatives."""

    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012

    def rebuild(self, target: object, payload: object) -> object:
        """Load machine code; numba locks compilation meanwhile."""
        numba: Any = super()
        context: Any = target
        with _made_by(_CachedLibrary, context):
            return numba.rebuild(target, payload)


@contextmanager
def _made_by(library: type[JITCodeLibrary], context: Any) -> Iterator[None]:  # noqa: ANN401
    """Make numba's libraries of code of another class in the block; numba locks compilation."""
    settings = vars(context.codegen())
    before = settings.get("_library_class", JITCodeLibrary)
    settings["_library_class"] = library
    try:
        yield
    finally:
        settings["_library_class"] = before


class _CachedLibrary(JITCodeLibrary):
    """Machine code from the cache; its bitcode is parsed if a compiled kernel calls it."""

    @classmethod
    def _unserialize(cls, target: object, state: tuple[str, str, tuple[bytes, bytes]]) -> object:
        make: Any = cls
        library: _CachedLibrary = make(target, state[0])
        library._load(*state[2])
        return library

    def _load(self, code: bytes, bitcode: bytes) -> None:
        numba: Any = self
        numba.enable_object_caching()
        numba._set_compiled_object(code)  # noqa: SLF001 - of its base class
        numba._finalize_final_module()  # noqa: SLF001
        self._bitcode = bitcode

    def get_pointer_to_function(self, name: str) -> object:
        """Return the address of a function, which a cached kernel always has."""
        numba: Any = self
        return numba._codegen._engine.get_function_address(name)  # noqa: SLF001

    def _get_module_for_linking(self) -> object:
        numba: Any = codegen
        self._shared_module = self._shared_module or numba.ll.parse_bitcode(self._bitcode)
        return self._shared_module


class Cache(caching.FunctionCache):
    """Numba's cache of one function, which compiles it if the disk is full or a file damaged."""

    _impl_class = _Place

    def load_overload(self, signature: object, target: object) -> object:
        """Return the compiled code, None if it cannot be read.

        Numba would first declare all functions that compiled code can call.
        """
        numba: Any = self
        runtime.initialize(target)
        try:
            return numba._load_overload(signature, target)  # noqa: SLF001
        except Exception:  # noqa: BLE001 - a damaged pickle raises anything
            self._forget()
            return None

    def save_overload(self, *arguments: object) -> None:
        """Write the compiled code, if possible."""
        numba: Any = super()
        try:
            numba.save_overload(*arguments)
        except Exception:  # noqa: BLE001 - the code is in memory, which is enough
            unkept.add(repr(self))
            self._forget()

    def _forget(self) -> None:
        """Remove the index, which may name a missing or older file."""
        files: Any = self._cache_file
        with suppress(OSError):
            Path(files._index_path).unlink()  # noqa: SLF001 - numba would write an empty one


def cache_of(function: Callable[..., object]) -> Cache | None:
    """Return the cache of a kernel, None without a folder; restores numba's settings at once."""
    folder = cache_folder(function.__module__.removeprefix("dbanon.kernels."))
    if folder is None:
        unkept.add(repr(function))
        return None
    named = ("CACHE_DIR", "CACHE_LOCATOR_CLASSES")
    before = {name: getattr(_settings, name, "") for name in named}
    _settings.CACHE_DIR, _settings.CACHE_LOCATOR_CLASSES = folder, ""
    make: Any = Cache
    try:
        cache: Cache = make(function)
    except RuntimeError:  # no locator: the source is not a file, as within a zip
        unkept.add(repr(function))
        return None
    finally:
        for name, value in before.items():
            setattr(_settings, name, value)
    return cache


F = TypeVar("F", bound="Callable[..., object]")

# Same type as array elements and counters: numba compiles a step again for each argument type.
ZERO: Any = np.int64(0)


@contextmanager
def on_compile(tell: Callable[[], None]) -> Iterator[Compilations]:
    """Call ``tell`` each time a kernel is compiled in the block, unless it is cached."""
    listener = Compilations(tell)
    with event.install_listener("numba:compile", listener):
        yield listener


class Compilations(event.Listener):
    """Compilations of a block; ``seconds`` is their wall time so far."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._ended = 0.0
        self._began: list[float] = []

    @property
    def seconds(self) -> float:
        """Wall time, including that of a compilation in progress."""
        began = self._began[:1]
        return self._ended + sum(perf_counter() - since for since in began)

    def on_start(self, event: object) -> None:  # noqa: ARG002 - numba's interface
        """Note when it began."""
        self._tell()
        self._began.append(perf_counter())

    def on_end(self, event: object) -> None:  # noqa: ARG002
        """Add up how long it took."""
        began = self._began.pop() if self._began else perf_counter()  # or before this block
        if not self._began:  # a kernel is compiled within the one that calls it
            self._ended += perf_counter() - began


def kernel(function: F) -> F:
    """Compile a function at its first call and store the machine code in the cache folder.

    No fast-math: equal input gives equal groups on every machine. Compiled code releases the GIL,
    so that threads share the cores. A function with a leading underscore is for other kernels: it
    is cached with them, and Python cannot call it.
    """
    if function.__name__.startswith("_"):
        return maker(function)
    compiler: Any = njit  # not all options are typed
    # A dispatcher, called like its function; it counts references for any first caller.
    options: Any = {"nogil": True, "_nrt": True, "no_cfunc_wrapper": True}
    compiled: Any = compiler(pipeline_class=_Compiler, **options)(function)
    cache = cache_of(function)
    if cache is not None:
        compiled._cache = cache  # noqa: SLF001 - as Dispatcher.enable_caching does
    return compiled


def maker(function: F) -> F:
    """Compile a function for kernels only, which may create arrays, without a Python wrapper."""
    return _part(function, _nrt=True)  # not as its first caller does, which may be a step


def step(function: F) -> F:
    """Compile a function for kernels only, which creates no array and returns numbers or nothing.

    It counts no references: its caller holds the arrays. Counting would dominate the compilation of
    a function of many arrays. A returned array would be freed while in use, and numba does not
    refuse that.
    """
    return _part(function, _nrt=False)


def inlined(function: F) -> F:
    """Compile a step into each calling kernel, for a few lines of an inner loop."""
    return _part(function, _nrt=False, forceinline=True)


def _part(function: F, **options: bool) -> F:
    compiler: Any = njit  # not all options are typed
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    part: Any = compiler(nogil=True, pipeline_class=_Compiler, **alone, **options)(function)
    template: Any = part.get_call_template
    plain: Any = types.unliteral  # a literal number is compiled as any other
    passed = plain if options["_nrt"] else lambda kind: _by_address(plain(kind))
    part.get_call_template = lambda args, kws: template([passed(arg) for arg in args], kws)
    return cast("F", part)


_arrays: Any = arrayobj
_codegen: Any = codegen
_extend: Any = extending
_tools: Any = cgutils


class _Address(types.Type):
    """Address of a record (a named tuple) that the caller of a step holds.

    Numba passes seven or more numbers for each array, which are hundreds for a record of records.
    """

    def __init__(self, record: Any) -> None:  # noqa: ANN401 - numba's types are not typed
        self.record = record
        super().__init__(name=f"at {record.instance_class.__name__}")

    @property
    def key(self) -> int:
        """Identify the type of the record: equal ones are one object."""
        return id(self.record)

    def can_convert_from(self, _: object, other: object) -> Conversion | None:
        """Return whether a value can be passed."""
        return Conversion.safe if other is self.record else None

    def field(self, name: str) -> tuple[int, object]:
        """Return the place and the type of a field."""
        place = self.record.fields.index(name)
        return place, self.record[place]


def _by_address(kind: object) -> object:
    """Return the type by which a step takes an argument or has a field."""
    return _Address(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@_extend.register_model(_Address)
class _AddressModel(_extend.models.PrimitiveModel):  # type: ignore[misc]
    """A pointer. No step writes there, so a store into an array changes no field."""

    def __init__(self, models: Any, kind: _Address) -> None:  # noqa: ANN401
        super().__init__(models, kind, models[kind.record].get_value_type().as_pointer())

    def from_argument(self, _: object, argument: Any) -> object:  # noqa: ANN401
        """Tell the optimizer so."""
        unkept = "captures(none)" if _codegen.ll.llvm_version_info >= (21,) else "nocapture"
        for attribute in ("noalias", unkept, "nonnull"):
            argument.add_attribute(attribute)
        return argument


@_extend.infer_getattr
class _Fields(AttributeTemplate):
    """Fields of a record at an address."""

    key: Any = _Address

    def generic_resolve(self, kind: _Address, name: str) -> Any:  # type: ignore[override] # noqa: ANN401
        """Return the type of a field."""
        return _by_address(kind.field(name)[1])


@_extend.lower_getattr_generic(_Address)
def _field(context: object, builder: Any, kind: _Address, address: object, name: str) -> object:  # noqa: ANN401
    """Return a field, or the address of a record within the record."""
    returned: Any = imputils.impl_ret_borrowed
    place, inner = kind.field(name)
    at = _tools.gep_inbounds(builder, address, 0, place)
    is_record = isinstance(inner, types.BaseNamedTuple)
    return at if is_record else returned(context, builder, inner, builder.load(at))


@_extend.lower_cast(types.BaseNamedTuple, _Address)
def _place(_: object, builder: Any, __: object, ___: object, record: Any) -> object:  # noqa: ANN401
    """Return where the variable is that a call has just loaded, or a copy of another value."""
    is_variable = record in builder.block.instructions[-1:] and record.opname == "load"
    return record.operands[0] if is_variable else _tools.alloca_once_value(builder, record)


@_extend.register_model(types.Array)
class _ArrayModel(_extend.models.ArrayModel):  # type: ignore[misc]
    """An array, whose references are counted where its first field points to."""

    def traverse(self, builder: Any) -> Any:  # noqa: ANN401
        """Return that field alone; numba reads every number of an array for each count."""
        return super().traverse(builder)[:1]


@_extend.lower_builtin(operator.getitem, types.Array, types.Integer)
@_extend.lower_builtin(operator.getitem, types.Array, types.BaseTuple)
def _get(context: Any, builder: Any, signature: Any, given: Any) -> object:  # noqa: ANN401
    """Return an item; a row or a slice is numba's."""
    at = _item(context, builder, signature, given)
    if at is not None:
        return _arrays.load_item(context, builder, signature.args[0], at)
    is_tuple = isinstance(signature.args[1], types.BaseTuple)
    view = _arrays.getitem_array_tuple if is_tuple else _arrays.getitem_arraynd_intp
    return view(context, builder, signature, given)


@_extend.lower_builtin(operator.setitem, types.Array, types.Integer, types.Any)
@_extend.lower_builtin(operator.setitem, types.Array, types.BaseTuple, types.Any)
def _set(context: Any, builder: Any, signature: Any, given: Any) -> None:  # noqa: ANN401
    """Store an item; a row or a slice is numba's."""
    (kind, _, value), at = signature.args, _item(context, builder, signature, given)
    if at is None:
        _arrays.setitem_array(context, builder, signature, given)
    else:
        stored = context.cast(builder, given[2], value, kind.dtype)
        _arrays.store_item(context, builder, kind, stored, at)


def _item(context: Any, builder: Any, signature: Any, given: Any) -> object:  # noqa: ANN401
    """Return the address of an item, None unless the index is a number for each dimension."""
    kind, index = signature.args[:2]
    is_tuple = isinstance(index, types.BaseTuple)
    kinds = index.types if is_tuple else (index,)
    are_numbers = all(isinstance(one, types.Integer) for one in kinds)
    if kind.layout != "C" or not 0 < len(kinds) == kind.ndim or not are_numbers:
        return None
    if context.enable_boundscheck:  # of others: kernels have no such option
        return None
    position = context.data_model_manager[kind].get_field_position

    def part(name: str, *axis: int) -> Any:  # noqa: ANN401
        return builder.extract_value(given[0], [position(name), *axis])

    at = None
    for axis, one in enumerate(kinds):
        place = builder.extract_value(given[1], axis) if is_tuple else given[1]
        place = context.cast(builder, place, one, types.intp)
        if one.signed and getattr(place, "constant", -1) < 0:  # if negative, from the end
            place = _arrays.slicing.fix_index(builder, place, part("shape", axis))
        at = place if at is None else builder.add(builder.mul(at, part("shape", axis)), place)
    return builder.gep(part("data"), [at])


class _KernelLibrary(JITCodeLibrary):
    """Code of a kernel, and of the parts that it calls."""

    def add_llvm_module(self, module: object) -> None:
        """Add code as it is."""
        numba: Any = self
        numba._final_module.link_in(module)  # noqa: SLF001 - of its base class

    def finalize(self) -> None:
        """Link each part once, optimize and make machine code."""
        _link(self, self._final_module)
        self._linking_libraries = []
        numba: Any = super()
        numba.finalize()

    def _optimize_final_module(self) -> None:
        """Optimize once; numba does twice, to find reference counts, which steps do not have."""
        numba: Any = self
        passes, builder = numba._codegen._module_pass_manager()  # noqa: SLF001
        passes.run(self._final_module, builder)


class _PartLibrary(_KernelLibrary):
    """Code of a function that only kernels call, linked and optimized with them and not alone."""

    def finalize(self) -> None:
        """Leave the rest to the kernel."""
        numba: Any = self
        for function in numba._final_module.functions:  # noqa: SLF001
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def _get_module_for_linking(self) -> object:
        """Return the code with all that it calls, for what is compiled by numba itself."""
        own: Any = self
        if self._shared_module is None:
            self._shared_module = own._final_module.clone()  # noqa: SLF001
            _link(own, self._shared_module)
        return self._shared_module

    @property
    def codegen(self) -> _PartLibrary:
        """Return the object that receives the function's environment."""
        return self

    def set_env(self, name: str, env: object) -> None:
        """Ignore the environment: only machine code has a place for it."""


def _link(library: Any, module: Any) -> None:  # noqa: ANN401 - of numba
    """Link all that a library calls into a module, each function once."""
    waiting, seen = [library], {library}
    while waiting:
        for called in waiting.pop()._linking_libraries:  # noqa: SLF001
            if called not in seen:
                seen.add(called)
                is_part = isinstance(called, _PartLibrary)
                code = called._final_module if is_part else called._get_module_for_linking()  # noqa: SLF001
                module.link_in(code, preserve=True)
                library._reload_init.update(called._reload_init)  # noqa: SLF001
                waiting += [called] if is_part else []


class _Lent(Flags):
    """Flags of what kernels call; equal ones are one object, as numba looks them up very often."""

    __slots__ = ()
    __hash__ = object.__hash__


_lent: dict[str, Any] = {}


class _Flags(Flags):
    """Flags of a kernel or a part; all lend the same, so that numba compiles ``max`` once."""

    __slots__ = ()

    def copy(self) -> object:
        """Return the flags of what it calls."""
        lent = cast("Any", _Lent)(self)
        lent.no_cpython_wrapper, lent.no_cfunc_wrapper, lent.forceinline = True, True, False
        return _lent.setdefault(lent.summary(), lent)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage in the block: what is compiled is kept, and it would take a tenth."""
    restore = gc.enable if gc.isenabled() else gc.disable
    gc.disable()
    try:
        yield
    finally:
        restore()


_PASSES: tuple[Any, ...] = (
    untyped.TranslateByteCode,
    untyped.FixupArgs,
    untyped.IRProcessing,
    untyped.DeadBranchPrune,
    untyped.GenericRewrites,
    untyped.ReconstructSSA,
    typed.NopythonTypeInference,
    typed.PreLowerStripPhis,
    typed.IRLegalization,
    typed.AnnotateTypes,
    typed.NativeLowering,
    typed.NoPythonBackend,
)


class _Compiler(Compiler):
    """Numba's compiler for a kernel, or for a part, which has no wrapper."""

    def __init__(self, *given: object) -> None:
        typing, target, library, arguments, returned, flags, types = given
        numba, own = cast("Any", super()), cast("Any", _Flags)(flags)
        numba.__init__(typing, target, library, arguments, returned, own, types)

    def define_pipelines(self) -> list[PassManager]:
        """Return numba's passes without those for what no kernel has: closures, array formulas."""
        passes = cast("Any", PassManager)("kernel")
        for one in _PASSES:
            passes.add_pass(one)
        passes.finalize()
        return [passes]

    def _compile_core(self) -> object:
        """Compile; what it calls of numba's own functions are parts."""
        numba, state = cast("Any", super()), cast("Any", self.state)
        make: Any = _PartLibrary if state.flags.no_cpython_wrapper else _KernelLibrary
        state.library = make(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        with _made_by(_PartLibrary, state.targetctx), _uncollected():
            return numba._compile_core()  # noqa: SLF001
