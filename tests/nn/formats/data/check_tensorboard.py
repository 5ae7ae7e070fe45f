"""check_tensorboard.py FOLDER: TensorBoard reads what the test has written there. Exit code 77: no tensorboard here."""

import math
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as e:
    print(e)
    sys.exit(77)

events = EventAccumulator(sys.argv[1], size_guidance={"histograms": 0, "images": 0, "scalars": 0})
events.Reload()
tags = events.Tags()
assert tags["scalars"] == ["loss"] and tags["graph"], tags
assert sorted(tags["histograms"]) == ["none", "w"] and tags["images"] == ["picture"], tags
first, second = events.Scalars("loss")
assert (first.step, first.value, first.wall_time) == (7, 0.25, 1234.5) and math.isinf(second.value)
h = events.Histograms("w")[0].histogram_value
assert (h.min, h.num, sum(h.bucket), len(h.bucket)) == (-1, 5, 5, len(h.bucket_limit)), h
picture = events.Images("picture")[0]
assert (picture.width, picture.height, picture.encoded_image_string[1:4]) == (4, 2, b"PNG")
assert {n.name for n in events.Graph().node} >= {"fc/weight", "fc/bias"}
try:
    import io

    from PIL import Image

    pixels = Image.open(io.BytesIO(picture.encoded_image_string)).convert("RGB")
    assert [pixels.getpixel(p) for p in ((0, 0), (3, 1), (1, 1))] == [(0, 128, 0), (255, 0, 0), (0, 0, 0)]
except ImportError:
    pass
