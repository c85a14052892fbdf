# Owner(s): ["rankbook: fully sharded"]
"""FSDP2 (`fully_shard`): each rank keeps a part of every parameter, and training is the same as in one process."""

import torch
from common_ranks import DEVICE_TYPE, WORLD_SIZE, TwoRanksTest
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.testing._internal.common_utils import run_tests


def model():
    """The same small network in every process."""
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)).to(DEVICE_TYPE)


def batch():
    """The same inputs in every process, four for each rank."""
    return torch.randn(4 * WORLD_SIZE, 6, generator=torch.Generator().manual_seed(13)).to(DEVICE_TYPE)


def step(network, inputs):
    """Take one step; the loss is a mean, so the mean over ranks is the mean over the batch."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    network(inputs).square().mean().backward()
    optimizer.step()


class FullyShardTest(TwoRanksTest):
    def sharded(self):
        """The network with each linear layer, then the rest, sharded over the ranks."""
        network, mesh = model(), init_device_mesh(DEVICE_TYPE, (self.world_size,))
        for layer in (network[0], network[2]):
            fully_shard(layer, mesh=mesh)
        return fully_shard(network, mesh=mesh)

    def test_parameters_are_sharded(self):
        """A rank holds its half of the rows of each parameter, and nothing else."""
        for sharded, whole in zip(self.sharded().parameters(), model().parameters(), strict=True):
            self.assertEqual(sharded.placements, (Shard(0),))
            self.assertEqual(sharded.to_local(), whole.detach().chunk(self.world_size)[self.rank])

    def test_step_equals_one_process(self):
        """After a step on its part of the batch, the gathered parameters are those of one process on the whole."""
        alone, network = model(), self.sharded()
        before = [parameter.detach().clone() for parameter in alone.parameters()]
        step(alone, batch())
        step(network, batch().chunk(self.world_size)[self.rank])
        gathered = [parameter.full_tensor().detach() for parameter in network.parameters()]
        self.assertEqual(gathered, [parameter.detach() for parameter in alone.parameters()], atol=1e-5, rtol=1e-5)
        self.assertNotEqual(gathered, before, atol=1e-3, rtol=0)


if __name__ == "__main__":
    run_tests()
