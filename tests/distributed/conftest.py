"""What the suite asks of pytest: its marks, the skip behind `pytest.mark.gpu(n)`, and a meeting point for ranks."""

import pytest
import torch


def pytest_configure(config):
    """Register the marks, so that the folder also runs without the settings of the repository around it."""
    config.addinivalue_line("markers", "gpu(n): needs n GPUs")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


@pytest.fixture(autouse=True)
def requires_gpus(request):
    """Skip a test marked `gpu(n)` on a machine with fewer than n GPUs, before it starts any rank."""
    mark = request.node.get_closest_marker("gpu")
    if mark is None:
        return
    needed, found = mark.args[0], torch.cuda.device_count()
    if found < needed:
        pytest.skip(f"needs {needed} GPUs, this machine has {found}")


@pytest.fixture
def rendezvous(tmp_path):
    """Give the `init_method` of a process group whose ranks meet in a file of this test alone: no port, no clash."""
    return f"file://{tmp_path / 'rendezvous'}"
