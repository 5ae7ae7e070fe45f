#!/usr/bin/env python3
"""Reads what the test wrote into a folder, by NumPy and PyTorch, and writes it again in all their ways:

    tests/nn/formats/goldens/round_trip.py FOLDER

    all.npz, deflated.npz, one.npy    back.npz, back_deflated.npz, back_fortran.npz, back_big.npz, back.npy
    all.pt                            back.pt, back_old.pt, back_protocol5.pt

The test compares the bits. What one cannot do without is printed and skipped.
"""

import pathlib
import sys


def numpy_part(folder):
    import numpy as np

    arrays = dict(np.load(folder / "all.npz"))
    deflated = dict(np.load(folder / "deflated.npz"))
    assert list(arrays) == list(deflated) and len(arrays) > 20, list(arrays)
    np.savez(folder / "back.npz", **arrays)
    np.savez_compressed(folder / "back_deflated.npz", **deflated)
    np.savez(folder / "back_fortran.npz", **{k: np.asfortranarray(v) if v.ndim else v for k, v in arrays.items()})
    np.savez(folder / "back_big.npz", **{k: v.astype(v.dtype.newbyteorder(">")) for k, v in arrays.items()})
    np.save(folder / "back.npy", np.load(folder / "one.npy"))


def torch_part(folder):
    import torch

    state = torch.load(folder / "all.pt", weights_only=True)
    assert len(state) > 20, list(state)
    assert state["tied"].untyped_storage().data_ptr() == state["view"].untyped_storage().data_ptr()
    torch.save(state, folder / "back.pt")
    torch.save(state, folder / "back_old.pt", _use_new_zipfile_serialization=False)
    torch.save(state, folder / "back_protocol5.pt", pickle_protocol=5)


def main(folder):
    for what, part in (("numpy", numpy_part), ("torch", torch_part)):
        try:
            __import__(what)
        except ImportError as e:
            print("skipped %s: %s" % (what, e))
            continue
        part(folder)
        print("done %s" % what)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
