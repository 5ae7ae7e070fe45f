"""Makes the models' archives, has the program check them, and writes MODELS.md.

    compare.py PROGRAM WORK PAGE [MODEL...]

PROGRAM is //tools/compat/models:models, WORK a folder for archives, which are removed model by model. In PAGE the rows of these models
(default: all) are written anew.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch

import make
import zoo

HERE = pathlib.Path(__file__).absolute().parent
CLOSE = 1e-9  # in float64
BACK = 1e-7  # of PyTorch's own gradients (make.py says what is off there)
TIMES = 2.0  # PyTorch's own error in float32
LEAST = 1e-6  # an error of float32 that is always allowed
STEPS = 1e-3  # of losses
warnings.simplefilter("ignore")


def alike(got, want):
    if isinstance(want, torch.Tensor):
        return got.shape == want.shape and torch.allclose(got.double(), want.double(), rtol=CLOSE, atol=1e-12)
    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(alike(a, b) for a, b in zip(got, want))
    if isinstance(want, dict):
        return set(got) == set(want) and all(alike(got[k], want[k]) for k in want)
    return abs(got - want) <= CLOSE * (1 + abs(want)) if isinstance(want, float) else got == want


def read_back(model, values, path):
    """What PyTorch computes with the file that Ramet has saved: "same", "outputs same" or "differs"."""
    net = torch.jit.load(str(path))
    if model.loss == "none":
        return "same" if alike(net(*values["inputs"]), values["result"]) else "differs"
    first = values["draws"][0]
    outputs, loss = make.loss_of(model, net, values["inputs"])
    if make.error(outputs, first["outputs"]) > CLOSE:
        return "differs"
    try:
        loss.backward()
    except RuntimeError as e:
        # PyTorch cannot train such a program: its batch norm keeps buffers that the end of the graph writes. Its own module() says the
        # same.
        if "modified by an inplace operation" in str(e):
            return "outputs same"
        raise
    grads = {n: p.grad for n, p in net.named_parameters() if p.grad is not None}
    names = [n for n in first["grads"] if n in grads]
    error = make.error([grads[n] for n in names], [first["grads"][n] for n in names])
    return "same" if names and error <= BACK else "differs"


def faults_of(row, values):
    """What does not hold, as words; and what the table shows."""
    faults = []

    def figure(name, limit, own=None):
        value = float(row[name])
        if not value <= limit:
            faults.append(f"{name}: got {value:.2g}, expected at most {limit:.2g}")
        return f"{value:.1e}" if own is None else f"{value:.1e} ({own:.1e})"

    cells = [figure("outputs64", CLOSE)]
    if "grads64" in row:
        own = values["error32"]
        apart = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(values["losses32"], values["losses"]))
        figure("buffers64", CLOSE)
        cells.append(figure("grads64", CLOSE))
        cells.append(figure("outputs32", max(TIMES * own["outputs"], LEAST), own["outputs"]))
        cells.append(figure("grads32", max(TIMES * own["grads"], LEAST), own["grads"]))
        cells.append(figure("losses64", STEPS))
        cells.append(figure("losses32", max(STEPS, TIMES * apart), apart))
    cells += ["-"] * (6 - len(cells))
    if "devices" in row:
        same = row["devices"] == row["ranks"] and "different" not in row["devices"] + row["gpus"]
        if not same:
            faults.append(f"digests: devices {row['devices']}, ranks {row['ranks']}, GPUs {row['gpus']}")
        cells.append("one" if same else "differ")
        figure("gpu_outputs64", CLOSE)
        cells.append(figure("gpu_grads64", CLOSE))
    cells += ["-"] * (8 - len(cells))
    return faults, cells


def compared(program, folder, name):
    """Rows of the table for one model, and its faults."""
    model = zoo.MODELS[name]
    done = subprocess.run([sys.executable, str(HERE / "make.py"), str(folder), name], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        rows = [[name, kind, "error"] + ["-"] * 8 for kind in model.kinds]
        return rows, [f"{name}: PyTorch cannot compute it: {said[-1]}"]
    values = torch.load(folder / "values.pt")
    rows, faults = [], []
    for kind in model.kinds:
        if kind in values["absent"]:
            rows.append([name, kind, values["absent"][kind]])
            print(f"{name:18} {kind:14} not written: {values['absent'][kind]}", flush=True)
            continue
        path = make.file_of(folder, kind, 64)
        stem = path.stem[: -len("_64")]
        done = subprocess.run([program, str(folder), stem, path.suffix[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        row = dict(line.split("\t", 1) for line in done.stdout.splitlines())
        if done.returncode:
            found, cells = [done.stderr.strip() or f"exit code {done.returncode}"], ["error"] + ["-"] * 8
        else:
            found, cells = faults_of(row, values)
            back = read_back(model, values, folder / f"{stem}_back.pt")
            if back == "differs":
                found.append("PyTorch computes something else with the file that Ramet saved")
            cells.append(back)
        rows.append([name, kind, *cells])
        faults += [f"{name}, {kind}: {f}" for f in found]
        print(f"{name:18} {kind:14} {'OK' if not found else found[0]}", flush=True)
    return rows, faults


def page(rows, old):
    """The page with these rows, and the old page's rows of other models."""
    import torchvision
    import transformers

    versions = f"PyTorch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}, transformers {transformers.__version__}"
    table, absent = [], []
    for name in zoo.MODELS:
        mine = [row for row in rows if row[0] == name]
        for row in mine:
            cells = row if len(row) > 3 else row[:2] + ["not written"] + ["-"] * 8
            table.append("| " + " | ".join(cells) + " |")
        absent += [f"- {row[0]}, {row[1]}: {row[2]}" for row in mine if len(row) == 3]
        if not mine:
            table += [line for line in old if line.startswith(f"| {name} |")]
            absent += [line for line in old if line.startswith(f"- {name}, ")]
    missing = [name for name in zoo.MODELS if not any(line.startswith(f"| {name} |") for line in table)]
    text = (HERE / "page.md").read_text().replace("@VERSIONS@", versions).replace("@ROWS@", "\n".join(table))
    return text.replace("@ABSENT@", "\n".join(absent)).replace("@MISSING@", ", ".join(missing) or "none")


def main(program, work, to, *names):
    unknown = [n for n in names if n not in zoo.MODELS]
    if unknown:
        sys.exit(f"no such model: {unknown[0]} (there are {', '.join(zoo.MODELS)})")
    torch.set_num_threads(1)
    rows, faults, to = [], [], pathlib.Path(to)
    for name in names or zoo.MODELS:
        pathlib.Path(work).mkdir(parents=True, exist_ok=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="model_", dir=work))
        try:
            r, f = compared(program, folder, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        rows += r
        faults += f
        to.write_text(page(rows, to.read_text().splitlines() if to.exists() else []))
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(f"FAILED: {len(faults)} faults")
    print(f"OK: {sum(len(r) > 3 for r in rows)} files of {len(names or zoo.MODELS)} models, no difference")


if __name__ == "__main__":
    main(*sys.argv[1:])
