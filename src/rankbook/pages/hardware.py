"""What tests need of a machine, as tables show it: classes of hardware, and how many tests are in each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from rankbook.model import Test
from rankbook.report import plural
from rankbook.requirements import KINDS, Requirement, gpu_range, gpus_of, is_on

ANY = "any"
"""Word for tests that run on GPUs, however many there are."""
OTHER = "other"
"""Word for tests that run on another kind of accelerator only."""
UNKNOWN = "unknown"
"""Word for tests that run on GPUs, where no number can be read."""
COLUMNS = 8
"""Classes of a table before it joins those with most GPUs."""

_FOR_GPUS = {"platform": re.compile(r"(?:ROCm|CUDA)\b.*")}
"""By kind: values that speak of GPUs, and that a machine may meet without one."""
_ON_OTHERS = {
    "device": re.compile(r"(?:xpu|hpu|mps|mtia|xla|npu|mlu|privateuse1|vulkan)\b.*", re.IGNORECASE),
    "backend": re.compile(r"xccl|hccl", re.IGNORECASE),
    "platform": re.compile(r"(?:XPU|HPU|MPS|MTIA)\b.*"),
}
"""By kind: values that only a machine with another kind of accelerator can meet."""


class Hardware(Struct, frozen=True):
    """A class of hardware, told by the number of GPUs."""

    least: int = 0
    """GPUs that must be there; 0 when the number is not known."""
    most: int | None = None
    """GPUs of which there must be no more; None when there may be any number."""
    word: str = ""
    """`ANY`, `OTHER` or `UNKNOWN`; empty when it is told by numbers."""

    @property
    def key(self) -> str:
        """A word for it, which `read` reads: `0`, `2`, `2-4`, `any`, `other`, `unknown`."""
        return self.word or (f"{self.least}" if self.most is None else f"{self.least}-{self.most}")

    @property
    def text(self) -> str:
        """What a reader calls it."""
        return _WORDS.get(self.word) or _numbers(self.least, self.most)

    @property
    def is_number(self) -> bool:
        """Whether it is told by one number, of GPUs that must be there."""
        return not self.word and self.most is None and self.least > 0

    @property
    def heading(self) -> str:
        """What a column of a table calls it, under a sentence that says what the columns are."""
        if self.word:
            return _HEADINGS[self.word]
        if self.most is None:
            return f"{self.least}" if self.least else "No GPU"
        if not self.most:
            return "None at all"
        return f"{self.least} to {self.most}" if self.least != self.most else f"Exactly {self.least}"

    def is_met(self, gpus: int) -> bool:
        """Whether a machine with so many GPUs has enough of them, and not too many; False where that cannot be said."""
        if self.word in (OTHER, UNKNOWN):
            return False
        return max(self.least, bool(self.word)) <= gpus and (self.most is None or gpus <= self.most)


_HEADINGS = {ANY: "Any", OTHER: "Other device", UNKNOWN: "Not said"}
_WORDS = {ANY: "any number of GPUs", OTHER: "another accelerator", UNKNOWN: "GPUs (number not said)"}


@lru_cache(maxsize=1024)
def read(key: str) -> Hardware:
    """Read the word for a class of hardware."""
    if key in _WORDS:
        return Hardware(word=key)
    least, _, most = key.partition("-")
    return Hardware(int(least), int(most) if most else None)


def order(key: str) -> tuple[int, int, int]:
    """Sort classes by their GPUs, those without a number last."""
    hardware = read(key)
    last = {"": 0, ANY: 1, OTHER: 2, UNKNOWN: 3}[hardware.word]
    return last, hardware.least, -1 if hardware.most is None else hardware.most


def hardware_of(test: Test) -> Hardware:
    """Tell how many GPUs a test needs, as far as its requirements say."""
    return _of_all(test.requirements) if test.requirements else _NOTHING


_NOTHING = Hardware()


@lru_cache(maxsize=4096)
def _of_all(requirements: tuple[Requirement, ...]) -> Hardware:
    """Many tests of a file need the same."""
    return _of(requirements)


def _of(requirements: Iterable[Requirement]) -> Hardware:
    needs = [need for need in requirements if need.otherwise or need.kind != "gpus"]
    said = [_gpus(need.value) for need in needs if need.kind == "gpus"]
    said += [min(map(_of, need.either), key=lambda hardware: order(hardware.key)) for need in needs if need.either]
    if any(map(is_elsewhere, needs)):
        return Hardware(word=OTHER)
    if any(hardware.least or hardware.word for hardware in said) or not any(map(_is_on_gpus, needs)):
        return _joined(said)
    return Hardware(word=UNKNOWN)


def is_elsewhere(need: Requirement) -> bool:
    """Whether only a machine with another kind of accelerator than a GPU meets a requirement."""
    return is_on(need, _ON_OTHERS)


def _is_on_gpus(need: Requirement) -> bool:
    return need.kind != "gpus" and (gpus_of(need) is not None or is_on(need, _FOR_GPUS))


def asks_of(tests: Iterable[Test]) -> dict[str, dict[str, dict[str, int]]]:
    """Count tests by what they need beside GPUs: by kind, by value and by class of hardware, each in order."""
    counts = Counter((need.kind, need.value, key) for test in tests for key in (hardware_of(test).key,) for need in _distinct(test))
    found: dict[str, dict[str, dict[str, int]]] = {kind: {} for kind in KINDS}
    for kind, value, key in sorted(counts, key=lambda entry: (entry[0], entry[1], order(entry[2]))):
        found.setdefault(kind, {}).setdefault(value, {})[key] = counts[kind, value, key]
    return {kind: values for kind, values in found.items() if values}


def by_gpus(hardware: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up numbers of tests by class, and put the classes in order."""
    total: Counter[str] = Counter()
    for counts in hardware:
        total.update(counts)
    return {key: total[key] for key in sorted(total, key=order)}


def columns(classes: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Choose the columns of a table: each with its heading and its classes; those with most GPUs share one when there are too many."""
    ordered = sorted(classes, key=order)
    worded = [key for key in ordered if read(key).word]
    numbered = [key for key in ordered if not read(key).word]
    alone, together = (numbered, ()) if len(numbered) <= COLUMNS else (numbered[: COLUMNS - 1], tuple(numbered[COLUMNS - 1 :]))
    shared = [(f"{read(together[0]).least} or more", together)] if together else []
    return (*((read(key).heading, (key,)) for key in alone), *shared, *((read(key).heading, (key,)) for key in worded))


def told(classes: Iterable[str]) -> list[str]:
    """Say in few words what tests of several classes need: `no GPU`, `1, 2 or 4 GPUs`."""
    hardware = [read(key) for key in sorted(classes, key=order)]
    numbers = [f"{each.least}" for each in hardware if each.is_number]
    said = [each.text for each in hardware if not each.is_number]
    if len(numbers) > 1:
        said.insert(int(Hardware() in hardware), f"{', '.join(numbers[:-1])} or {numbers[-1]} GPUs")
    return said if len(numbers) > 1 else [each.text for each in hardware]


def _distinct(test: Test) -> Iterable[Requirement]:
    return {(need.kind, need.value): need for need in test.requirements if need.kind != "gpus"}.values()


def _joined(all_of: list[Hardware]) -> Hardware:
    for word in (OTHER, UNKNOWN):
        if any(hardware.word == word for hardware in all_of):
            return Hardware(word=word)
    if all_of and all(hardware.word == ANY for hardware in all_of):
        return Hardware(word=ANY)
    least = max((max(hardware.least, hardware.word == ANY) for hardware in all_of), default=0)
    most = min((hardware.most for hardware in all_of if hardware.most is not None), default=None)
    return Hardware(word=UNKNOWN) if most is not None and most < least else Hardware(least, most)


@lru_cache(maxsize=1024)
def _gpus(value: str) -> Hardware:
    """Read a number of GPUs as a requirement has it."""
    if value == ANY:
        return Hardware(word=ANY)
    found = gpu_range(value)
    return Hardware(word=UNKNOWN) if found is None else Hardware(*found)


def _numbers(least: int, most: int | None) -> str:
    if most is None or most == least == 0:
        return plural(least, "GPU") if least else ("no GPU" if most is None else "no GPU at all")
    if least == most:
        return f"exactly {plural(least, 'GPU')}"
    return f"{least} to {plural(most, 'GPU')}" if least else f"at most {plural(most, 'GPU')}"
