#!/usr/bin/env python3
"""Loads by PyTorch what the test saved, runs it, and saves it again:

    tests/nn/script/goldens/round_trip.py FOLDER

For each NAME.pt in FOLDER it compares the outputs with values.pt, and writes back_NAME.pt. Where there is no PyTorch it says so.
"""

import pathlib
import sys
import warnings


def same(got, want, torch):
    if isinstance(want, torch.Tensor):
        return torch.allclose(got.double(), want.double(), rtol=1e-9, atol=1e-9)
    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(same(a, b, torch) for a, b in zip(got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(got[k], want[k], torch) for k in want)
    return abs(got - want) < 1e-9 if isinstance(want, float) else got == want


def main(folder):
    try:
        import torch
    except ImportError:
        print("(python3 has no PyTorch)")
        return
    warnings.simplefilter("ignore")
    rows = torch.load(pathlib.Path(__file__).absolute().parent / "values.pt")
    for path in sorted(folder.glob("*.pt")):
        extra = {"note": ""}
        module = torch.jit.load(str(path), _extra_files=extra)
        assert extra["note"] == b"saved", extra
        torch.jit.save(module, str(folder / ("back_" + path.name)))  # before a call changes its buffers
        row = rows[path.stem]
        # In float64, as values.pt: autocast blocks round float32.
        inputs = [i.double() if isinstance(i, torch.Tensor) and i.is_floating_point() else i for i in row["inputs"]]
        assert same(module.double()(*inputs), row["result"], torch), path
    print("read by PyTorch")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
