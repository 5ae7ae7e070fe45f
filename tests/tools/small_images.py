"""Writes a data set of small images, so that a process is not busy with reading them: a bright block at a place of the class, on
noise. usage: small_images.py FOLDER [TRAINING_IMAGES]"""

import os
import random
import struct
import sys

folder = sys.argv[1]
os.makedirs(folder)
random.seed(1)
for part, count in (("train", int(sys.argv[2]) if len(sys.argv) > 2 else 300), ("t10k", 60)):
    labels = [i % 5 for i in range(count)]
    pixels = bytearray()
    for label in labels:
        for y in range(12):
            for x in range(12):
                bright = x // 4 == label % 3 and y // 4 == label // 3
                pixels.append(random.randrange(128) + 120 * bright)
    with open("%s/%s-images-idx3-ubyte" % (folder, part), "wb") as f:
        f.write(struct.pack(">IIII", 0x803, count, 12, 12) + pixels)
    with open("%s/%s-labels-idx1-ubyte" % (folder, part), "wb") as f:
        f.write(struct.pack(">II", 0x801, count) + bytes(labels))
