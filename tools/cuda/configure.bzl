"""@local_cuda: the machine's CUDA toolkit, where there is one, and what its processor does for emulated GPUs."""

_TOOLKIT = """
package(default_visibility = ["//visibility:public"])

exports_files(["nvcc.sh"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

cc_library(
    name = "cudart",
    # Static: a program then needs the driver and nothing else of CUDA.
    linkopts = ["-L{path}/lib64", "-lcudart_static", "-lrt", "-ldl", "-lpthread"],
    deps = [":headers"],
)
"""

_DEFS = """HAVE_CUDA = %s
SMALL_CODE = %s
QUICK = %s
HOST_FMA = %s
"""

_NO_TOOLKIT = """
package(default_visibility = ["//visibility:public"])

exports_files(["nvcc.sh"])

[cc_library(
    name = name,
    target_compatible_with = ["@ramet//tools/cuda:nowhere"],
) for name in ["headers", "cudart"]]
"""

def _fused(ctx):
    """The options with which fma() is an instruction: without, it is a call, and kernels of products take twice as long.

    The result has the same bits. Objects for emulated GPUs are for the machine that compiles them.
    """
    cpuinfo = ctx.path("/proc/cpuinfo")
    flags = ctx.read(cpuinfo).partition("\nflags")[2].partition("\n")[0] if cpuinfo.exists else ""
    return ["-mfma"] if "fma" in flags.split(" ") else []

def _impl(ctx):
    path = ctx.os.environ.get("CUDA_PATH", "") or "/usr/local/cuda"
    nvcc = ctx.path(path + "/bin/nvcc")
    if not nvcc.exists:
        # The repository exists all the same: only a build for real GPUs asks more of it.
        ctx.file("BUILD.bazel", _NO_TOOLKIT)
        ctx.file("nvcc.sh", "#!/bin/sh\necho 'no CUDA toolkit: set CUDA_PATH' >&2\nexit 1\n", executable = True)
        ctx.file("defs.bzl", _DEFS % (False, [], [], _fused(ctx)))
        return
    version = ctx.execute([nvcc, "--version"]).stdout.split("release ")[1].split(",")[0]
    ctx.symlink(path + "/include", "include")
    ctx.file("BUILD.bazel", _TOOLKIT.format(path = path))

    # The version stands in the script, so that a new toolkit makes new objects.
    ctx.file("nvcc.sh", "#!/bin/sh\n# CUDA %s\nexec %s \"$@\"\n" % (version, nvcc), executable = True)

    known = [int(part) for part in version.split(".")[:2]]

    # A tenth of the bytes; nvcc knows it since 12.8. Drivers unpack it since CUDA 12.4's, 550.
    small = ["--compress-mode=size"] if known >= [12, 8] else []

    # Fewer optimisations, in half of the time: to see that everything compiles.
    quick = ["--Ofast-compile=mid"] if known >= [13, 0] else []
    ctx.file("defs.bzl", _DEFS % (True, small, quick, _fused(ctx)))

cuda_configure = repository_rule(
    doc = "Finds $CUDA_PATH or /usr/local/cuda. Without either, HAVE_CUDA is False and its targets are skipped.",
    implementation = _impl,
    configure = True,
    environ = ["CUDA_PATH"],
    local = True,
)
