"""Makes a source archive of a clone (./tools/package calls this): what git tracks, and the compatibility headers that names.py makes.

usage: make_source.py CLONE OUT.tar.gz FOLDER

FOLDER is the folder in the archive. SOURCE_DATE_EPOCH is the time of its files. The same files give the same bytes.
"""

import gzip
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

INCLUDE = "tools/compat/include"


def tracked(clone):
    """{path in the archive: file}"""
    listed = subprocess.run(["git", "-C", str(clone), "ls-files", "-z"], check=True, stdout=subprocess.PIPE).stdout
    return {path: clone / path for path in os.fsdecode(listed).split("\0") if path and os.path.lexists(clone / path)}


def made(clone, folder):
    """The same of what names.py makes, below a folder."""
    for kind in ("--lists", "--forwarding"):
        subprocess.run([sys.executable, str(clone / "tools/compat/names.py"), kind, str(folder)], check=True)
    return {"%s/%s" % (INCLUDE, path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def write(out, folder, files, time):
    with open(out, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as zipped, tarfile.open(None, "w", zipped, format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(files):
            entry = tar.gettarinfo(str(files[path]), "%s/%s" % (folder, path))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = time
            entry.mode = 0o755 if entry.mode & 0o100 or entry.issym() else 0o644
            if entry.isreg():
                with open(files[path], "rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)


def main(arguments):
    if len(arguments) != 3:
        raise SystemExit(__doc__)
    clone = pathlib.Path(arguments[0])
    with tempfile.TemporaryDirectory() as folder:
        files = {**tracked(clone), **made(clone, pathlib.Path(folder))}
        write(arguments[1], arguments[2], files, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    print(len(files))


if __name__ == "__main__":
    main(sys.argv[1:])
