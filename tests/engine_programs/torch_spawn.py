"""Ranks by torch.multiprocessing.spawn, tensors between processes, and DataLoader workers by each start method."""

import torch
import torch.multiprocessing as mp
from plain_programs import emit
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(index * index)


def add_one(rank, tensor, queue):
    tensor[rank] += 1
    # Numbers, not tensors: a tensor in a queue lives only as long as the process that put it there.
    queue.put([rank, rank])
    torch.mm(torch.ones(300, 300), torch.ones(300, 300)).sum()
    if rank == 1:
        raise ValueError("rank 1 is broken")


def main():
    shared = torch.zeros(2).share_memory_()
    queue = mp.get_context("spawn").Queue()
    context = mp.spawn(add_one, args=(shared, queue), nprocs=2, join=False)
    values = sorted(queue.get(timeout=120) for _ in range(2))
    try:
        while not context.join():
            pass
    except mp.ProcessRaisedException as error:
        emit({"type": "raised", "rank": error.error_index, "text": str(error)})
    emit({"type": "spawned", "shared": shared.tolist(), "values": values})
    for method in ("spawn", "fork"):
        loader = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context=method)
        emit({"type": "loaded", "method": method, "batches": [batch.tolist() for batch in loader]})


if __name__ == "__main__":
    main()
