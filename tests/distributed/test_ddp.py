# Owner(s): ["rankbook: data parallel"]
"""`DistributedDataParallel`: steps on two halves of a batch equal steps of one process on the whole batch."""

import torch
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.common_utils import run_tests


def model():
    """The same small network in every process."""
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(DEVICE_TYPE)


def batch():
    """The same eight inputs and targets in every process."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(8, size, generator=generator).to(DEVICE_TYPE) for size in (4, 2)]


def train(network, inputs, targets, steps=3):
    """Take some steps and return the parameters."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(network(inputs), targets).backward()
        optimizer.step()
    return [parameter.detach() for parameter in network.parameters()]


class DistributedDataParallelTest(TwoRanksTest):
    def replica(self, network):
        """The network, wrapped for this rank."""
        return DistributedDataParallel(network, device_ids=[self.rank] if DEVICE_TYPE == "cuda" else None)

    def half(self):
        """This rank's half of the batch."""
        return [tensor.chunk(self.world_size)[self.rank] for tensor in batch()]

    def test_steps_equal_one_process(self):
        """Averaged gradients of equal halves are the gradients of the whole, so the parameters stay equal."""
        alone = train(model(), *batch())
        self.assertEqual(train(self.replica(model()), *self.half()), alone, atol=1e-6, rtol=1e-5)
        only_half = train(model(), *self.half())
        self.assertNotEqual(only_half, alone, atol=1e-6, rtol=1e-5)

    def test_starts_from_rank_zero(self):
        """Wrapping copies rank 0's parameters to all ranks."""
        network = nn.Linear(2, 1).to(DEVICE_TYPE)
        nn.init.constant_(network.weight, 3.0 + self.rank)
        self.assertEqual(self.replica(network).module.weight.tolist(), [[3.0, 3.0]])

    def test_no_sync(self):
        """Inside `no_sync` each rank keeps its own gradient; the next step outside averages both."""
        network = self.replica(nn.Linear(1, 1, bias=False).to(DEVICE_TYPE))
        own = torch.full((1, 1), 1.0 + self.rank, device=DEVICE_TYPE)
        with network.no_sync():
            network(own).sum().backward()
        self.assertEqual(network.module.weight.grad.item(), 1.0 + self.rank)
        network(own).sum().backward()
        self.assertEqual(network.module.weight.grad.item(), 3.0)


if __name__ == "__main__":
    run_tests()
