#!/usr/bin/env python3
"""Checks the shape of the tree: fails, with file and line, on

  - an include that points up the layers (tools > parallel > nn > autograd > kernels > runtime), or up the folders of a
    layer (ORDER), or, in a layer, one in quotes that is no file of this repository named from its root;
  - in a public header (every header of runtime, autograd, nn and parallel, ramet.h, and whatever these include): a
    header that is neither standard C++17 nor ours, a macro whose name does not start with RAMET_, a look at __cplusplus,
    no `#pragma once`;
  - in a LibTorch compatibility header (tools/compat/include), an include of anything but the standard library, ramet.h and other such
    headers (c10d headers: and process groups; torch/script.h: and TorchScript), or no `#pragma once` and no #error; and in a layer, an include of such a header;
  - in a kernel file (.cu, .cuh), what only one of its two compilers understands: <<<>>>, extern __shared__, inline
    assembly, __constant__ and __device__ variables, __activemask() (Note [The dialect of kernel files]);
  - text that follows the program's locale, in a layer, tools/see, tools/emulated_gpu or a compatibility header: a stream that
    runtime/base/classic.h has not made, a real number printed or read by the C library, a letter that it has sorted;
  - std::ranges in the core, which Emscripten's standard library does not have;
  - a pattern of .bazelrc for some files' options that matches no file;
  - a top-level folder that should not be there, or a root file that is missing;
  - a BUILD file in a layer besides its own (APART: what links what the core must not, and the interface for C), or a BUILD file other than the root's that shows a target to everybody;
  - a folder of tests of GPUs whose cases //tools/gpu:gpu_tests, the program for a machine with a real one, does not have;
  - a kernel file that asks for which GPU it is compiled, and that its BUILD file does not name in by_architecture;
  - a function of CUDA's runtime that the layers call and tests/runtime/cuda/driver_calls.cc does not count.

A header named *_internal.h is not public: only sources and other internal headers may include it. Nor are those of runtime/cuda, which bring CUDA's own names: a public header may not
include them. The layers know emulated GPUs only as headers with the names of the CUDA toolkit's; tests may name more of them.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ("runtime", "kernels", "autograd", "nn", "parallel")
PUBLIC = ("runtime", "autograd", "nn", "parallel")
CUDA = "runtime/cuda/"
EMULATED = "tools/emulated_gpu/"
COMPAT = "tools/compat/include/"
# What LibTorch's torch/torch.h brings of C++20's and the system's headers.
OF_LIBTORCH = {"ranges", "span", "sys/time.h", "unistd.h"}
# What a compatibility header includes to stop a compiler there.
NO_FILE = "a_real_LibTorch_and_the_compatibility_headers_in_one_unit"
# Sub-folders of a folder, lower ones first; those in one string are of one height. No file includes one of a higher folder.
ORDER = {
    "nn": ("serialize", "module", "functional layers", "data optim utils"),
    "parallel": ("move", "nodes", "replicas", "apply"),
    "parallel/distributed": ("meet", "wire", "group", "model", "stages", "ddp", "shard", "checkpoint"),
}
# The same of headers alone: functions of one library call each other, whatever their folders.
ORDER_OF_HEADERS = {
    "runtime": ("base", "memory", "tensor devices", "observe", "capture"),
    "kernels": ("simd", "copy", "gpu", "pointwise random rows optim linalg", "index matrix reduce", "image"),
    "autograd": ("forms", "graph", "ops"),
    "autograd/ops": ("index layers loss make matrix pointwise random reduce shape", "front"),
    "nn/layers": ("basic image loss norm", "sequence"),
    "nn/formats": ("zip numpy onnx tensorboard", "pytorch"),
    EMULATED[:-1]: ("executor", "checker", "runtime", "blas nccl", "include"),
}
MOST_FILES = 60  # in a folder, those of its sub-folders left out
# Libraries of their own inside a layer's folder, with those of them that each may include; nothing else in the layers includes
# them.
APART = {
    "autograd/schema": (),
    "nn/c": (),
    "nn/c_script": ("nn/c", "nn/script"),
    "nn/formats": (),
    "nn/script": ("autograd/schema", "nn/formats"),
    "parallel/distributed": (),
    "parallel/c": ("nn/c", "parallel/distributed"),
}
# Headers for programs that have another library, which they include.
OPTIONAL = {"nn/formats/eigen.h": ("Eigen/Core",)}
FOLDERS = LAYERS + ("tests", "tools")
ROOT_FILES = """WORKSPACE BUILD ramet.h README.md DESIGN.md CONTRIBUTING.md LICENSE .clang-format .clang-tidy .ci/run""".split()
# Left there by builds and runs, and never in the repository.
IGNORED = ("runs",)
SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)")
DIALECT = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"<<<", "a kernel is started by launch()"),
        (r"\bextern\s+__shared__", "dynamic shared memory is dynamic_shared<T>()"),
        (r"\basm\b", "inline assembly belongs in runtime/cuda/ptx.h and ptx_hopper.h"),
        (r"\b__constant__\b", "all emulated devices would share it: pass a struct by value"),
        (r"^\s*(?:static\s+)?__device__\s+[^()]*[;=]", "all emulated devices would share this variable"),
        (r"\b__activemask\b", "name the lanes by a mask"),
    )
)
# What the core is written without.
CORE = ((re.compile(r"std::ranges"), "Emscripten's library does not have std::ranges: take the algorithm with begin() and end()"), )
# What of it is found in a text without comments: runtime/base/classic.h says what to write instead.
LOCALE = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"std::[io]?(?:string|f)stream(?: \w+[;({]|\()", "a stream in the program's locale: classic<Stream>(), runtime/base/classic.h"),
        (r"printf\([^;]*?%[-+ #0-9.*]*[aefgAEFG][^;]*;", "a real number in the program's locale: formatted(), runtime/base/classic.h"),
        (r"scanf\([^;]*?%[*0-9]*l?[aefgAEFG][^;]*;", "a real number in the program's locale: read_double(), runtime/base/classic.h"),
        (r"\b(?:strto[df]|sto[df]|atof)\(", "a real number in the program's locale: read_double(), runtime/base/classic.h"),
        (r"\bstd::(?:to(?:lower|upper)|is(?:al(?:pha|num)|lower|upper|space|punct))\(", "letters of the program's locale: lower(), runtime/base/classic.h"),
        (r"\bstd::regex\(", "a regular expression in the program's locale: imbue() it before assign()"),
    )
)
CLASSIC = ("runtime/base/classic.h", "runtime/base/classic.cc")

STANDARD = set(
    """algorithm any array atomic bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale
    cmath complex condition_variable csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar
    cwctype deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios
    iosfwd iostream istream iterator limits list locale map memory memory_resource mutex new numeric optional ostream
    queue random ratio regex scoped_allocator set shared_mutex sstream stack stdexcept streambuf string string_view
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
    stddef.h stdint.h""".split()
)


@functools.lru_cache(None)
def made_headers():
    """Headers below COMPAT that tools/compat/names.py makes, and that a clone may be without."""
    command = [sys.executable, str(ROOT / "tools/compat/names.py"), "--paths"]
    return frozenset(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split())


def in_compat(name):
    return (ROOT / COMPAT / name).is_file() or name in made_headers()


def rank(path):
    """Position of a file's folder among the layers; files of the root, tests and tools are above all."""
    folder = path.split("/")[0]
    return LAYERS.index(folder) if folder in LAYERS else len(LAYERS)


def sources():
    for folder in FOLDERS:
        for directory, folders, files in os.walk(ROOT / folder):
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            for name in sorted(files):
                if name.endswith(SUFFIXES):
                    yield str((pathlib.Path(directory) / name).relative_to(ROOT))
    if (ROOT / "ramet.h").exists():
        yield "ramet.h"


def includes(path):
    """(line number, our file or None, system header or None) of each include."""
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def apart(path):
    """The library of its own that a file belongs to, or None."""
    return next((a for a in APART if path.startswith((a + "/", "tests/" + a + "/"))), None)


def check_includes(path):
    # A test sits in its layer's folder of tests/ and sees what that layer sees.
    level = rank(path[len("tests/"):]) if path.startswith("tests/") else rank(path)
    for number, ours, system in includes(path):
        if path.startswith(LAYERS + ("ramet.h",)) and (ours or system) and in_compat(ours or system):
            yield "%s:%d: includes <%s>, a LibTorch compatibility header" % (path, number, ours or system)
        if ours is None:
            continue
        if not (ROOT / ours).is_file():
            if path.startswith(LAYERS):
                yield "%s:%d: \"%s\" is no file of this repository (others go in <>)" % (path, number, ours)
        elif (apart(ours) and path.startswith(LAYERS + ("ramet.h",)) and apart(path) != apart(ours)
              and apart(ours) not in APART.get(apart(path), ())):
            yield "%s:%d: includes \"%s\", a library apart, which only programs that ask for it link" % (path, number, ours)
        elif rank(ours) > level and not (path.startswith("tests/") and ours.startswith(("tests/", EMULATED))):
            yield "%s:%d: includes \"%s\" of a higher layer" % (path, number, ours)


def height(path):
    """A file's (folder with an order, height of its sub-folder in that order), or None."""
    parent, last = os.path.split(os.path.dirname(path))
    order = ORDER.get(parent) or (ORDER_OF_HEADERS.get(parent, ()) if path.endswith(".h") else ())
    return next(((parent, h) for h, names in enumerate(order) if last in names.split()), None)


def check_order(path):
    own = height(path)
    for number, ours, _ in includes(path) if own else ():
        other = ours and height(ours)
        if other and other[0] == own[0] and other[1] > own[1]:
            yield "%s:%d: includes \"%s\" of a higher folder" % (path, number, ours)


def check_sub_folders():
    for folder, order in (ORDER | ORDER_OF_HEADERS).items():
        there = sorted(p.name for p in (ROOT / folder).iterdir() if p.is_dir() and p.name[0] not in "._" and not (p / "BUILD").exists())
        named = sorted(" ".join(order).split())
        if there != named:
            yield "%s/: its folders are %s, tools/check_layers.py has %s" % (folder, " ".join(there), " ".join(named))
    for folder in FOLDERS:
        for directory, _, files in os.walk(ROOT / folder):
            folder = os.path.relpath(directory, ROOT) + "/"
            below = folder[len(COMPAT):] if folder.startswith(COMPAT) else None
            count = sum(not name.endswith(".pyc") and (below is None or below + name not in made_headers()) for name in files)
            if count > MOST_FILES:
                yield "%s: %d files, at most %d in a folder" % (folder, count, MOST_FILES)


def check_lines(path, refused):
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        code = line.split("//")[0]
        for pattern, text in refused:
            if pattern.search(code):
                yield "%s:%d: %s" % (path, number, text)


def check_locale(path):
    text = re.sub(r"//[^\n]*", "", (ROOT / path).read_text())
    for pattern, said in LOCALE:
        for match in pattern.finditer(text):
            yield "%s:%d: %s" % (path, text.count("\n", 0, match.start()) + 1, said)


def is_internal(header):
    return header.endswith("_internal.h")


def public_headers(files):
    """The public headers, and the other headers of ours that they pull in."""
    todo = [f for f in files if f.endswith(".h") and not is_internal(f)]
    todo = [f for f in todo if f.split("/")[0] in PUBLIC or f == "ramet.h"]
    todo = [f for f in todo if not f.startswith(CUDA)]
    seen = set(todo)
    while todo:
        for _, ours, _ in includes(todo.pop()):
            if ours and ours not in seen and (ROOT / ours).is_file():
                seen.add(ours)
                if not ours.startswith(CUDA):
                    todo.append(ours)
    return sorted(seen)


def check_public(path):
    text = (ROOT / path).read_text()
    if "#pragma once" not in text and path.endswith(".h"):  # a list (.inc) is included again and again
        yield "%s:1: no #pragma once" % path
    if is_internal(path):
        yield "%s:1: an internal header, but a public one includes it" % path
    if path.startswith(CUDA):
        yield "%s:1: a header of CUDA's names, but a public one includes it" % path
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = DEFINE.match(line)
        if match and not match.group(1).startswith("RAMET_"):
            yield "%s:%d: macro %s in a public header does not start with RAMET_" % (path, number, match.group(1))
        if re.match(r"^\s*#\s*(if|elif)\b.*__cplusplus", line):
            yield "%s:%d: a public header reads __cplusplus: one library serves C++17, 20 and 23" % (path, number)
    for number, _, system in includes(path):
        if system and system not in STANDARD and system not in OPTIONAL.get(path, ()):
            yield "%s:%d: <%s> in a public header is not a C++17 standard header" % (path, number, system)


def check_compat(path):
    text = (ROOT / path).read_text()
    if "#pragma once" not in text and "#error" not in text:
        yield "%s:1: no #pragma once" % path
    for number, ours, system in includes(path):
        if in_compat(ours or system) or ours == "ramet.h":
            continue
        # What programs without processes, or without TorchScript, do not include.
        if ours and apart(ours) and ("/compat/c10d" in path or path.endswith("torch/script.h")):
            continue
        if ours or system not in STANDARD | OF_LIBTORCH | {NO_FILE}:
            yield "%s:%d: <%s> in a compatibility header is neither the standard library's nor ours" % (path, number, ours or system)


def check_options(files):
    # Bazel writes such files (ramet_tests; joined_library, next to each folder of sources).
    joined = {"/bin/%s/joined_by_6_1.cc" % f.rpartition("/")[0] for f in files if f.endswith(".cc")}
    files = files + ["tests/nn/program_1.cc"] + sorted(joined)
    for number, line in enumerate((ROOT / ".bazelrc").read_text().splitlines(), 1):
        for patterns in re.findall(r"--per_file_copt=([^@\s]+)@", line):
            for pattern in patterns.split(","):
                pattern = pattern.lstrip("-")
                if not pattern.startswith("^external/") and not any(re.search(pattern, f) for f in files):
                    yield ".bazelrc:%d: %s matches no file" % (number, pattern)


def check_folders():
    for entry in sorted(os.scandir(ROOT), key=lambda e: e.name):
        name = entry.name
        if not entry.is_dir(follow_symlinks=False) or name.startswith(".") or name in IGNORED:
            continue
        if name not in FOLDERS:
            yield "%s/: top-level folders are exactly %s" % (name, " ".join(FOLDERS))
    for name in FOLDERS:
        if not (ROOT / name).is_dir():
            yield "%s/: missing" % name


def check_builds():
    for name in ROOT_FILES:
        if not (ROOT / name).is_file():
            yield "%s: missing" % name
    for layer in LAYERS:
        builds = sorted(str(p.relative_to(ROOT)) for p in (ROOT / layer).rglob("BUILD*"))
        wanted = [layer + "/BUILD"] + [a + "/BUILD" for a in APART if a.startswith(layer + "/")]
        if layer == "runtime":  # a package of its own, so that the plain library carries nothing of CUDA
            wanted += [CUDA + "BUILD"]
        if builds != sorted(wanted):
            yield "%s/: one BUILD file a folder, got: %s" % (layer, " ".join(builds))
    # tools/bazel stands in for repositories that Bazel would download.
    for path in sorted(p for name in FOLDERS for p in (ROOT / name).rglob("BUILD")):
        name = str(path.relative_to(ROOT))
        if not name.startswith("tools/bazel/") and "visibility:public" in path.read_text():
            yield "%s: only the root's //:ramet is for everybody" % name


def check_gpu_tests():
    program = (ROOT / "tools/gpu/BUILD").read_text()
    for path in sorted((ROOT / "tests").rglob("BUILD")):
        package = str(path.parent.relative_to(ROOT))
        text = path.read_text()
        if not re.search(r'^[^#]*"cuda"', text, re.MULTILINE) or '"emulated_only"' in text:
            continue
        if "gpu_cases" not in text:
            yield "%s/BUILD: tests with the tag \"cuda\", and no gpu_cases for a machine with a real GPU" % package
        elif '"//%s:gpu_cases"' % package not in program:
            yield "tools/gpu/BUILD: gpu_tests is without //%s:gpu_cases" % package


# What only asks the calling thread, or is the launch itself.
NOT_COUNTED = {"cudaGetDevice", "cudaGetErrorName", "cudaGetErrorString", "cudaGetLastError", "cudaGraphLaunch", "cudaLaunchKernel",
               "cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion"}  # the last two: once in a process, of real cards


def check_driver_calls():
    counted = (ROOT / "tests/runtime/cuda/driver_calls.cc").read_text()
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.[ch]*")):
            name = str(path.relative_to(ROOT))
            if path.suffix not in (".cc", ".cu", ".h"):
                continue
            for call in sorted(set(re.findall(r"\bcuda[A-Z]\w+(?=\()", path.read_text())) - NOT_COUNTED):
                if not re.search(r"\b(__wrap_)?%s\b" % call, counted):
                    yield "%s: %s is not counted by tests/runtime/cuda/driver_calls.cc" % (name, call)


def check_precompiled(files):
    """Files that .bazelrc gives a precompiled autograd/tensor.h include it before their first line of code: it hides nothing."""
    from check_headers import closure

    header, rule = "autograd/tensor.h", "tools/bazel/tensor_headers.h"
    lines = [line for line in (ROOT / ".bazelrc").read_text().splitlines() if rule in line]
    patterns = lines[0].split("--per_file_copt=")[1].split("@")[0].split(",") if lines else []
    taken = [re.compile(p) for p in patterns if not p.startswith("-")]
    left_out = [re.compile(p[1:]) for p in patterns if p.startswith("-")]
    for path in files:
        if any(p.search(path) for p in taken) and not any(p.search(path) for p in left_out) and header not in closure(path):
            yield "%s: begins with %s in .bazelrc, and does not include %s before its first line of code" % (path, rule, header)


def asks_for_architecture(path, seen):
    """Whether a file, or one that it includes, asks for which GPU it is compiled."""
    if path in seen:
        return False
    seen.add(path)
    if path.startswith(("runtime/cuda/", "kernels/")) or path.endswith(".cu"):
        if "__CUDA_ARCH" in (ROOT / path).read_text():
            return True
    return any(asks_for_architecture(ours, seen) for _, ours, _ in includes(path) if ours and (ROOT / ours).is_file())


def check_by_architecture(files):
    """Of other kernel files ./tools/test --all makes no PTX (tools/cuda/library.bzl)."""
    for path in files:
        if path.endswith(".cu") and asks_for_architecture(path, set()):
            build = next(p / "BUILD" for p in (ROOT / path).parents if (p / "BUILD").exists())
            name = os.path.relpath(ROOT / path, build.parent)
            if not re.search(r'by_architecture = \[[^]]*"%s"' % re.escape(name), build.read_text()):
                yield "%s: asks for which GPU it is compiled; by_architecture in %s is without it" % (path, build.relative_to(ROOT))


def main():
    files = list(sources())
    problems = list(check_options(files)) + list(check_folders()) + list(check_sub_folders()) + list(check_builds()) + list(check_gpu_tests()) + list(check_driver_calls()) + list(check_precompiled(files)) + list(check_by_architecture(files))
    for path in files:
        problems += check_includes(path)
        problems += check_order(path)
        if path.endswith((".cu", ".cuh")):
            problems += check_lines(path, DIALECT)
        if path.startswith(LAYERS + ("tools/see/", EMULATED, COMPAT)) and not path.endswith(".cu") and path not in CLASSIC:
            problems += check_locale(path)
        if path.startswith(LAYERS) and not path.startswith((CUDA, "parallel/distributed/")):
            problems += check_lines(path, CORE)
        if path.startswith(COMPAT):
            problems += check_compat(path)
    headers = public_headers(files)
    for path in headers:
        problems += check_public(path)
    for problem in problems:
        print(problem)
    print("layers: %d files, %d public headers, %d problems" % (len(files), len(headers), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
