#!/usr/bin/env python3
"""Makes a Debian package of a tree that make_tree.py has made (./tools/package calls this).

usage: make_deb.py TREE OUT.deb [dpkg-deb's options]

TREE is what is to lie in /usr. What the package depends on comes from the tree: its components, and the libraries that libramet.so
asks for. Needs dpkg-deb.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NAME = "libramet-dev"
# Names that find_package(Ramet) uses: packages by component, and by library of the .so.
NEEDS = {"ramet": "zlib1g-dev", "processes": "libgloo-dev", "formats": "libzip-dev", "see": "libcairo2-dev libdw-dev"}
LIBRARIES = {
    "libz.so.1": "zlib1g",
    "libgloo.so.0": "libgloo0",
    "libzip.so.4": "libzip4",
    "libcairo.so.2": "libcairo2",
    "libdw.so.1": "libdw1",
    "libelf.so.1": "libelf1",
    "libstdc++.so.6": "libstdc++6",
    "libgcc_s.so.1": "libgcc-s1",
}
# Libraries that need no package: the C library's own (the version is read below), and the CUDA runtime: its toolkit is no package
# of Debian's.
OTHERS = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux.*|libcudart)\.so(\..*)?")
CONTROL = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: {depends}
Recommends: g++, cmake | pkg-config
Section: libdevel
Priority: optional
Description: small deep-learning runtime in C++: library, headers, examples
 Tensors, automatic differentiation, modules and optimizers with the names of
 LibTorch's C++ front end, for programs that train small models themselves.
 .
 In this package: {components}.
"""


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def depends(tree):
    components = sorted(p.stem.split("-", 1)[1] for p in tree.glob("lib/cmake/Ramet/Ramet-*.cmake"))
    needs = {package for c in components for package in NEEDS.get(c, "").split()}
    shared = next(tree.glob("lib/libramet.so.*.*.*"), None)
    if shared:
        for library in re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", shared)):
            if library in LIBRARIES:
                needs.add(LIBRARIES[library])
            elif not OTHERS.fullmatch(library):
                raise SystemExit("[make_deb] %s: got %s among the libraries that it needs, expected one of %s" % (shared, library, ", ".join(LIBRARIES)))
        needs.add("libc6 (>= %s)" % max(re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", shared)), key=lambda v: [int(n) for n in v.split(".")]))
    return sorted(needs), components + (["shared library"] if shared else [])


def main(arguments):
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    tree, out = pathlib.Path(arguments[0]), pathlib.Path(arguments[1])
    config = (tree / "lib/cmake/Ramet/RametConfigVersion.cmake").read_text()
    needs, components = depends(tree)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "package")
        shutil.copytree(tree, root / "usr", symlinks=True)
        (root / "usr/share/ramet/manifest").unlink()  # dpkg knows
        (root / "usr/share/doc/ramet").rename(root / "usr/share/doc" / NAME)
        documents = root / "usr/share/doc" / NAME
        (documents / "copyright").write_text(
            "Ramet is under the Apache License 2.0: LICENSE here, or /usr/share/common-licenses/Apache-2.0.\n"
            "Compiled in, each under the licence in the file of its name: %s.\n"
            % ", ".join(sorted(p.suffix[1:] for p in documents.glob("LICENSE.*")))
        )
        files = sorted(p for p in (root / "usr").rglob("*") if p.is_file() or p.is_symlink())
        # The archive is the same for the same files.
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
        for path in [*root.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or (".so." in path.name and path.suffix != ".py") else 0o644)
        control = root / "DEBIAN"
        control.mkdir(mode=0o755)
        (control / "control").write_text(CONTROL.format(
            name=NAME, version=re.search(r'PACKAGE_VERSION "([^"]+)"', config).group(1) + "-1",
            architecture=run("dpkg", "--print-architecture").strip(), maintainer="Ramet <ramet@localhost>",
            kilobytes=sum(p.lstat().st_size for p in files) // 1024 + 1, depends=", ".join(needs), components=", ".join(components),
        ))  # fmt: skip
        (control / "md5sums").write_text("".join(
            "%s  %s\n" % (hashlib.md5(p.read_bytes()).hexdigest(), p.relative_to(root)) for p in files if not p.is_symlink()
        ))  # fmt: skip
        if any(".so." in p.name for p in files):
            (control / "triggers").write_text("activate-noawait ldconfig\n")
        subprocess.run(
            ["dpkg-deb", *arguments[2:], "--root-owner-group", "--build", str(root), str(out)],
            check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, SOURCE_DATE_EPOCH=epoch),
        )  # fmt: skip
    print(", ".join(needs))


if __name__ == "__main__":
    main(sys.argv[1:])
