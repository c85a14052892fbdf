"""Titles of file pages: the words of a Python file's name, a document's own heading, and for any other file its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from rankbook.model import Module
from rankbook.pages.text import one_line, plain

TERMS = (
    "2D 3D AMP AOT API ATen BF16 c10d CI CLI CPU cuBLAS CUDA cuDNN CuPy DCP DDP DTensor FFT FP16 FP8 FSDP FSDP2 FX GPU GPUs HIP HPU "
    "HSDP I/O ID IPC IR JIT JSON LR MHA MKL ML MPI MPS MTIA NCCL NumPy NVSHMEM NVTX ONNX OOM OpenMP P2P PG PyTorch ROCm RPC SDPA SGD SM "
    "SPMD SymInt TCP TF32 torchelastic torchrun UCC UCX UI URL USM UVM XLA XPU YAML"
)
"""Words that have a spelling of their own."""
_SPELLINGS = {term.lower().replace("/", ""): term for term in TERMS.split()}
_TEST = re.compile(r"\Atests?_(?=.)|(?<=.)_tests?\Z")
_LONGEST = 60
"""Characters of a heading that is a title."""


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """Give the files of one folder their titles, by path; where two would have the same one, each is called by its name.

    Args:
        titles: by path, what each file would be called by itself.
    """
    times = Counter(titles.values())
    return {path: found if times[found] == 1 else one_line(path.rpartition("/")[2]) for path, found in titles.items()}


def title(module: Module) -> str:
    """Give the title of a file by what it is: `test_all_reduce.py` is about "All reduce"."""
    source = module.source
    stem = source.name.removesuffix(source.extension)
    if source.language == "python":
        return _package(source.folder) if stem == "__init__" else _words(stem)
    # READMEs and their like are looked for by their name.
    return (stem if stem.isupper() else _heading(module)) or one_line(source.name)


def _package(folder: str) -> str:
    return f"Package {one_line(folder.rpartition('/')[2])}".rstrip()


def _words(stem: str) -> str:
    words = [_SPELLINGS.get(word.lower(), word) for word in re.split(r"[\W_]+", _TEST.sub("", stem)) if word]
    return " ".join([_capital(words[0]), *words[1:]]) if words else one_line(stem)


def _capital(word: str) -> str:
    return word if word in _SPELLINGS.values() else word[:1].upper() + word[1:]


def _heading(module: Module) -> str:
    """Give the first heading of a document, when it is short and of plain words; empty otherwise."""
    found = plain(module.headings[0].text) if module.headings else ""
    return found if len(found) <= _LONGEST and not re.search(r"[<>\[\]`|]", found) else ""
