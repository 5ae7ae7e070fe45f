"""Archives of objects (ar's format): many as one.

ar itself can add an archive to another (`addlib`). But then members of one name cannot be told apart, in a debugger or when the
archive is extracted. There are many: every kernel comes three times. So each member is named after the library that it comes
from.
"""

import os
import re
import subprocess

MAGIC = b"!<arch>\n"


def members(path):
    """(name, bytes) of each object of an archive."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise ValueError("%s is no archive" % path)
    at = len(MAGIC)
    long_names = b""
    while at < len(data):
        name, size = data[at:at + 16].decode().rstrip(), int(data[at + 48:at + 58])
        body = data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/"):
            if name.startswith("/"):
                start = int(name[1:])
                name = long_names[start:long_names.index(b"/\n", start)].decode()
            yield name.rstrip("/"), body


def write(path, objects):
    """An archive of [(name, bytes)], with an index of its symbols: the same bytes for the same objects."""
    names, long_names = {}, b""
    for name, _ in objects:
        names[name] = "/%d" % len(long_names) if len(name) > 15 else name + "/"
        if len(name) > 15:
            long_names += name.encode() + b"/\n"
    with open(path, "wb") as out:

        def add(name, body, mode):
            out.write(("%-16s%-12s%-6s%-6s%-8s%-10d`\n" % (name, *mode, len(body))).encode() + body + b"\n" * (len(body) % 2))

        out.write(MAGIC)
        if long_names:
            add("//", long_names, ("", "", "", ""))
        for name, body in objects:
            add(names[name], body, ("0", "0", "0", "100644"))
    subprocess.run([os.environ.get("AR", "ar"), "sD", str(path)], check=True)


def joined(archives):
    """[(name, bytes)] of archives given as {where it was built: path}: nn/libnn.a's adam.pic.o is nn.nn.adam.o."""
    objects, seen = [], {}
    for built, path in sorted(archives.items()):
        folder, library = os.path.split(built)
        library = library[len("lib"):].split(".")[0]
        prefix = folder.replace("/", ".") + "." + ("" if folder.endswith(library) else library + ".")
        for name, body in members(path):
            name = prefix + re.sub(r"\.(pic|cc|cu|s)\.o$", ".o", name)  # Bazel's, CMake's
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:  # one stem in two folders
                name = "%s_%d.o" % (name[:-len(".o")], seen[name])
            objects.append((name, body))
    return objects
