# Owner(s): ["rankbook: point-to-point"]
"""From one rank to another: `send`/`recv`, and `batch_isend_irecv` for exchanges that would otherwise lock up."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests


class PointToPointTest(TwoRanksTest):
    def test_there_and_back(self):
        """A tensor goes to the other rank, is doubled there, and comes back."""
        tensor = torch.arange(5.0, device=DEVICE_TYPE) if self.rank == 0 else torch.zeros(5, device=DEVICE_TYPE)
        if self.rank == 0:
            dist.send(tensor, dst=1)
            dist.recv(tensor, src=1)
        else:
            sender = dist.recv(tensor, src=0)
            self.assertEqual(sender, 0)
            dist.send(tensor * 2, dst=0)
        self.assertEqual(tensor.tolist(), [0.0, 2.0, 4.0, 6.0, 8.0] if self.rank == 0 else [0.0, 1.0, 2.0, 3.0, 4.0])

    def test_messages_keep_their_order(self):
        """Messages between two ranks arrive in the order in which they were sent."""
        messages = [torch.full((2,), 10.0 + number, device=DEVICE_TYPE) for number in range(3)]
        received = [torch.zeros(2, device=DEVICE_TYPE) for _ in messages]
        for message, place in zip(messages, received, strict=True):
            if self.rank == 1:
                dist.send(message, dst=0)
            else:
                dist.recv(place, src=1)
        if self.rank == 0:
            self.assertEqual([place[0].item() for place in received], [10.0, 11.0, 12.0])

    def test_ring(self):
        """In a batch every rank sends and receives at once, here around a ring, until each has seen every value."""
        right, left = (self.rank + 1) % self.world_size, (self.rank - 1) % self.world_size
        passing = torch.tensor([float(self.rank)], device=DEVICE_TYPE)
        seen = [self.rank]
        for _ in range(self.world_size - 1):
            arriving = torch.full_like(passing, -1)
            batch = [dist.P2POp(dist.isend, passing, right), dist.P2POp(dist.irecv, arriving, left)]
            for work in dist.batch_isend_irecv(batch):
                work.wait()
            passing = arriving
            seen.append(int(passing.item()))
        self.assertEqual(seen, [(self.rank - step) % self.world_size for step in range(self.world_size)])


if __name__ == "__main__":
    run_tests()
