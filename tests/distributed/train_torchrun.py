# Owner(s): ["rankbook: harness"]
"""A training script for `torchrun`: linear regression with DDP, checked against the exact solution.

To run: torchrun --nproc-per-node=2 tests/distributed/train_torchrun.py
"""

import gc
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SAMPLES_PER_RANK = 16


def read_environment():
    """Return rank, local rank and world size as torchrun sets them, or end with what is missing."""
    missing = [name for name in VARIABLES if name not in os.environ]
    if missing:
        sys.exit(f"{', '.join(missing)} not set: start this script with `torchrun --nproc-per-node=2 {sys.argv[0]}`")
    return int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])


def pick_device(local_rank, world_size):
    """A GPU for every rank where there are enough of them, the CPU elsewhere."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    device = torch.device("cuda", local_rank) if torch.cuda.device_count() >= ranks_here else torch.device("cpu")
    torch.get_device_module(device).set_device(device)
    return device


def samples(world_size, device):
    """The whole data set: noisy, so that each rank's part alone has another solution than the whole."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(SAMPLES_PER_RANK * world_size, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(inputs), 1, generator=generator, dtype=torch.float64)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64) + noise
    return inputs.to(device), targets.to(device)


def train(inputs, targets, device):
    """Fit a linear model on this rank's samples, with gradients averaged over all ranks."""
    model = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64, device=device)
    model = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return model.module.weight.detach().T


def main():
    """Train on this rank's share and compare with the least-squares solution of the whole data set."""
    rank, local_rank, world_size = read_environment()
    device = pick_device(local_rank, world_size)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    inputs, targets = samples(world_size, device)
    weight = train(inputs[rank::world_size], targets[rank::world_size], device)
    exact = torch.linalg.lstsq(inputs.cpu(), targets.cpu()).solution
    gc.collect()  # the wrapped model holds the group in a cycle: at the interpreter's end, Gloo's threads may abort it
    dist.destroy_process_group()
    assert torch.allclose(weight.cpu(), exact, atol=1e-8), f"rank {rank}: {weight.flatten().tolist()}, not {exact.flatten().tolist()}"
    values = ", ".join(f"{value:.4f}" for value in weight.flatten().tolist())
    print(f"rank {rank} of {world_size} on {device.type}: weight [{values}] is the least-squares solution", flush=True)


if __name__ == "__main__":
    main()
