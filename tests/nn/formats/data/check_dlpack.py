"""check_dlpack.py PLUGIN.so: tensors go to NumPy and PyTorch and come back, in both structs, over the same memory, and are
given back once. Exit code 77: neither is here."""

import ctypes
import gc
import sys

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None
if np is None and torch is None:
    print("no numpy, no torch")
    sys.exit(77)

lib = ctypes.CDLL(sys.argv[1])
lib.plugin_error.restype = ctypes.c_char_p
lib.plugin_make.restype = lib.plugin_import.restype = ctypes.c_int64
lib.plugin_export.restype = lib.plugin_data.restype = ctypes.c_void_p
lib.plugin_get.restype = ctypes.c_double
I64, P = ctypes.c_int64, ctypes.c_void_p
lib.plugin_export.argtypes = [I64, ctypes.c_int, ctypes.c_int]
lib.plugin_import.argtypes = [P, ctypes.c_int]
lib.plugin_get.argtypes = [I64, I64]
lib.plugin_fill.argtypes = [I64, ctypes.c_double]
for f in (lib.plugin_drop, lib.plugin_data, lib.plugin_dtype):
    f.argtypes = [I64]
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
capsule_rename = ctypes.pythonapi.PyCapsule_SetName
capsule_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
NAMES = {0: (b"dltensor", b"used_dltensor"), 1: (b"dltensor_versioned", b"used_dltensor_versioned")}


class Ours:
    """What an array module asks for in its from_dlpack()."""

    def __init__(self, tensor, versioned, read_only=0):
        self.tensor, self.versioned, self.read_only = tensor, versioned, read_only

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        managed = lib.plugin_export(self.tensor, self.versioned, self.read_only)
        assert managed, lib.plugin_error()
        return capsule_new(managed, NAMES[self.versioned][0], None)


def make(dtype, sizes, strided):
    t = lib.plugin_make(DTYPES.index(dtype), len(sizes), (I64 * max(1, len(sizes)))(*sizes), strided)
    assert t, lib.plugin_error()
    return t


def take(capsule):
    versioned = int("dltensor_versioned" in repr(capsule))
    t = lib.plugin_import(capsule_pointer(capsule, NAMES[versioned][0]), versioned)
    if t:
        capsule_rename(capsule, NAMES[versioned][1])
    return t


def expected(sizes, strided):
    shape = list(sizes)
    if strided:
        shape[-1] *= 2
        shape[0], shape[1] = shape[1], shape[0]
    n = 1
    for s in shape:
        n *= s
    flat = [k % 120 for k in range(n)]

    def at(index):
        if strided:
            index = list(index)
            index[-1] = index[-1] * 2 + 1
            index[0], index[1] = index[1], index[0]
        place = 0
        for k, s in zip(index, shape):
            place = place * s + k
        return flat[place]

    def walk(prefix):
        if len(prefix) == len(sizes):
            return at(prefix)
        return [walk(prefix + [k]) for k in range(sizes[len(prefix)])]

    return walk([])


def truths(values):
    return [truths(v) for v in values] if isinstance(values, list) else bool(values)


def check(library, name):
    count = 0
    for dtype in DTYPES:
        if library is np and dtype == "bfloat16":
            continue
        for sizes, strided in (((), 0), ((0, 3), 0), ((5,), 0), ((2, 3, 4), 0), ((2, 3, 4), 1), ((1, 4), 0)):
            for versioned in (0, 1):
                t = make(dtype, sizes, strided)
                a = library.from_dlpack(Ours(t, versioned))
                assert str(a.dtype).replace("torch.", "") == dtype and tuple(a.shape) == sizes, (a.dtype, a.shape, dtype, sizes)
                values = a.tolist() if dtype != "bfloat16" else a.double().tolist()
                wanted = expected(list(sizes), strided)
                assert values == (truths(wanted) if dtype == "bool" else wanted), (dtype, sizes, values, wanted)
                address = a.data_ptr() if library is torch else a.ctypes.data
                if 0 not in sizes:
                    assert address == lib.plugin_data(t), "copied"
                lib.plugin_drop(t)  # the array keeps the memory
                assert (a.tolist() if dtype != "bfloat16" else a.double().tolist()) == values
                # And back: from the array to a tensor, over the same memory.
                kwargs = {"max_version": (1, 0)} if versioned else {}
                try:
                    capsule = a.__dlpack__(**kwargs)
                except (TypeError, BufferError):
                    continue  # an older NumPy, or read-only
                back = take(capsule)
                assert back, lib.plugin_error()
                assert lib.plugin_dtype(back) == DTYPES.index(dtype)
                if 0 not in sizes:
                    assert lib.plugin_data(back) == address
                    assert lib.plugin_fill(back, 1.0), lib.plugin_error()
                    assert (a == 1).all(), "the array does not see what the tensor was given"
                del capsule
                count += 1
                holds = sys.getrefcount(a)
                lib.plugin_drop(back)
                gc.collect()
                if library is np:
                    assert sys.getrefcount(a) == holds - 1, "not given back once"
    # Memory that may only be read: read where it is, copied before it is written.
    if library is np:
        a = np.arange(6.0)
        a.flags.writeable = False
        try:
            t = take(a.__dlpack__(max_version=(1, 0)))
        except (TypeError, BufferError):
            t = 0
        if t:
            assert lib.plugin_data(t) == a.ctypes.data
            assert lib.plugin_fill(t, 9.0) and lib.plugin_get(t, 0) == 9 and a[0] == 0 and a[5] == 5
            lib.plugin_drop(t)
        t = make("float32", (3,), 0)
        b = np.from_dlpack(Ours(t, 1, 1))
        assert not b.flags.writeable
    # Refused by name.
    bad = [(library.zeros(3, dtype=library.complex64), "complex")]
    if library is np:
        bad.append((np.arange(5.0)[::-1], "negative strides"))
        bad.append((np.zeros(3, np.uint64), "64 bits"))
    for array, text in bad:
        assert not take(array.__dlpack__()) and text in lib.plugin_error().decode(), lib.plugin_error()
    return "%s %s: %d round trips" % (name, library.__version__, count)


print(", ".join(check(m, n) for m, n in ((np, "numpy"), (torch, "torch")) if m is not None))
