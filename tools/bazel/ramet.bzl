"""Rules of this workspace: layer_library, layer_files, kernel_library, ramet_test, ramet_tests."""

# Lower layers first.
LAYERS = ["runtime", "kernels", "autograd", "nn", "parallel"]

# One source, several objects: the namespace is a define, the instruction set a compiler option. Which one runs is chosen
# once at run time (kernels/kernel.h).
_VARIANTS = {
    "base": ["-march=x86-64"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}

_KERNEL_COPTS = [
    "-ffp-contract=off",
    # GCC 12 takes the AVX-512 intrinsics' undefined-lane arguments for uses of uninitialised values.
    "-Wno-maybe-uninitialized",
] + select({
    "//tools/bazel:sanitized": [],
    "//conditions:default": ["-O3"],
})

def _only(variant):
    """--//tools/bazel:variants=<variant>, on a processor family that has more of them."""
    return "//tools/bazel:x86_64_%s_only" % variant

def _kernel_variants_impl(ctx):
    if ctx.build_setting_value not in ["all"] + _VARIANTS.keys():
        fail("--//tools/bazel:variants is %s, and can be all, %s" % (ctx.build_setting_value, " or ".join(_VARIANTS.keys())))
    return []

kernel_variants = rule(
    doc = "The flag --//tools/bazel:variants.",
    implementation = _kernel_variants_impl,
    build_setting = config.string(flag = True),
)

def _absent_library(name, archive, variant):
    """What a build with `variant` alone has for the others' functions: fronts name all, and nobody calls these (kernels/kernel.cc).

    So the objects above the kernels are the same whatever variants there are. Sanitizer builds have two archives, with the same names.
    """
    prefix = {v: "_ZN5ramet7kernels%d%s" % (len(v), v) for v in _VARIANTS}
    absent = [prefix[v] for v in _VARIANTS if v != variant]
    native.genrule(
        name = name + "_source",
        srcs = [archive],
        outs = [name + ".s"],
        cmd = """$(NM) --defined-only $(SRCS) | awk '
            BEGIN {
              print ".section .note.GNU-stack,\\"\\",@progbits"
              count = split("%s", others, " ")
            }
            $$2 == "T" && sub(/^%s/, "", $$3) && !seen[$$3]++ {
              for (i = 1; i <= count; ++i) {
                f = others[i] $$3
                print ".section .text." f ",\\"ax\\",@progbits\\n.globl " f "\\n.hidden " f "\\n" f ": ud2"
              }
            }' >$@""" % (" ".join(absent), prefix[variant]),
        tags = ["manual"],
        toolchains = ["@bazel_tools//tools/cpp:current_cc_toolchain"],
    )
    native.cc_library(
        name = name,
        srcs = [name + ".s"],
        linkstatic = True,
        tags = ["manual"],
    )

def kernel_archives(name):
    """The archives that kernel_library makes of `name`, for layer_files."""
    return select(dict({
        _only(variant): [":%s_%s" % (name, variant), ":%s_beside_%s" % (name, variant)]
        for variant in _VARIANTS
    }, **{
        "//tools/bazel:x86_64": [":%s_%s" % (name, variant) for variant in _VARIANTS],
        "//conditions:default": [":%s_base" % name],
    }))

def kernel_library(name, srcs, hdrs, deps = [], **kwargs):
    """Compiles `srcs` once for each instruction-set variant (RAMET_VARIANT names it) and links all of them.

    --//tools/bazel:variants=base, v3 or v4 compiles that one alone. Where the processor is not an x86-64 there is only the variant
    `base`, with the compiler's default instruction set (kernels/kernel.h knows).
    The variants' archives are also the targets <name>_base, <name>_v3 and <name>_v4.
    """
    for variant, march in _VARIANTS.items():
        native.cc_library(
            name = name + "_" + variant,
            srcs = srcs,
            hdrs = hdrs,
            copts = _KERNEL_COPTS + (select({
                "//tools/bazel:x86_64": march,
                "//conditions:default": [],
            })),
            linkstatic = True,
            local_defines = ["RAMET_VARIANT=" + variant],
            target_compatible_with = [] if variant == "base" else ["@platforms//cpu:x86_64"],
            deps = deps,
            # Tests look into the objects.
            visibility = ["//tests:__subpackages__"],
        )
        _absent_library(
            name = "%s_beside_%s" % (name, variant),
            archive = ":%s_%s" % (name, variant),
            variant = variant,
        )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        linkstatic = True,
        deps = deps + kernel_archives(name),
        **kwargs
    )

# Of files that ask which variants this build has.
VARIANT_DEFINES = select(dict({
    _only(variant): ["RAMET_ONLY_VARIANT=k" + variant.capitalize()]
    for variant in _VARIANTS
}, **{"//conditions:default": []}))

def _included(header):
    """Options that begin with a header of //tools/bazel."""
    return ["-include", "tools/bazel/%s.h" % header]

# For files that begin with the standard headers, and what they depend on for it: programs, and sanitizer builds of the library.
STANDARD_COPTS = _included("standard_headers")
STANDARD_DEPS = ["//tools/bazel:standard_headers"]

def layer_library(name, deps = [], exclude = [], visibility = []):
    """A folder's one library: every .cc, .h and .inc below the BUILD file."""
    native.cc_library(
        name = name,
        srcs = native.glob(["**/*.cc"], exclude = exclude, allow_empty = True),
        hdrs = native.glob(["**/*.h", "**/*.inc"], exclude = exclude, allow_empty = True),
        copts = select({
            "//tools/bazel:sanitized": STANDARD_COPTS,
            "//conditions:default": [],
        }),
        linkstatic = True,
        visibility = visibility,
        deps = deps + select({
            "//tools/bazel:sanitized": STANDARD_DEPS,
            "//conditions:default": [],
        }),
    )

def layer_files(archives):
    """The folder's files and the archives of its libraries `archives`, for tests that look at them."""
    for name, patterns in {"headers": ["**/*.h", "**/*.inc"], "sources": ["**/*.cc"]}.items():
        native.filegroup(
            name = name,
            srcs = native.glob(patterns, allow_empty = True),
            visibility = [
                "//tests:__subpackages__",
                "//tools/see:__pkg__",
            ],
        )
    native.filegroup(
        name = "archives",
        testonly = True,
        srcs = archives,
        visibility = ["//tests:__subpackages__"],
    )

def ramet_cases(name, tests):
    """The cases of `tests`, each made with cases = True, for //tools/gpu:gpu_tests, which has those of all tests that use GPUs."""
    native.cc_library(
        name = name,
        testonly = True,
        tags = ["manual"],
        visibility = ["//tools/gpu:__pkg__"],
        deps = [test + "_cases" for test in tests],
    )

def ramet_test(name, srcs, deps = [], tags = [], size = "small", copts = [], local_defines = [], cases = False, **kwargs):
    """A GoogleTest program. Static, so that what it does not use is not linked.

    Args:
      cases: whether what it is compiled to is a library <name>_cases without a main(), for others to link too.
    """
    compiled = dict(
        srcs = srcs,
        copts = copts + _included("test_headers"),
        linkstatic = True,
        local_defines = local_defines,
    )
    deps = deps + [
        "//tools/bazel:test_headers",
        "//tools/bazel:test_seed",
    ]
    if cases:
        native.cc_library(
            name = name + "_cases",
            testonly = True,
            tags = ["manual"],
            deps = deps + ["@googletest//:gtest"],
            alwayslink = True,
            **compiled
        )
        compiled = {"linkstatic": True}
        deps = [":" + name + "_cases"]
    native.cc_test(
        name = name,
        size = size,
        tags = tags,
        deps = deps + ["@googletest//:gtest_main"],
        **dict(compiled, **kwargs)
    )

def _test_name(src):
    """Rooms (sub-folders) are for readers: a test's name is its file's alone, and no two files of a package share one."""
    return src.split("/")[-1][:-len(".cc")]

def ramet_tests(deps, settings = {}, shared = True, tags = [], exclude = [], local_defines = [], gpu_cases = [], emulated_only = []):
    """One test for each *_test.cc below the BUILD file; other .cc and .h files are a library they share.

    The name says what is special about a test:
      *_threads_test.cc  starts threads: also runs under ThreadSanitizer (tag "threads")
      *_long_test.cc     takes long: only `./tools/test --long` runs it (tag "takes_long": Bazel takes "long" for every large test);
                         with *_threads_long_test.cc once more under ThreadSanitizer (tag "threads_take_long")
      *_cxx17_test.cc    is compiled as C++17 against the C++20 library
    Args:
      deps: what is tested.
      settings: further arguments by test name, for example {"pool_test": {"shard_count": 4}}. "tags" and "data" are added.
      shared: whether the other files make a library here.
      tags: of all of them.
      exclude: patterns of files that are no concern of this rule.
      local_defines: of all tests.
      gpu_cases: the files whose cases make a library "gpu_cases" (ramet_cases). Where some do, each file tagged "cuda" is one of
        them or of emulated_only.
      emulated_only: the files that no real GPU runs (tag "emulated_only").
    """
    every = tags
    helpers = native.glob(["**/*.cc", "**/*.h"], exclude = ["**/*_test.cc"] + exclude, allow_empty = True) if shared else []
    data = native.glob(["goldens/**", "data/**"], allow_empty = True)
    if helpers:
        native.cc_library(
            name = "support",
            testonly = True,
            srcs = [f for f in helpers if f.endswith(".cc")],
            hdrs = [f for f in helpers if f.endswith(".h")],
            copts = _included("test_headers"),
            linkstatic = True,
            visibility = ["//tests:__subpackages__"],
            deps = deps + [
                "//tools/bazel:test_headers",
                "@googletest//:gtest",
            ],
        )
    for src in native.glob(["**/*_test.cc"], exclude = exclude, allow_empty = True):
        name = _test_name(src)
        extra = dict(settings.get(name, {}))
        tags = every + extra.pop("tags", [])
        if name.endswith("_threads_test"):
            tags = tags + ["threads"]
        if name.endswith("_long_test"):
            tags = tags + ["takes_long"]
            if name.endswith("_threads_long_test"):
                tags = tags + ["threads_take_long"]
            extra.setdefault("size", "large")
        if src in emulated_only:
            tags = tags + ["emulated_only"]
        if gpu_cases and "cuda" in tags and (src in gpu_cases) == (src in emulated_only):
            fail("%s: expected in one of gpu_cases and emulated_only" % src)
        extra.setdefault("local_defines", local_defines)
        own_data = extra.pop("data", [])
        ramet_test(
            name = name,
            srcs = [src],
            copts = ["-std=c++17"] if name.endswith("_cxx17_test") else [],
            cases = src in gpu_cases,
            data = data + own_data,
            tags = tags,
            deps = deps + ([":support"] if helpers else []),
            **extra
        )
    if gpu_cases:
        ramet_cases(
            name = "gpu_cases",
            tests = [":" + _test_name(src) for src in gpu_cases],
        )
    missing = [name for name in settings if not native.glob(["**/" + name + ".cc"], allow_empty = True)]
    missing += [src for src in gpu_cases + emulated_only if not native.glob([src], allow_empty = True)]
    if missing:
        fail("settings for tests that do not exist: " + ", ".join(missing))
