"""What processes.cc measures, of PyTorch's DistributedDataParallel over Gloo: the same rows, printed in the same way.

usage: tools/launch --nproc 2 --no-prefix -- python3 processes_torch.py SECONDS [TEXT]
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def timed(work):
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e3

    def row(name, work):
        if only not in name:
            return
        for _ in range(3):
            work()
        guess = torch.tensor([timed(work)], dtype=torch.float64)
        dist.all_reduce(guess, op=dist.ReduceOp.MAX)
        rounds = min(max(int(seconds * 1e3 / guess.item()), 5), 100000)
        times = sorted(timed(work) for _ in range(rounds))
        if rank == 0:
            print("%s\t%.4f\t%.4f" % (name, times[0], times[len(times) // 2]), flush=True)

    def training(name, model, x):
        if only not in name and only not in name + ", alone":
            return
        ddp = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        y = torch.randint(0, 10, (x.shape[0],))

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            optimizer.step()

        row(name, step)
        with ddp.no_sync():
            row(name + ", alone", step)

    for name, elements in (("all-reduce 64 B", 16), ("all-reduce 2.7 MB", 669706), ("all-reduce 43 MB", 10750000)):
        t = torch.zeros(elements)
        row(name, lambda: dist.all_reduce(t))
    linear, relu = nn.Linear, nn.ReLU
    training("MLP 784-512-512-10, 128 rows",
             nn.Sequential(linear(784, 512), relu(), linear(512, 512), relu(), linear(512, 10)),
             torch.randn(128 // ranks, 784))
    training("10.5 M parameters, 64 rows",
             nn.Sequential(linear(1024, 2048), relu(), linear(2048, 2048), relu(), linear(2048, 2048), relu(),
                           linear(2048, 10)), torch.randn(64 // ranks, 1024))
    training("CNN, 128 rows",
             nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), relu(), nn.MaxPool2d(2),
                           nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), relu(), nn.MaxPool2d(2), nn.Flatten(),
                           linear(3136, 128), relu(), linear(128, 10)), torch.randn(128 // ranks, 1, 28, 28))
    dist.barrier()
    dist.destroy_process_group()


main()
