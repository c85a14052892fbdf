# Owner(s): ["rankbook: process groups"]
"""A process group written in Python: registered as a backend, it is what the collectives of `torch.distributed` call."""

import pickle
from pathlib import Path

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.common_utils import run_tests


def finished(result):
    """Work that is done already."""
    future = Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


class StoreProcessGroup(dist.ProcessGroup):
    """Every rank puts its tensors into the store and reads the others': slow, but a true exchange."""

    def __init__(self, store, rank, world_size, timeout):
        super().__init__(rank, world_size)
        self.store = store
        self.ranks = (rank, world_size)
        self.calls = []

    def exchange(self, collective, tensors):
        """Return all ranks' tensors, in the order of the ranks."""
        self.calls.append(collective)
        rank, world_size = self.ranks
        keys = [f"{len(self.calls)}/{each}" for each in range(world_size)]
        self.store.set(keys[rank], pickle.dumps([tensor.tolist() for tensor in tensors]))
        return [[torch.tensor(each) for each in pickle.loads(self.store.get(key))] for key in keys]

    def allreduce(self, tensors, opts):
        for tensor, parts in zip(tensors, zip(*self.exchange("allreduce", tensors), strict=True), strict=True):
            tensor.copy_(torch.stack(parts).sum(0))
        return finished(tensors)

    def broadcast(self, tensors, opts):
        for tensor, sent in zip(tensors, self.exchange("broadcast", tensors)[opts.rootRank], strict=True):
            tensor.copy_(sent)
        return finished(tensors)

    def allgather(self, outputs, tensors, opts):
        for places, parts in zip(outputs, zip(*self.exchange("allgather", tensors), strict=True), strict=True):
            for place, part in zip(places, parts, strict=True):
                place.copy_(part)
        return finished(outputs)

    def getBackendName(self):  # noqa: N802 - torch's name
        return "store"


dist.Backend.register_backend("store", StoreProcessGroup, devices=["cpu"])


class PythonProcessGroupTest(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)

    def test_collectives_and_ddp(self):
        """The Python methods run, their results arrive at the ranks, and DDP averages its gradients through them."""
        dist.init_process_group("store", init_method=f"file://{self.file_name}", rank=self.rank, world_size=self.world_size)
        group = dist.group.WORLD
        self.assertIsInstance(group, StoreProcessGroup)

        tensor = torch.tensor([1.0, 10.0]) * (self.rank + 1)
        dist.all_reduce(tensor)
        self.assertEqual(tensor.tolist(), [3.0, 30.0])
        dist.broadcast(tensor.add_(self.rank), src=1)
        self.assertEqual(tensor.tolist(), [4.0, 31.0])
        self.assertEqual(group.calls, ["allreduce", "broadcast"])

        network = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        network(torch.tensor([[2.0 + 4 * self.rank]])).sum().backward()
        self.assertEqual(network.module.weight.grad.item(), 4.0)
        self.assertEqual(group.calls[-1], "allreduce")


if __name__ == "__main__":
    run_tests()
