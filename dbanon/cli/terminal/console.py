"""Output: tables for people, JSON for programs, progress on stderr; streams that may be closed."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import signal
import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum, StrEnum
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, TextIO

from dbanon.domain.outcomes import Stages
from dbanon.domain.table import TableName
from dbanon.domain.text import is_seen
from dbanon.domain.text import visible as spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from dbanon.domain.errors import DbanonError
    from dbanon.domain.notices import Notice
    from dbanon.domain.policy_warning import PolicyWarning


def visible(text: str) -> str:
    """Escape terminal control and invisible characters, except line ends."""
    return spelled(text, keep="\n\t")


def out() -> Console:
    """Return the console of results, without markup in values."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """Return the console of progress, warnings and errors."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def say(text: str, *, style: str | None = None) -> None:
    """Print a line of the result, with names escaped."""
    out().print(spelled(text), style=style)


def verbatim(text: str) -> None:
    """Print text for another program unchanged, but escaped on a terminal."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def can_ask() -> bool:
    """Return True if a person can answer a prompt."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def note(text: str) -> None:
    """Print a line on stderr that is neither a result nor a warning."""
    err().print(visible(text))


def problem(error: DbanonError, *, of: object = None) -> None:
    """Print an error that does not end the command, with the next command; of: its relation."""
    place = "" if of is None else f"{of}: "
    err().print(visible(f"error: {place}{error}"), style="yellow")
    if error.hint:
        note(f"  try: {error.hint}")


def warn_of(found: Iterable[PolicyWarning | Notice]) -> None:
    """Print warnings on stderr, each once, and how to have them explained."""
    texts = dict.fromkeys(map(str, found))
    for text in texts:
        err().print(visible(f"warning: {text}"), style="yellow")
    if texts:
        note("dbanon help CODE explains a warning, and how to acknowledge it")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print a table; a cell is one line, or one per item of a list, with names escaped."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(value) for value in row] for row in rows]
    drawn = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for i, header in enumerate(headers):
        numeric = all(_is_number(row[i]) for row in cells) and bool(cells)
        drawn.add_column(spelled(header), justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    console = out()
    if not console.is_terminal:
        console.width = max(console.width, 400)
    if title:
        console.print(spelled(title), style="bold")
    console.print(drawn)


def _cell(value: object) -> str:
    lines = value if isinstance(value, list) else [value]
    return "\n".join(spelled(_line(line)) for line in lines)


def _line(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return str(value)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.replace(",", "").replace(".", "").replace("%", "").isdigit()


def document(value: object) -> None:
    """Print a value as one JSON document."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False)
    seen = (c if c == "\n" or is_seen(c) else json.dumps(c)[1:-1] for c in text)
    print("".join(seen))  # noqa: T201 - it is the output


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - any domain value, to any JSON value
    """Convert a domain value to JSON types."""
    if isinstance(value, (TableName, Path)):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Exception):
        return str(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        printed = [one.name for one in fields(value) if one.metadata.get("is_printed", True)]
        return {name: plain(getattr(value, name)) for name in printed}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    return value


@contextmanager
def watched(*, timings: bool, steps: int, quiet: bool = False) -> Iterator[Stages]:
    """Show the stages of a long command on stderr, and their times at the end if requested.

    A bar on a terminal, lines elsewhere. steps: the number of stages; quiet: show no stage, and no
    explanation of slow ones.
    """
    console = err()
    notes = None if quiet else lambda text: console.print(spelled(text), style="dim")
    if quiet:
        shown: AbstractContextManager[_Bar | Lines | None] = nullcontext()
    elif console.is_terminal:
        shown = _drawn(console, steps)
    else:
        shown = Lines(lambda text: console.print(spelled(text)))
    with shown as listener:
        if listener is None:
            stages = Stages(on_note=notes)
        else:
            stages = Stages(
                on_start=listener.start,
                on_note=notes,
                on_progress=listener.move,
                on_step=listener.step,
            )
        yield stages
    if timings:
        for remark in stages.remarks:
            console.print(spelled(remark))
        total = sum(stages.seconds.values())
        for name, seconds in (*stages.seconds.items(), ("total", total)):
            console.print(f"{name:>10} {seconds:8.3f} s")


@contextmanager
def _drawn(console: Console, steps: int) -> Iterator[_Bar]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, progress.add_task("connect", total=steps))


class _Bar:
    """A progress bar with one unit per stage, and fractions within measured stages."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._stage = self._name = ""
        self._begun = 0

    def start(self, stage: str) -> None:
        self._stage = self._name = stage
        self._begun += 1
        self._progress.update(self._task, description=stage, completed=self._begun - 1)

    def step(self, name: str) -> None:
        self._name = f"{self._stage}: {name}"
        self._progress.update(self._task, description=self._name)

    def move(self, done: float, loss: float) -> None:
        self._progress.update(
            self._task,
            description=f"{self._name}, loss {100 * loss:.2f}%",
            completed=self._begun - 1 + done,
        )


LONG = 15.0  # seconds


class Lines:
    """Print each stage of a command that takes long, and again whenever its time has doubled."""

    def __init__(self, say: Callable[[str], None], *, after: float = LONG) -> None:
        self._say, self._after = say, after
        self._stage = self._name = "connect"
        self._loss = ""
        self._begun = perf_counter()
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def _seconds(self) -> float:
        return perf_counter() - self._begun

    def start(self, stage: str) -> None:
        """Start a stage."""
        self._stage = self._name = stage
        self._loss = ""
        if self._seconds >= self._after:
            self._print()

    def step(self, name: str) -> None:
        """Start a part of the stage."""
        self._name = f"{self._stage}: {name}"

    def move(self, _done: float, loss: float) -> None:
        """Record the current loss."""
        self._loss = f", loss {100 * loss:.2f}%"

    def _run(self) -> None:
        wait = self._after
        while not self._over.wait(wait):
            self._print()
            wait = self._seconds

    def _print(self) -> None:
        self._say(f"{self._seconds:.0f} s: {self._name}{self._loss}")


class Stream:
    """A text stream that continues after a write error, which it stores in ``lost``."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner
        self.is_unused = True
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; after an error, drop it."""
        self.is_unused = self.is_unused and not text
        if self.lost is None:
            try:
                return self._inner.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write buffered text."""
        if self.lost is None:
            try:
                self._inner.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost = error
        # Otherwise Python would write the rest again at exit, and fail with exit code 120.
        with suppress(OSError):
            number, nowhere = self._inner.fileno(), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._inner, name)


@contextmanager
def lasting() -> Iterator[Stream]:
    """Suppress output errors within the block; yield the replacement of stdout."""
    _occupy_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, _ = Stream(_opened(before[0], 1)), Stream(_opened(before[1], 2))
    try:
        yield out
    finally:
        out.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Occupy the descriptors of closed streams, read-only, so that lost output is detected."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free


def _opened(stream: TextIO | None, number: int) -> TextIO:
    """Return a stream that writes UTF-8 in any locale, like all files that dbanon reads."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if stream is not None:
        return stream
    return open(number, "w", encoding="utf-8", closefd=False)


_STOPPING = "stopping: what was found so far is used (Ctrl-C again to give up)"
_TOO_LATE = "too late to stop: it is being committed (Ctrl-C again to give up)"
# The last stage of a publication; what follows it is the commit.
_LAST_STAGE = "record"
_STDERR = 2


class OnInterrupt(StrEnum):
    """The result of a search that Ctrl-C stops."""

    DISCARD = "discard"
    PUBLISH = "publish"


@contextmanager
def interruptible(
    stages: Stages, on_interrupt: OnInterrupt = OnInterrupt.DISCARD
) -> Iterator[None]:
    """End the block at Ctrl-C; with ``publish``, end only its search at the first one.

    During the commit the first Ctrl-C only warns: the outcome of an interrupted commit would have
    to be queried. A process that was started with SIGINT ignored keeps that.
    """
    warned = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal warned
        if _LAST_STAGE in stages.seconds and not warned:
            warned = True
            _tell(_TOO_LATE)
        elif on_interrupt is OnInterrupt.PUBLISH and not (stages.stopped or warned):
            stages.stopped = True
            _tell(_STOPPING)
        else:
            signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    ours = before not in {signal.SIG_IGN, None}
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def _tell(text: str) -> None:
    # A handler may run in the middle of a write to sys.stderr, which cannot be entered twice.
    with suppress(OSError):
        os.write(_STDERR, f"\n{text}\n".encode())
