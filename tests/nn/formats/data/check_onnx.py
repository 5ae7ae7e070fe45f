"""check_onnx.py FOLDER: each NAME.onnx there is valid and computes what NAME.safetensors says. Exit code 77: no onnx, onnxruntime here."""

import json
import pathlib
import struct
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as e:
    print(e)
    sys.exit(77)


def load(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    types = {"BOOL": np.bool_, "F32": np.float32, "F64": np.float64, "I64": np.int64}
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + begin:8 + n + end], types[t["dtype"]]).reshape(t["shape"])
    return out


def main():
    count = worst = 0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)], path
        tensors = load(path.with_suffix(".safetensors"))
        session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        given = {i.name: tensors["in_%d" % k] for k, i in enumerate(session.get_inputs())}
        got = session.run(None, given)
        for k, g in enumerate(got):
            wanted = tensors["out_%d" % k]
            assert g.dtype == wanted.dtype and g.shape == wanted.shape, (path.name, k, g.dtype, g.shape, wanted.shape)
            error = np.max(np.abs(g.astype(np.float64) - wanted) / (1 + np.abs(wanted)), initial=0)
            worst = max(worst, error)
            assert error < 2e-5, "%s: output %d is %g off" % (path.name, k, error)
        # Another batch, where one may be: the same rows twice (a mean stays the same).
        free = [i for i in session.get_inputs() if "batch" in i.shape]
        if free:
            twice = {i.name: np.concatenate([given[i.name]] * 2, i.shape.index("batch")) for i in session.get_inputs()}
            for k, (g, o) in enumerate(zip(session.run(None, twice), session.get_outputs())):
                wanted = tensors["out_%d" % k]
                if "batch" in o.shape:
                    wanted = np.concatenate([wanted] * 2, o.shape.index("batch"))
                assert g.shape == wanted.shape and np.allclose(g, wanted, 1e-4, 1e-5), "%s: twice the batch" % path.name
        count += 1
    print("%d models, largest error %.2g (onnx %s, onnxruntime %s)" % (count, worst, onnx.__version__, ort.__version__))
    assert count > 0


main()
