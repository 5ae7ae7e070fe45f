#!/usr/bin/env python3
"""Makes an installed tree of what Bazel or CMake has built (./tools/install, ./tools/package and `cmake --install` call this).

usage: make_tree.py --prefix DIR [--shared] [--built DIR] COMPONENT.json...
       make_tree.py --prefix DIR --uninstall

COMPONENT.json is what //tools/sdk:<component> or tools/cmake/targets.py writes, `ramet` first; the paths in it lie below --built
(default: the working folder). "files" names those that do not lie where Bazel puts them.
An earlier installation below the prefix is replaced: share/ramet/manifest lists the files that are Ramet's.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import archive  # noqa: E402
import headers  # noqa: E402
from components import FILES, FINDS, LICENCES  # noqa: E402

MANIFEST = "share/ramet/manifest"
EXAMPLES = "share/ramet/examples/"
TORCH = "share/ramet/libtorch/"  # laid out as LibTorch's own folder
MOST_THREAD_LOCAL = 512  # bytes: what a library that is loaded late can count on


class Tree:
    """A folder that files are put into, and which files these are."""

    def __init__(self, folder):
        self.folder = folder
        self.files = []

    def path(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.files.append(name)
        return path

    def write(self, name, text):
        self.path(name).write_text(text)

    def link(self, name, target):
        self.path(name).symlink_to(target)


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("FAILED: %s\n%s" % (" ".join(str(c) for c in command[:3]), done.stdout + done.stderr))
    return done.stdout


def filled(template, **words):
    text = (HERE / "templates" / template).read_text()
    return re.sub(r"@([A-Z0-9_]+)@", lambda m: str(words[m.group(1)]), text)


def version():
    text = (ROOT / "runtime/base/version.h").read_text()
    return [re.search(r"#define RAMET_VERSION_%s (\d+)" % part, text).group(1) for part in ("MAJOR", "MINOR", "PATCH")]


def compiler():
    return os.environ.get("CXX", "g++")


def add_headers(tree, components, words):
    """The headers of all components and the compatibility headers; sets the symbol that they and the library share."""
    texts, lower = {}, set()
    for component in components:
        found = headers.public(ROOT, component["headers"], lower)
        lower.update(found)
        texts.update({headers.installed_name(h): headers.rewritten(ROOT, (ROOT / h).read_text()) for h in found})
        if component["name"] == "ramet":
            number = words["VERSION"].replace(".", "_")
            words["SYMBOL"] = "ramet_headers_and_library_of_one_build__%s_%s" % (number, headers.digest(texts))
    texts.update(headers.compat(ROOT))
    lowest = headers.installed_name(headers.LOWEST)
    texts[lowest] = texts[lowest].replace("#pragma once\n", '#pragma once\n#include "ramet/installed.h"\n', 1)
    texts["ramet/installed.h"] = filled("installed.h", **words)
    for name, text in texts.items():
        tree.write("include/" + name, text)


def add_archives(tree, components, built, words):
    for component in components:
        files = component.get("files", {})
        objects = archive.joined({path: built / files.get(path, path) for path in component["archives"]})
        if component["name"] == "ramet":
            with tempfile.TemporaryDirectory() as folder:
                source, made = pathlib.Path(folder, "symbol.c"), pathlib.Path(folder, "symbol.o")
                source.write_text(filled("symbol.c", **words))
                run(compiler(), "-x", "c", "-c", "-fPIC", "-O2", source, "-o", made)
                objects.append(("runtime.symbol.o", made.read_bytes()))
        archive.write(tree.path("lib/" + library(component)), objects)


def library(component):
    return "libramet.a" if component["name"] == "ramet" else "libramet_%s.a" % component["name"]


def package(name):
    """pkg-config's."""
    return "ramet" if name == "ramet" else "ramet-" + name


def needs(component):
    """The components that one is linked with."""
    return component["needs"] or ["ramet"]


def emulated(component):
    """GPUs that are not there: their threads' memory is thread-local, more than a library that is loaded at run time may have."""
    return any("/emulated_gpu/" in path for path in component["archives"])


def shared_cudart():
    """The linker's words for the toolkit's CUDA runtime, which libramet.so finds where the toolkit is, else where the loader looks.

    Not the static one: all of its thread-local memory, 4 KiB on a page's border, would be initial-exec with Ramet's, which is more than
    the C library has for what is loaded at run time.
    """
    folder = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "lib64")
    return ["-L%s" % folder, "-lcudart", "-Wl,-rpath,%s" % folder]


def add_shared(tree, components, words):
    """libramet.so has all components: what they share among themselves is hidden, so they cannot be libraries apart."""
    components = [c for c in components if not emulated(c)]
    name = "libramet.so." + words["VERSION"]
    script = tree.folder / "map"
    script.write_text(filled("ramet.map", **words))
    libraries = [word for c in components for find in c["finds"] for word in FINDS[find][2].split()]
    if any("CUDAToolkit" in c["finds"] for c in components):
        libraries = [word for word in libraries if word != "-lcudart_static"] + shared_cudart()
    run(
        compiler(), "-shared", "-o", tree.path("lib/" + name), "-fuse-ld=lld", "-Wl,-soname,libramet.so." + words["SOVERSION"],
        "-Wl,--version-script=%s" % script, "-Wl,-z,nodelete", "-Wl,--no-gnu-unique", "-Wl,-Bsymbolic-functions",
        "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,--as-needed", "-Wl,-O2", "-Wl,--strip-all", "-Wl,--whole-archive",
        *[tree.folder / "lib" / library(c) for c in components], "-Wl,--no-whole-archive", *libraries, "-ldl", "-pthread",
    )  # fmt: skip
    script.unlink()
    bytes_of = re.search(r"^ +TLS +\S+ \S+ \S+ \S+ (\S+)", run("readelf", "-lW", tree.folder / "lib" / name), flags=re.M)
    if int(bytes_of.group(1), 16) > MOST_THREAD_LOCAL:
        raise SystemExit("[make_tree] libramet.so: got %s bytes of thread-local memory, expected at most %d, or it cannot be loaded late"
                         % (bytes_of.group(1), MOST_THREAD_LOCAL))  # fmt: skip
    tree.link("lib/libramet.so." + words["SOVERSION"], name)
    tree.link("lib/libramet.so", "libramet.so." + words["SOVERSION"])
    if any(c["name"] == "c" for c in components):
        # The file that a program in another language opens: the same library, so that a process never has two.
        tree.link("lib/libramet_c.so", "libramet.so." + words["SOVERSION"])
    # Where a system's gdb searches when it finds the library of /usr/lib, a Debian package's. Not next to the library: ldconfig
    # complains.
    tree.write("share/gdb/auto-load/usr/lib/%s-gdb.py" % name, (HERE / "templates/auto_load_gdb.py").read_text())


def add_cmake(tree, components, words):
    for component in components:
        name, whole, core = component["name"], component["whole"], component["name"] == "ramet"
        finds = [FINDS[f] for f in component["finds"]]
        links = [find[1] for find in finds if find[1]] + (["${CMAKE_DL_LIBS}"] if core else [])
        if not core:
            links[:0] = ["Ramet::" + need for need in needs(component)]
        archive_of = "${Ramet_PREFIX}/lib/" + library(component)
        # No program names what is inside, so an option makes the linker take all of it. The option comes before all libraries,
        # whatever the program names first.
        options = ["LINKER:--whole-archive,%s,--no-whole-archive" % archive_of] if whole else []
        so = "${Ramet_PREFIX}/lib/libramet.so."
        tree.write("lib/cmake/Ramet/Ramet-%s.cmake" % name, filled(
            "Ramet-component.cmake", NAME=name, FINDS="\n".join(
                ['include("${CMAKE_CURRENT_LIST_DIR}/Ramet-%s.cmake")' % need for need in component["needs"]] + [find[0] for find in finds if find[0]]
            ), LINKS=";".join(links), OPTIONS=";".join(options + ["LINKER:--exclude-libs," + library(component), "LINKER:--gc-sections"]),
            LIBRARY=library(component), KIND="INTERFACE" if whole else "STATIC",
            ARCHIVE="" if whole else 'IMPORTED_LINK_INTERFACE_LANGUAGES CXX\n      IMPORTED_LOCATION "%s"' % archive_of,
            SHARED_KIND="SHARED" if core else "INTERFACE",
            SHARED='IMPORTED_LOCATION "%s%s" IMPORTED_SONAME "libramet.so.%s"' % (so, words["VERSION"], words["SOVERSION"])
            if core else 'INTERFACE_LINK_LIBRARIES "%s"' % ";".join("Ramet::" + need for need in needs(component)), **words,
        ))  # fmt: skip
    for name in ("RametConfig.cmake", "RametConfigVersion.cmake"):
        tree.write("lib/cmake/Ramet/" + name, filled(name, **words))


def add_torch(tree, words):
    """find_package(Torch), for who names this folder."""
    macros = (ROOT / headers.COMPAT / "ramet/compat/macros.h").read_text()
    torch = re.search(r'#define TORCH_VERSION "([^"]+)"', macros).group(1)
    for name in ("TorchConfig.cmake", "TorchConfigVersion.cmake"):
        tree.write(TORCH + "share/cmake/Torch/" + name, filled(name, WHERE="<prefix>/" + TORCH[:-1], TORCH_VERSION=torch, **words))


def add_pkg_config(tree, components, words, shared):
    def add(name, about, requires, libs):
        tree.write("lib/pkgconfig/%s.pc" % name, "\n".join([
            "prefix=${pcfiledir}/../..", "", "Name: " + name, "Description: " + about, "Version: " + words["VERSION"],
            *(["Requires: " + requires] if requires else []), "Cflags: -I${prefix}/include", "Libs: " + libs, "",
        ]))  # fmt: skip

    for component in components:
        name, core = component["name"], component["name"] == "ramet"
        archive_of = "-l:" + library(component)
        libs = ["-L${prefix}/lib", "-Wl,--whole-archive %s -Wl,--no-whole-archive" % archive_of if component["whole"] else archive_of]
        libs += [FINDS[f][2] for f in component["finds"]] + (["-ldl"] if core else [])
        libs += ["-Wl,--exclude-libs," + library(component), "-Wl,--gc-sections"]
        add(package(name), "Ramet, a small deep-learning runtime" + ("" if core else ": " + name),
            "" if core else ", ".join("%s = %s" % (package(need), words["VERSION"]) for need in needs(component)), " ".join(libs))  # fmt: skip
    if shared:
        add("ramet-shared", "Ramet, a small deep-learning runtime, as a shared library", "",
            "-L${prefix}/lib -lramet -Wl,-rpath,${prefix}/lib")  # fmt: skip


def add_documents(tree, components):
    for component in components:
        for source, name in FILES.get(component["name"], ()):
            shutil.copyfile(ROOT / source, tree.path(name))
    folder = ROOT / "tools/examples"
    for source in sorted(p for pattern in ("*.cc", "c/*.c", "c/*.f90", "c/*.py") for p in folder.glob(pattern)):
        text = headers.rewritten(ROOT, source.read_text())
        if '#include "ramet/tools/' not in text:  # tools are not installed
            tree.write(EXAMPLES + str(source.relative_to(folder)), text)
    shutil.copyfile(HERE / "templates/examples.cmake", tree.path(EXAMPLES + "CMakeLists.txt"))
    shutil.copyfile(ROOT / "LICENSE", tree.path("share/doc/ramet/LICENSE"))
    there = {c["name"] for c in components}
    for name, package, component in LICENCES:
        text = pathlib.Path("/usr/share/doc", package, "copyright")
        if component in there and text.is_file():
            shutil.copyfile(text, tree.path("share/doc/ramet/LICENSE." + name))


def uninstall(prefix, but=()):
    """Removes what the manifest names, and the folders that are empty then."""
    manifest = prefix / MANIFEST
    if not manifest.is_file():
        return 0
    names = [n for n in manifest.read_text().splitlines() if n and not n.startswith("/") and ".." not in n.split("/")]
    removed = 0
    for name in names:
        if name not in but and os.path.lexists(prefix / name):
            (prefix / name).unlink()
            removed += 1
    folders = {p for name in names for p in pathlib.PurePath(name).parents} - {pathlib.PurePath(".")}
    for folder in sorted(folders, key=lambda p: -len(p.parts)):
        try:
            (prefix / folder).rmdir()
        except OSError:  # a file of another program is in it, or it is gone
            pass
    return removed


def words_of(components):
    """What templates name, but for the symbol of the headers, which add_headers() sets."""
    major, minor, patch = version()
    words = {
        "VERSION": ".".join((major, minor, patch)), "MAJOR": major, "MINOR": minor,
        "SOVERSION": major if major != "0" else major + "." + minor,
        "COMPONENTS": " ".join(c["name"] for c in components),
        "SHARED_COMPONENTS": " ".join(c["name"] for c in components if not emulated(c)),
        "CXX11_ABI": "1",
    }  # fmt: skip
    words["SONAME"] = "RAMET_" + words["SOVERSION"]
    return words


def install(prefix, components, built, shared):
    words = words_of(components)
    prefix.mkdir(parents=True, exist_ok=True)
    # Made in a temporary folder and moved in at the end: nothing is half installed.
    with tempfile.TemporaryDirectory(prefix=".ramet-", dir=prefix) as folder:
        tree = Tree(pathlib.Path(folder))
        add_headers(tree, components, words)
        add_archives(tree, components, built, words)
        if shared:
            add_shared(tree, components, words)
        add_cmake(tree, components, words)
        add_torch(tree, words)
        add_pkg_config(tree, components, words, shared)
        add_documents(tree, components)
        tree.write(MANIFEST, "\n".join(sorted(tree.files + [MANIFEST])) + "\n")
        uninstall(prefix, but=tree.files)
        for name in tree.files:
            (prefix / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(tree.folder / name, prefix / name)
    return len(tree.files)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--prefix", required=True, type=pathlib.Path)
    parser.add_argument("--built", default=pathlib.Path("."), type=pathlib.Path)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--uninstall", action="store_true")
    parser.add_argument("components", nargs="*", type=pathlib.Path)
    given = parser.parse_args()
    if given.uninstall:
        print(uninstall(given.prefix))
    else:
        print(install(given.prefix, [json.loads(c.read_text()) for c in given.components], given.built, given.shared))


if __name__ == "__main__":
    main()
