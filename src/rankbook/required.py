"""What a machine was promised to have (`--require gpu=2`): a test that is skipped for want of it is an error."""

from __future__ import annotations

import re

from msgspec import Struct

from rankbook.errors import ConfigError
from rankbook.lacks import lack, wanted
from rankbook.requirements import Requirement, gpu_range, of_text
from rankbook.verdict import Machine, compared, is_met

_FORMS = {
    "gpu": (re.compile(r"([1-9]\d{0,5})"), "gpus", "{0}", "gpu=N"),
    "backend": (re.compile(r"(\w+)"), "backend", "{0}", "backend=NAME"),
    "package": (re.compile(r"([\w.-]+)(?: ?>= ?(\d+(?:\.\d+)*))?"), "package", "{0}", "package=NAME[>=V]"),
    "capability": (re.compile(r"(?:>= ?)?(\d+\.\d+)"), "capability", ">= {0}", "capability=9.0"),
    "library": (re.compile(r"([\w. -]*[\w.])(?: ?>= ?(\d+(?:\.\d+)*))?"), "library", "{0}", "library=NAME[>=V]"),
    "device": (re.compile(r"(\w+)"), "device", "{0}", "device=NAME"),
}
"""What can be required, by word: its form, its kind and value as a requirement, and how it is written."""


BROKEN = " promises it"
"""How the reason ends of a test that was not run although what it wants had been promised."""


class Required(Struct, frozen=True):
    """One thing that a machine was promised to have."""

    text: str
    """As written: `gpu=2`."""
    need: Requirement

    @classmethod
    def parse(cls, text: str) -> Required:
        """Read what is required.

        Args:
            text: `gpu=2`, `backend=nccl`, `library=NCCL>=2.20`.

        Raises:
            ConfigError: nothing of the kind can be required.
        """
        word, _, rest = text.partition("=")
        form, kind, value, _ = _FORMS.get(word.strip(), (None, "", "", ""))
        match = form.fullmatch(rest.strip()) if form else None
        if match is None:
            known = ", ".join(written for *_, written in _FORMS.values())
            raise ConfigError(f"'{text}' cannot be required", where="--require", right=f"what can be is {known}")
        name, *versions = match.groups()
        version = next((f" >= {version}" for version in versions if version), "")
        return cls(text, Requirement(kind, value.format(name) + version, f"--require {text}"))

    def missing(self, machine: Machine) -> str:
        """Say that a machine does not have it, as a sentence; empty when it does, and when that cannot be told."""
        if is_met(self.need, machine) is not False:
            return ""
        return f"--require {self.text} promises {wanted(self.need)}, {lack(self.need, machine)}"

    def covers(self, need: Requirement) -> bool:
        """Tell whether a machine that has it meets a need, so that a test must not be skipped for want of that."""
        if need.kind == "one of":
            return any(all(map(self.covers, alternative)) for alternative in need.either)
        if self.need.kind == "gpus" and need.kind == "device":
            return "cuda" in need.value.split(" or ")
        if need.kind != self.need.kind:
            return False
        if need.kind == "gpus":
            return self._covers_gpus(need.value)
        if need.kind == "capability":
            return bool(compared(self.need.value.removeprefix(">= "), need.value))
        return any(self._covers_choice(choice) for choice in need.value.split(" or "))

    def _covers_gpus(self, value: str) -> bool:
        found = gpu_range(value.removesuffix(" or none"))
        return found is not None and 0 < found[0] <= int(self.need.value)

    def _covers_choice(self, choice: str) -> bool:
        """Compare names, and versions where the need has one: a promised version is the lowest that is there."""
        name, _, version = choice.partition(" >= ")
        promised, _, lowest = self.need.value.partition(" >= ")
        if name != promised:
            return False
        return not version or bool(lowest and compared(lowest, f">= {version}"))


def need_of_reason(reason: str) -> Requirement | None:
    """Read from the words in which a test says why it is skipped what it needs; None when they do not tell.

    Args:
        reason: `Need at least 2 CUDA devices`, `needs 2 GPUs, and this machine has none`.
    """
    if match := _OWN.match(reason):
        need = of_text(match[1].removeprefix("compute ").replace(" between GPUs", ""))
        return None if need.kind == "condition" else need
    for form, kind, value in _REASONS:
        if match := re.search(form, reason, re.IGNORECASE):
            said = [group for group in match.groups() if group]
            return Requirement(kind, value.format(*(map(str.lower, said) if kind == "backend" else said)), reason)
    return None


_OWN = re.compile(r"needs (.+), (?:and|which|where) ")
_COUNTED = r"(\d+)\+? (?:or more )?(?:(?:CUDA|NVIDIA|ROCm|HIP) )?(?:GPUs?|devices?|accelerators?)\b"
_REASONS = (
    (rf"(?:need|requires?|at least)\D*{_COUNTED}", "gpus", "{0}"),
    (rf"{_COUNTED} (?:are |is )?(?:needed|required)", "gpus", "{0}"),
    (r"multi-?gpu not (?:supported|available)|(?:needs?|requires?) (?:multi-?gpu|multiple gpus)", "gpus", "2"),
    (r"p2p access|peer access", "peer access", ""),
    (r"multicast", "peer access", "by NVLink multicast"),
    (r"NCCL version greater than or equal to: \(?(\d+), (\d+), (\d+)", "library", "NCCL >= {0}.{1}.{2}"),
    (r"NCCL version greater than or equal to: \(?(\d+), (\d+)", "library", "NCCL >= {0}.{1}"),
    (r"not (?:been )?(?:compiled|built) with (?:the )?(NCCL|Gloo|UCC|MPI|XCCL)\b", "backend", "{0}"),
    (r"\b(NCCL|Gloo|UCC|MPI|XCCL) (?:backend )?(?:is )?(?:not |un)available", "backend", "{0}"),
    (r"could not import '(\w+)|No module named '(\w+)", "package", "{0}"),
    (r"unable to import (\w+)|\b(\w+) (?:is )?not installed|^no (torchvision|torchaudio)$", "package", "{0}"),
    (r"(?:compute capability|\bSM)\D{0,12}(\d+\.\d+)", "capability", ">= {0}"),
    (r"world size of (\d+)", "world size", "{0}"),
    (r"(?:CUDA|GPU|accelerator) (?:is |are )?(?:not available|unavailable|needed|required)", "gpus", "1"),
    (r"(?<!runs )\b(?:no|requires?|needs?) (?:an? )?(?:CUDA|GPU)s?\b(?!.* or )|only runs on cuda|this is a gpu test", "gpus", "1"),
)
"""Words of harnesses and suites, by what they say is wanting; the first that fits counts. Compiled when a reason is read."""
