# Owner(s): ["rankbook: collectives"]
"""Collectives with a root: `broadcast`, `scatter`, `gather`, `reduce`."""

import torch
import torch.distributed as dist
from common_ranks import DEVICE_TYPE, WORLD_SIZE, TwoRanksTest
from torch.testing._internal.common_utils import run_tests

# The last rank is the root: a rank that mistakes itself for the root is then seen.
ROOT = WORLD_SIZE - 1


class RootedCollectivesTest(TwoRanksTest):
    def full(self, value):
        """Tensor of three equal numbers."""
        return torch.full((3,), float(value), device=DEVICE_TYPE)

    def test_broadcast(self):
        """After a broadcast every rank holds the root's tensor."""
        tensor = self.full(self.rank + 5)
        dist.broadcast(tensor, src=ROOT)
        self.assertEqual(tensor.tolist(), [ROOT + 5.0] * 3)

    def test_scatter(self):
        """The root hands its r-th tensor to rank r."""
        pieces = [self.full(7 + rank) for rank in range(self.world_size)] if self.rank == ROOT else None
        piece = self.full(0)
        dist.scatter(piece, pieces, src=ROOT)
        self.assertEqual(piece.tolist(), [7.0 + self.rank] * 3)

    def test_gather(self):
        """The root, and the root alone, names the tensors into which all ranks' tensors go."""
        pieces = [self.full(0) for _ in range(self.world_size)] if self.rank == ROOT else None
        dist.gather(self.full(self.rank + 1), pieces, dst=ROOT)
        expected = [[1.0] * 3, [2.0] * 3] if self.rank == ROOT else None
        self.assertEqual(pieces and [piece.tolist() for piece in pieces], expected)
        # Only the root can tell that the others took part, so it tells them.
        verdict = self.full(pieces[0][0] if pieces else 0)
        dist.broadcast(verdict, src=ROOT)
        self.assertEqual(verdict[0].item(), 1.0)

    def test_reduce(self):
        """The root ends with the product of all ranks' tensors."""
        tensor = self.full(self.rank + 3)
        dist.reduce(tensor, dst=ROOT, op=dist.ReduceOp.PRODUCT)
        dist.broadcast(tensor, src=ROOT)
        self.assertEqual(tensor.tolist(), [12.0] * 3)


if __name__ == "__main__":
    run_tests()
