# Owner(s): ["rankbook: collectives"]
"""Collectives for any Python object that pickles, on ranks that live for one test (`MultiProcessTestCase`)."""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.common_utils import run_tests


@dataclass(frozen=True)
class Part:
    """An object that pickles by the name of its class, so a rank must be able to import this file."""

    rank: int
    words: tuple[str, ...]


class ObjectCollectivesTest(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def tearDown(self):
        super().tearDown()
        Path(self.file_name).unlink(missing_ok=True)

    def init_ranks(self):
        """Gloo everywhere: objects travel as bytes in the memory of the host."""
        dist.init_process_group("gloo", init_method=f"file://{self.file_name}", rank=self.rank, world_size=self.world_size)

    def test_gathered(self):
        """`all_gather_object` gives every rank equal copies of all objects, whatever their pickled sizes."""
        self.init_ranks()
        own = Part(self.rank, ("word",) * (1 + 100 * self.rank))
        parts = [None] * self.world_size
        dist.all_gather_object(parts, own)
        self.assertEqual(parts, [Part(0, ("word",)), Part(1, ("word",) * 101)])

    def test_handed_out(self):
        """`broadcast_object_list` and `scatter_object_list` bring the source's objects to the other ranks."""
        self.init_ranks()
        shared = [{"lr": 0.5, "steps": [1, 2]}, Part(0, ("all",))] if self.rank == 0 else [None, None]
        dist.broadcast_object_list(shared, src=0)
        self.assertEqual(shared, [{"lr": 0.5, "steps": [1, 2]}, Part(0, ("all",))])

        pieces = [Part(0, ("first",)), torch.arange(3)] if self.rank == 0 else None
        own = [None]
        dist.scatter_object_list(own, pieces, src=0)
        self.assertEqual(own[0], [Part(0, ("first",)), torch.arange(3)][self.rank])


if __name__ == "__main__":
    run_tests()
