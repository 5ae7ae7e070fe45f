"""cuda_library: .cu files, compiled by nvcc or by the host compiler for the emulated GPUs."""

load("@local_cuda//:defs.bzl", "HAVE_CUDA", "HOST_FMA", "QUICK", "SMALL_CODE")

# The machine code that the library ships, and PTX that the driver turns into any other.
_CODE = ["-gencode", "arch=compute_90a,code=sm_90a"]
_FALLBACK = ["-gencode", "arch=compute_80,code=compute_80"]

# The compiler calls the checker before every access to memory; nothing is linked with the sanitizer itself. The checker needs no
# calls at function entries. A thread's own arrays lie on its stack, where the checker sees no bounds: the compiler checks their
# indices itself. It also checks the alignment of vectors, because it splits a read of a vector into elements before it calls the
# checker.
CHECK_COPTS = [
    "-fsanitize=thread,bounds,alignment",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wno-tsan",
    "-g",
    "-O1",
]

# For tests of the checker: their dependencies do not show whether the build has a checker.
CHECKED_BUILD = select({
    "//tools/cuda:is_check": ["RAMET_CHECKED_BUILD"],
    "//conditions:default": [],
})

_BackendInfo = provider(doc = "The value of the flag.", fields = ["value"])

def _backend_impl(ctx):
    value = ctx.build_setting_value
    if value not in ["emulated", "check", "cuda"]:
        fail("--//tools/cuda:backend is %s, and can be emulated, check or cuda" % value)
    if value == "cuda" and not HAVE_CUDA:
        fail("--config=cuda needs a CUDA toolkit: set CUDA_PATH to where its bin/nvcc is")
    return _BackendInfo(value = value)

cuda_backend = rule(
    doc = "The flag --//tools/cuda:backend.",
    implementation = _backend_impl,
    build_setting = config.string(flag = True),
)

# What host files that include runtime/cuda/gpu.h have to know.
CUDA_DEFINES = select({
    "//tools/cuda:is_cuda": ["RAMET_GPU_TOOLKIT"],
    "//conditions:default": [],
})

# For targets of the emulated GPUs themselves.
EMULATED_ONLY = select({
    "//tools/cuda:is_cuda": ["//tools/cuda:nowhere"],
    "//conditions:default": [],
})

# For targets that only a toolkit makes.
CUDA_ONLY = select({
    "//tools/cuda:is_cuda": [],
    "//conditions:default": ["//tools/cuda:nowhere"],
})

def _nvcc_objects_impl(ctx):
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    objects = []
    for src in ctx.files.srcs:
        out = ctx.actions.declare_file(ctx.label.name + "/" + src.basename[:-len(".cu")] + ".pic.o")
        args = ctx.actions.args()
        args.add_all(["-c", src, "-o", out, "-std=c++20", "-O2", "-lineinfo", "-Xcompiler", "-fPIC"])
        args.add_all(_CODE)
        args.add_all(context.defines, before_each = "-D")
        args.add_all(context.quote_includes, before_each = "-I")
        args.add_all(context.includes, before_each = "-I")
        args.add_all(context.system_includes, before_each = "-isystem")
        args.add_all(ctx.attr.copts)
        if ctx.attr.quick and src not in ctx.files.by_architecture:
            args.add_all(QUICK)
        else:
            args.add_all(_FALLBACK)
        ctx.actions.run(
            executable = ctx.executable._nvcc,
            arguments = [args],
            inputs = depset([src] + ctx.files.hdrs, transitive = [context.headers]),
            outputs = [out],
            mnemonic = "Nvcc",
            progress_message = "Compiling %s with nvcc" % src.short_path,
            use_default_shell_env = True,
        )
        objects.append(out)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "by_architecture": attr.label_list(allow_files = [".cu"]),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "quick": attr.bool(mandatory = True),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_nvcc": attr.label(
            allow_single_file = True,
            cfg = "exec",
            default = "@local_cuda//:nvcc.sh",
            executable = True,
        ),
    },
)

def _host_sources_impl(ctx):
    # One line each, so that compiler messages, reports and debuggers name the .cu file and its line.
    sources = []
    for src in ctx.files.srcs:
        out = ctx.actions.declare_file(ctx.label.name + "/" + src.basename + ".cc")
        ctx.actions.write(out, "#include \"%s\"\n" % src.short_path)
        sources.append(out)
    return [DefaultInfo(files = depset(sources))]

_host_sources = rule(
    implementation = _host_sources_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cu"])},
)

def cuda_library(name, srcs, hdrs = [], deps = [], nvcc_copts = [], by_architecture = [], **kwargs):
    """Kernel files as a library: its objects come from nvcc under --config=cuda, else from the host compiler.

    Under --config=check the host compiler also tells the checker of every access to memory.

    Args:
      name: the library.
      srcs: .cu files in the dialect of runtime/cuda/gpu.h.
      hdrs: headers.
      deps: usually //runtime/cuda:gpu.
      nvcc_copts: options for nvcc alone.
      by_architecture: those of `srcs` whose code asks which GPU it is for. Of the others --define=ramet_quick_nvcc=1 makes machine
        code alone, with fewer optimisations: the compiler sees the same source for PTX, in a third of nvcc's time.
      **kwargs: as cc_library's.
    """
    _nvcc_objects(
        name = name + "_nvcc",
        srcs = srcs,
        hdrs = hdrs,
        by_architecture = by_architecture,
        quick = select({
            "//tools/cuda:is_quick": True,
            "//conditions:default": False,
        }),
        copts = nvcc_copts + select({
            "//tools/cuda:is_packed": SMALL_CODE,
            "//conditions:default": [],
        }),
        deps = deps,
        tags = ["nvcc"],  # tools/test builds what is tagged so
        target_compatible_with = CUDA_ONLY,
    )
    _host_sources(
        name = name + "_host",
        srcs = srcs,
        tags = ["manual"],
    )
    native.cc_library(
        name = name,
        srcs = select({
            "//tools/cuda:is_cuda": [":" + name + "_nvcc"],
            "//conditions:default": [":" + name + "_host"],
        }),
        hdrs = hdrs,
        # .bazelrc's warnings go by the path of a source, and generated ones lie elsewhere.
        copts = ["-Wall", "-Wextra", "-Wno-unknown-pragmas"] + select({
            "//tools/bazel:sanitized": [],
            "//conditions:default": ["-Werror"],
        }) + select({
            "//tools/cuda:is_check": CHECK_COPTS,
            "//conditions:default": [],
        }) + select({
            "//tools/bazel:x86_64": HOST_FMA,
            "//conditions:default": [],
        }),
        linkstatic = True,
        textual_hdrs = srcs,
        deps = deps,
        **kwargs
    )
