"""Names of packages on pages of the suite that hold a tag of their own: what looks like half of a character reference is none."""

import pytest
import torch


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs &#")
def test_all():
    pytest.importorskip("zq &# ; zq")
    pytest.importorskip("zq </code></pre></div><h2>zq</h2>[zq](javascript:zq())")
    pytest.importorskip("<div>zq &#x")
