#!/usr/bin/env python3
"""Writes the files in this folder, by NumPy's, PyTorch's and LibTorch's own writers:

    tests/nn/formats/goldens/make_goldens.py [--libtorch PROGRAM]

It needs both, of the same machine order. PROGRAM is make_libtorch.cpp, compiled with LibTorch
(g++ -std=c++20 -I.../torch/include -I.../torch/include/torch/csrc/api/include make_libtorch.cpp -ltorch -ltorch_cpu -lc10).

Values are known without the files: element i of a tensor is i % 2 of bool, 7 i - 5 of integers (5 i + 1 of uint8), i / 2 - 1.25 of
floating point, cast to its type.
"""

import argparse
import collections
import copy
import io
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).absolute().parent
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64]
NUMPY = {"bool": "?", "uint8": "u1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "float16": "f2", "float32": "f4",
         "float64": "f8"}


def values(dtype, *sizes):
    n = int(np.prod(sizes, dtype=np.int64))
    i = torch.arange(n, dtype=torch.int64)
    if dtype == torch.bool:
        v = i % 2
    elif dtype == torch.uint8:
        v = 5 * i + 1
    elif dtype.is_floating_point:
        v = i.double() / 2 - 1.25
    else:
        v = 7 * i - 5
    return v.to(dtype).reshape(sizes)


def numpy_files():
    def array(name, *sizes):
        return values(getattr(torch, name), *sizes).numpy()

    with open(HERE / "v2.npy", "wb") as f:
        np.lib.format.write_array(f, array("int32", 2, 3), version=(2, 0))
    with open(HERE / "v3.npy", "wb") as f:
        np.lib.format.write_array(f, array("float64", 3), version=(3, 0))
    np.save(HERE / "v1.npy", array("float32", 2, 3))
    np.save(HERE / "fortran.npy", np.asfortranarray(array("int16", 2, 3, 4)))
    arrays = {}
    for name, code in NUMPY.items():
        arrays[name] = array(name, 2, 3)
        arrays[name + "_big"] = arrays[name].astype(">" + code)
        arrays[name + "_0d"] = array(name, 1).reshape(())
        arrays[name + "_empty"] = array(name, 0, 3)
        arrays[name + "_fortran"] = np.asfortranarray(array(name, 3, 4)).astype(">" + code, order="K")
    np.savez(HERE / "arrays.npz", **arrays)
    np.savez_compressed(HERE / "compressed.npz", array("float32", 50, 4), named=array("int64", 3))
    np.save(HERE / "uint16.npy", np.array([1, 2, 65535], np.uint16))
    np.save(HERE / "uint32.npy", np.array([[0, 2**32 - 1]], np.uint32))
    # What is not read.
    np.save(HERE / "complex.npy", np.zeros(2, np.complex64))
    np.save(HERE / "objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(HERE / "texts.npy", np.array(["a", "bc"]))
    np.save(HERE / "uint64.npy", np.zeros(2, np.uint64))
    np.save(HERE / "fields.npy", np.zeros(2, [("a", "<f4"), ("b", "<i2")]))
    np.save(HERE / "raw.npy", np.zeros(2, "V2"))


def state():
    d = collections.OrderedDict()
    for dtype in DTYPES:
        name = str(dtype)[len("torch."):]
        d[name] = values(dtype, 2, 3)
        d[name + "_0d"] = values(dtype, 1).reshape(())
        d[name + "_empty"] = values(dtype, 0, 3)
    base = values(torch.float32, 4, 6)
    d["whole"] = base
    d["tied"] = base  # the same tensor
    d["view"] = base[1:3, ::2]
    d["transposed"] = base.t()
    d["expanded"] = values(torch.float32, 3, 1).expand(3, 4)
    d["parameter"] = torch.nn.Parameter(values(torch.float32, 3))
    d["frozen"] = torch.nn.Parameter(values(torch.float64, 3), requires_grad=False)
    d._metadata = collections.OrderedDict(version=1)
    return d


def checkpoint():
    return {"model": {"fc.weight": values(torch.float32, 2, 3), "fc.bias": values(torch.float32, 2)}, "epoch": 3, "big": -(2**62),
            "loss": 0.1, "best": float("inf"), "done": True, "nothing": None, "name": "caf\u00e9 \u6f22", "list": [1, 2.5, "x", []],
            "tuple": (1, (2, "y")), "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu"), 7: "seven",
            "layout": torch.strided, "bytes": b"\x00\xff", "many": [values(torch.int64, 2), values(torch.int64, 3)]}


def mixed():
    """A training program's checkpoint: between the data, what other libraries do not have."""
    text = (1, "x")
    return {"model": collections.OrderedDict(weight=values(torch.float32, 2, 3), spectrum=values(torch.float32, 2).to(torch.complex64),
                                             counts=values(torch.int32, 4).to(torch.uint64), small=values(torch.float32, 2).to(torch.float8_e5m2),
                                             sparse=torch.eye(2).to_sparse(), negated=torch.tensor([1 + 2j]).conj().imag,
                                             quantized=torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8),
                                             bias=torch.nn.Parameter(values(torch.float32, 2))),
            "args": argparse.Namespace(lr=0.1, layers=[1, 2]), "best": np.float64(0.5), "seen": {1, 2}, "fixed": frozenset([3]),
            "array": np.arange(3), "by_pair": {text: 1}, "huge": 2**80, "class": argparse.Namespace, "path": pathlib.PurePosixPath("a"),
            "counter": collections.Counter("aab"), "default": collections.defaultdict(list, a=[1]), "net": torch.nn.Linear(2, 1),
            "list": [1, argparse.Namespace(), values(torch.int64, 2)], "epoch": 3}


def big_endian(target):
    """A state dict as a machine of the other byte order writes it: PyTorch's own file, with its storages' bytes turned around."""
    d = {"a": values(torch.int16, 2, 3), "b": values(torch.float32, 4), "c": values(torch.float64, 2)}
    memory = io.BytesIO()
    torch.save(d, memory)
    sizes = {"data/%d" % i: t.element_size() for i, t in enumerate(d.values())}
    with zipfile.ZipFile(memory) as z, zipfile.ZipFile(target, "w") as out:
        for name in z.namelist():
            data, short = z.read(name), name.split("/", 1)[1]
            if short == "byteorder":
                data = b"big"
            if short in sizes:
                item = sizes[short]
                data = b"".join(data[i:i + item][::-1] for i in range(0, len(data), item))
            out.writestr(name, data)


def optimizers():
    """Each after two steps of known gradients: its state, the parameter then, and after one more."""
    found = {}
    tensors = {"lr": torch.tensor(0.25), "betas": (torch.tensor(0.5), torch.tensor(0.75))}
    muon = {"ns_coefficients": (3.0, -4.0, 2.0), "ns_steps": 4, "adjust_lr_fn": "match_rms_adamw"}
    for name, options in (("Adam", {"betas": (0.5, 0.75)}), ("AdamW", {"amsgrad": True}), ("SGD", {"momentum": 0.5, "nesterov": True}),
                          ("RMSprop", {"momentum": 0.25, "centered": True}), ("Adagrad", {"maximize": True}), ("Adadelta", {}),
                          ("Adamax", {}), ("NAdam", {"decoupled_weight_decay": True}), ("RAdam", {}), ("Rprop", {}), ("ASGD", {}),
                          ("Adam of tensors", tensors), ("Muon", muon)):
        p = values(torch.float32, 2, 3).requires_grad_()
        decay = {} if name == "Rprop" else {"weight_decay": 0.125}
        optimizer = getattr(torch.optim, name.split()[0])([p], **{"lr": 0.25, **decay, **options})
        steps = []
        for i in range(3):
            p.grad = values(torch.float32, 2, 3)
            optimizer.step()
            if i > 0:
                steps.append(p.detach().clone())
            if i == 1:
                state = copy.deepcopy(optimizer.state_dict())
        found[name] = {"optimizer": state, "steps": steps}
    return found


def lbfgs():
    """The same of LBFGS, which asks for the gradient itself: of (weights * (p - 1) ** 2).sum()."""
    p = values(torch.float32, 2, 3).requires_grad_()
    optimizer = torch.optim.LBFGS([p], lr=1, max_iter=2, history_size=3)

    def closure():
        optimizer.zero_grad()
        loss = (torch.arange(1.0, 7.0).view(2, 3) * (p - 1) ** 2).sum()
        loss.backward()
        return loss

    steps = []
    for i in range(3):
        optimizer.step(closure)
        if i > 0:
            steps.append(p.detach().clone())
        if i == 1:
            state = copy.deepcopy(optimizer.state_dict())
    return {"optimizer": state, "steps": steps}


def torch_files():
    torch.save(state(), HERE / "state.pt")
    torch.save(state(), HERE / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(checkpoint(), HERE / "checkpoint.pt")
    torch.save(checkpoint(), HERE / "protocol5.pt", pickle_protocol=5)
    torch.save(checkpoint(), HERE / "old_protocol4.pt", pickle_protocol=4, _use_new_zipfile_serialization=False)
    torch.save(values(torch.float32, 2, 3), HERE / "tensor.pt")
    big_endian(HERE / "big.pt")
    torch.save(optimizers(), HERE / "optimizers.pt")
    torch.save(lbfgs(), HERE / "lbfgs.pt")
    unsigned = {"a": torch.tensor([1, 2, 65535], dtype=torch.uint16), "b": torch.tensor([[0, 2**32 - 1]], dtype=torch.uint32)}
    torch.save(unsigned, HERE / "unsigned.pt")
    torch.save(mixed(), HERE / "mixed.pt")
    torch.save(mixed(), HERE / "mixed_protocol4.pt", pickle_protocol=4)
    torch.save(mixed(), HERE / "mixed_old.pt", _use_new_zipfile_serialization=False)
    # Each asks for something else than data, of which the name alone is read.
    torch.save(torch.nn.Linear(2, 1), HERE / "refused_module.pt")
    torch.save({"x": np.float64(1)}, HERE / "refused_scalar.pt")
    torch.save({"x": values(torch.float32, 2).to(torch.complex64)}, HERE / "refused_complex.pt")
    torch.save({"x": torch.zeros(2, dtype=torch.uint64)}, HERE / "refused_uint64.pt")
    torch.save({"x": torch.eye(2).to_sparse()}, HERE / "refused_sparse.pt")


class Runs:
    def __reduce__(self):
        return os.system, ("touch ran_code",)


def hostile_files():
    torch.save({"x": Runs()}, HERE / "refused_code.pt")
    torch.save({"x": Runs()}, HERE / "refused_old_code.pt", _use_new_zipfile_serialization=False)


def main(arguments):
    numpy_files()
    torch_files()
    hostile_files()
    if arguments[:1] == ["--libtorch"]:
        subprocess.run([arguments[1], str(HERE)], check=True)
    else:
        print("libtorch_*.pt are as they were: no --libtorch")


if __name__ == "__main__":
    main(sys.argv[1:])
