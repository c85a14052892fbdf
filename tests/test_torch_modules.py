"""Which modules of torch have something to move to a GPU, by what torch itself builds."""

import ast
import inspect
import warnings

import pytest

from rankbook.sources.torch_modules import BY_ARGUMENT, CONTAINERS, HOLLOW, Modules

nn = pytest.importorskip("torch.nn")
ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": "4, 4, [2]", "Container": "", "DataParallel": "nn.ReLU()", "FractionalMaxPool2d": "2, 2",
    "FractionalMaxPool3d": "2, 2", "GRU": "2, 2", "GroupNorm": "2, 4", "LSTM": "2, 2", "MultiheadAttention": "4, 2", "RNN": "2, 2",
    "RNNBase": "'LSTM', 2, 2", "RNNCellBase": "2, 2, True, 1", "Transformer": "4, 2, 1, 1",
    "TransformerDecoder": "nn.TransformerDecoderLayer(4, 2), 1", "TransformerDecoderLayer": "4, 2",
    "TransformerEncoder": "nn.TransformerEncoderLayer(4, 2), 1", "TransformerEncoderLayer": "4, 2", "Unflatten": "1, (2, 2)",
}  # fmt: skip
"""Of modules that cannot be built of a 2 for each argument that they want."""
MORE = [
    "BCEWithLogitsLoss(None, None, None, 'mean', torch.ones(2))",
    "BatchNorm1d(2, 1e-05, 0.1, False, False)",
    "BatchNorm2d(2, affine=False)",
    "CrossEntropyLoss(torch.ones(2))",
    "GroupNorm(2, 4, 1e-05, False)",
    "InstanceNorm2d(2, affine=True)",
    "InstanceNorm2d(2, 1e-05, 0.1, False, True)",
    "LayerNorm(2, 1e-05, False)",
    "LazyBatchNorm1d(1e-05, 0.1, False, False)",
    "LazyInstanceNorm1d(1e-05, 0.1, True)",
    "ModuleDict({'one': nn.ReLU(), 'two': nn.Linear(2, 2)})",
    "ModuleList([nn.ReLU() for _ in range(2)])",
    "MultiMarginLoss(1, 1.0, torch.ones(2))",
    "RMSNorm(2, elementwise_affine=False)",
    "Sequential(*[nn.Linear(2, 2) for _ in range(2)])",
]
CLASSES = sorted(name for name, value in vars(nn).items() if inspect.isclass(value) and issubclass(value, nn.Module))


def written(name: str) -> str:
    """Write a call that builds a module of torch."""
    wanted = list(inspect.signature(getattr(nn, name).__init__).parameters.values())[1:]
    needed = [each for each in wanted if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    return f"{name}({ARGUMENTS.get(name, ', '.join('2' for _ in needed))})"


@pytest.mark.parametrize("call", [*map(written, CLASSES), *MORE])
def test_modules_as_torch_builds_them(call: str) -> None:
    """A module of torch has something to move where one that is built has a parameter or a buffer."""
    import torch

    with warnings.catch_warnings(action="ignore"):
        built = eval(f"nn.{call}", {"nn": nn, "torch": torch})
    node = ast.parse(f"torch.nn.{call.replace('nn.', 'torch.nn.')}", mode="eval").body
    assert Modules(str, {}).has_any(node, {}) == any(True for each in (built.parameters(), built.buffers()) for _ in each)


def test_names_of_modules() -> None:
    """The tables name what torch has."""
    assert {*HOLLOW, *BY_ARGUMENT, *CONTAINERS} <= set(CLASSES)
