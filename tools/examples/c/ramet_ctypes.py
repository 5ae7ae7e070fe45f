#!/usr/bin/env python3
"""Ramet from Python, by ctypes and nothing else: a module of some hundred lines, and what it does when it is run.

    RAMET_LIBRARY=/usr/local/lib/libramet_c.so python3 ramet_ctypes.py       (./tools/install --shared --c)

Tensors lie over memory that Python has: an array.array, a bytearray, a NumPy array, whatever has the buffer protocol.
"""

import array
import ctypes
import json
import os
import sys

FLOAT32, FLOAT64, INT64, MEAN = 6, 7, 4, 1
FORMATS = {"f": FLOAT32, "d": FLOAT64, "q": INT64, "l": INT64, "i": 3, "B": 0, "b": 1, "h": 2}


class RametError(RuntimeError):
    pass


class Library:
    """The functions, each of which raises what ramet_last_error says: status() of those that return one, handle() of the others."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.ramet_last_error.restype = ctypes.c_char_p
        if self.status("check_version", 1):
            raise RametError(self.error())

    def error(self):
        return self.c.ramet_last_error().decode()

    def status(self, name, *arguments):
        code = getattr(self.c, "ramet_" + name)(*arguments)
        if code:
            raise RametError(self.error())
        return code

    def handle(self, name, *arguments):
        function = getattr(self.c, "ramet_" + name)
        function.restype = ctypes.c_void_p
        made = function(*arguments)
        if not made:
            raise RametError(self.error())
        return ctypes.c_void_p(made)


class Handle:
    """What a function returned; freed with the object."""

    handle = None  # where it could not be made

    def __init__(self, library, kind, handle):
        self.library, self.kind, self.handle = library, kind, handle

    def __del__(self):
        if self.handle:
            getattr(self.library.c, "ramet_%s_free" % self.kind)(self.handle)
            self.handle = None


class Tensor(Handle):
    def __init__(self, library, handle, keep=None):
        super().__init__(library, "tensor", handle)
        self.keep = keep  # the memory it lies over

    @classmethod
    def over(cls, library, buffer, sizes=None):
        view = memoryview(buffer)
        if view.format not in FORMATS:
            raise RametError("elements of format %r" % view.format)
        sizes = sizes or view.shape
        count = ctypes.c_int64 * len(sizes)
        items = 1
        for size in sizes:
            items *= size
        if not view.contiguous or items * view.itemsize != view.nbytes:
            raise RametError("sizes: %s do not fit %d bytes" % (sizes, view.nbytes))
        at = (ctypes.c_char * view.nbytes).from_buffer(view)
        handle = library.handle("tensor_from_memory", at, FORMATS[view.format], ctypes.c_int64(len(sizes)), count(*sizes), None)
        return cls(library, handle, at)

    def sizes(self):
        dim = ctypes.c_int64()
        self.library.status("tensor_dim", self.handle, ctypes.byref(dim))
        sizes = (ctypes.c_int64 * dim.value)()
        self.library.status("tensor_sizes", self.handle, sizes, dim)
        return tuple(sizes)

    def tolist(self):
        """Its values in row-major order."""
        sizes = self.sizes()
        count = 1
        for size in sizes:
            count *= size
        out = (ctypes.c_double * count)()
        self.library.status("tensor_copy_out", self.handle, out, FLOAT64, ctypes.c_int64(len(sizes)),
                            (ctypes.c_int64 * len(sizes))(*sizes), None)
        return list(out)

    def item(self):
        value = ctypes.c_double()
        self.library.status("tensor_item", self.handle, ctypes.byref(value))
        return value.value

    def backward(self):
        self.library.status("tensor_backward", self.handle, None)

    @property
    def grad(self):
        return Tensor(self.library, self.library.handle("tensor_grad", self.handle))


class Module(Handle):
    def __init__(self, library, description, weights=None):
        path = os.fsencode(weights) if weights else None
        super().__init__(library, "module", library.handle("module_new", json.dumps(description).encode(), path))

    def __call__(self, x):
        return Tensor(self.library, self.library.handle("module_forward", self.handle, x.handle))

    def parameter(self, name):
        return Tensor(self.library, self.library.handle("module_parameter", self.handle, name.encode()))

    def save(self, path):
        self.library.status("module_save", self.handle, os.fsencode(path))


class Optimizer(Handle):
    def __init__(self, module, name, **options):
        library = module.library
        made = library.handle("optimizer_new", module.handle, name.encode(), json.dumps(options).encode())
        super().__init__(library, "optimizer", made)

    def zero_grad(self):
        self.library.status("optimizer_zero_grad", self.handle, 1)

    def step(self):
        self.library.status("optimizer_step", self.handle)


def mse_loss(x, y):
    return Tensor(x.library, x.library.handle("mse_loss", x.handle, y.handle, MEAN))


def main():
    library = Library(os.environ["RAMET_LIBRARY"])
    library.status("manual_seed", ctypes.c_uint64(1))
    net = Module(library, {"layers": [{"type": "Linear", "in_features": 2, "out_features": 8}, {"type": "Tanh"},
                                      {"type": "Linear", "in_features": 8, "out_features": 1}]})
    adam = Optimizer(net, "Adam", lr=0.05)
    x = Tensor.over(library, array.array("f", [0, 0, 0, 1, 1, 0, 1, 1]), (4, 2))
    y = Tensor.over(library, array.array("f", [0, 1, 1, 0]), (4, 1))
    for step in range(301):
        adam.zero_grad()
        loss = mse_loss(net(x), y)
        loss.backward()
        adam.step()
        if step % 100 == 0:
            print("ramet_ctypes: step %d: loss %.5f" % (step, loss.item()))
    print("ramet_ctypes:", ["%.2f" % v for v in net(x).tolist()])
    if loss.item() > 0.01 or len(net.parameter("0.weight").grad.tolist()) != 16:
        sys.exit("ramet_ctypes: it has not learned")
    # What is wrong is an exception, with the library's words.
    try:
        Module(library, {"layers": [{"type": "Linear", "in_features": -3, "out_features": 1}]})
    except RametError as e:
        print("ramet_ctypes: as it should,", e)
    else:
        sys.exit("ramet_ctypes: a layer with -3 inputs")
    del x, y, loss, adam, net
    left = ctypes.c_int64(-1)
    library.status("live_handles", ctypes.byref(left))
    if left.value:
        sys.exit("ramet_ctypes: %d handles are left" % left.value)


if __name__ == "__main__":
    main()
