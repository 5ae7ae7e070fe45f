"""Rules of this workspace: layer_library, layer_interface, layer_files, kernel_library, ramet_test, ramet_tests."""

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
            # Or //... would make all of them, whatever variants are asked for.
            tags = ["manual"],
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

def begins(headers):
    """Options that begin with a precompiled_header.

    GCC forgets in it that runtime/base/array_ref.h switches a warning off. It names the header's own files as dependencies only
    with -fpch-deps: without them Bazel would not compile again after an edit of one.
    """
    package, name = headers.split(":")
    package = package[len("//"):] or native.package_name()
    return ["-include", "%s/%s.h" % (package, name), "-fpch-deps", "-Wno-init-list-lifetime"]

# For files that begin with the standard headers, and what they depend on for it: programs, and sanitizer builds of the library.
STANDARD_DEPS = ["//tools/bazel:standard_headers"]
STANDARD_COPTS = begins(STANDARD_DEPS[0])

# For files that begin with ramet.h: programs.
RAMET_DEPS = ["//tools/bazel:ramet_headers"]
RAMET_COPTS = begins(RAMET_DEPS[0])

def _joined_source_impl(ctx):
    joined = ctx.actions.declare_file(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add(joined)
    arguments.add_all(ctx.attr.begin, before_each = "--begin")
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run_shell(
        # Copies, not includes: an edit of one source is then no edit of what the library's other objects are made of.
        command = """
            to=$1; shift
            while [ "${1:-}" = --begin ]; do echo "#include \\"$2\\""; shift 2; done >"$to"
            for source; do echo "#line 1 \\"$source\\""; cat "$source"; done >>"$to"
        """,
        arguments = [arguments],
        inputs = ctx.files.srcs,
        outputs = [joined],
        mnemonic = "JoinSources",
    )
    return [DefaultInfo(files = depset([joined]))]

_joined_source = rule(
    doc = "A source file that includes the headers `begin` and then has the text of `srcs`. Messages name these and their lines.",
    implementation = _joined_source_impl,
    attrs = {
        "begin": attr.string_list(),
        "srcs": attr.label_list(allow_files = True),
    },
)

# How many sources of a folder are compiled together. Twelve take a tenth less time than six, and an edit of one compiles all of them.
_JOINED = 6
_JOINED_SANITIZED = 12

def _join_sources(srcs, alone, begin, size):
    """`srcs`, of which up to `size` .cc files of one folder are one file: FOLDER/joined_by_6_1.cc."""
    folders = {}
    result = []
    for src in srcs:
        if src in alone or not src.endswith(".cc"):
            result.append(src)
        else:
            folders.setdefault(src[:-len(src.split("/")[-1])], []).append(src)
    for folder, files in folders.items():
        for first in range(0, len(files), size):
            part = files[first:first + size]
            if len(part) == 1:
                result += part
                continue
            joined = "%sjoined_by_%d_%d.cc" % (folder, size, first // size + 1)
            _joined_source(
                name = joined,
                srcs = part,
                begin = begin,
                tags = ["manual"],
            )
            result.append(":" + joined)
    return result

def joined_library(srcs, alone = [], hot = [], begin = [], others = [], **kwargs):
    """A cc_library. Six sources of a folder are compiled together, in sanitizer builds twelve.

    Most of a source's compilation is reading headers and instantiating their templates. Six share that and take half of the time.
    With --define=ramet_apart=1 each is compiled alone: then a source that forgets an include fails (./tools/test --long).

    Args:
      srcs: .cc files and private headers.
      alone: those .cc files whose names in unnamed namespaces are others' too, or that .bazelrc gives options of their own.
      hot: those whose calls take nanoseconds. They are compiled together in sanitizer builds only: more sources in one file change what
        GCC inlines, which made a chain of additions a tenth slower.
      begin: headers that a joined source includes first.
      others: a select() of sources, each compiled alone.
      **kwargs: cc_library's.
    """
    missing = [src for src in alone + hot if src not in srcs]
    if missing:
        fail("no such sources: " + ", ".join(missing))
    native.cc_library(
        srcs = select({
            "//tools/bazel:apart": srcs,
            "//tools/bazel:sanitized": _join_sources(srcs, alone, begin, _JOINED_SANITIZED),
            "//conditions:default": _join_sources(srcs, alone + hot, begin, _JOINED),
        }) + others,
        linkstatic = True,
        **kwargs
    )

def layer_library(name, deps = [], exclude = [], visibility = [], alone = [], hot = [], begin = []):
    """A folder's one library: every .cc, .h and .inc below the BUILD file. `alone`, `hot` and `begin` are joined_library's."""
    joined_library(
        name = name,
        srcs = native.glob(["**/*.cc"], exclude = exclude, allow_empty = True),
        hdrs = native.glob(["**/*.h", "**/*.inc"], exclude = exclude, allow_empty = True),
        alone = alone,
        hot = hot,
        begin = begin,
        copts = select({
            "//tools/bazel:sanitized": STANDARD_COPTS,
            "//conditions:default": [],
        }),
        visibility = visibility,
        deps = deps + select({
            "//tools/bazel:sanitized": STANDARD_DEPS,
            "//conditions:default": [],
        }) + (["//tools/bazel:tensor_headers"] if native.package_name() == "autograd" else []),
    )

def layer_interface(visibility, deps = []):
    """The folder's headers alone, as the target `interface`: for a precompiled header that the library itself begins with."""
    native.cc_library(
        name = "interface",
        hdrs = native.glob(["**/*.h", "**/*.inc"]),
        linkstatic = True,
        tags = ["manual"],
        visibility = visibility,
        deps = deps,
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

# Every test begins with these headers, or with more: those of ramet_tests(begin = ...).
_TEST_HEADERS = "//tools/bazel:test_headers"

def ramet_cases_library(name, srcs, deps, begin = _TEST_HEADERS, joined = None, copts = [], local_defines = [], **kwargs):
    """The cases of `srcs` without a main(), for programs to link.

    Args:
      joined: the name of a source file that has all of them, to be compiled in their place.
    """
    if joined:
        _joined_source(
            name = joined,
            testonly = True,
            srcs = srcs,
            tags = ["manual"],
        )
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [":" + joined] if joined else srcs,
        copts = copts + begins(begin),
        linkstatic = True,
        local_defines = local_defines,
        deps = deps + [
            begin,
            "//tools/bazel:test_seed",
            "@googletest//:gtest",
        ],
        alwayslink = True,
        **kwargs
    )

def ramet_test(name, srcs, deps = [], size = "small", copts = [], local_defines = [], begin = _TEST_HEADERS, **kwargs):
    """A GoogleTest program. Static, so that what it does not use is not linked."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = copts + begins(begin),
        linkstatic = True,
        local_defines = local_defines,
        deps = deps + [begin] + _TEST_MAIN,
        **kwargs
    )

_TEST_MAIN = [
    "//tools/bazel:test_main",
    "//tools/bazel:test_seed",
]

def _program_of_file_impl(ctx):
    started = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = started, target_file = ctx.executable.program, is_executable = True)
    runfiles = ctx.runfiles(files = [started] + ctx.files.data)
    for used in ctx.attr.data + [ctx.attr.program]:
        runfiles = runfiles.merge(used[DefaultInfo].default_runfiles)
    return [
        DefaultInfo(executable = started, runfiles = runfiles),
        testing.TestEnvironment(ctx.attr.env),
    ]

_program_of_file_test = rule(
    doc = "A test that starts `program` by its own name: it runs the cases of one file (test_main.cc).",
    implementation = _program_of_file_impl,
    attrs = {
        "program": attr.label(executable = True, cfg = "target", mandatory = True),
        "data": attr.label_list(allow_files = True),
        "env": attr.string_dict(),
    },
    test = True,
)

# More files of a program are compiled and linked in less time, and in more where one of them alone was changed.
_FILES_OF_A_PROGRAM = 10

def _ramet_program(name, cases, tests, deps = []):
    """One program for several tests, of which each runs the cases of its file.

    Args:
      name: the program's.
      cases: the library of their cases.
      tests: their attributes, by name.
      deps: of the program.
    """
    if len(tests) == 1:
        for test, attributes in tests.items():
            ramet_test(
                name = test,
                srcs = [],
                deps = deps + [cases],
                **attributes
            )
        return
    native.cc_binary(
        name = name,
        testonly = True,
        linkstatic = True,
        tags = ["manual"],
        deps = deps + [cases] + _TEST_MAIN,
    )
    for test, attributes in tests.items():
        _program_of_file_test(
            name = test,
            program = ":" + name,
            **dict({"size": "small"}, **attributes)
        )

def _test_name(src):
    """Sub-folders are for readers: a test's name is its file's alone, and no two files of a package share one."""
    return src.split("/")[-1][:-len(".cc")]

def _share_programs(files, alone):
    """Pairs of a sub-folder and its files of one kind, which share a program. `files`: a list of (file, what makes its kind)."""
    kinds = {}
    for src, kind in files:
        folder = src[:-len(src.split("/")[-1])]
        key = (folder, src if _test_name(src) in alone else kind)
        kinds.setdefault(key, []).append(src)
    return [
        (folder, srcs[begin:begin + _FILES_OF_A_PROGRAM])
        for (folder, _), srcs in kinds.items()
        for begin in range(0, len(srcs), _FILES_OF_A_PROGRAM)
    ]

def ramet_tests(
        deps,
        settings = {},
        shared = True,
        tags = [],
        exclude = [],
        alone = [],
        begin = _TEST_HEADERS,
        local_defines = [],
        gpu_cases = [],
        on_gpus = None,
        emulated_only = []):
    """One test for each *_test.cc below the BUILD file; other .cc and .h files are a library they share.

    The name says what is special about a test:
      *_threads_test.cc  starts threads: also runs under ThreadSanitizer (tag "threads")
      *_long_test.cc     takes long: only `./tools/test --long` runs it (tag "takes_long": Bazel takes "long" for every large test);
                         with *_threads_long_test.cc once more under ThreadSanitizer (tag "threads_take_long")
      *_cxx17_test.cc    is compiled as C++17 against the C++20 library
    Tests of one sub-folder and one kind share a program, and are compiled together: their names must differ.
    Args:
      deps: what is tested.
      settings: further arguments by test name, for example {"pool_test": {"shard_count": 4}}. "tags" and "data" are added.
      shared: whether the other files make a library here.
      tags: of all of them.
      exclude: patterns of files that are no concern of this rule.
      alone: tests that share no program: what they do before main() is for them alone, or their names are others' too.
      begin: the precompiled_header that every file begins with.
      local_defines: of all tests.
      gpu_cases: the files whose cases make a library "gpu_cases", for //tools/gpu:gpu_tests. Where some do, each file tagged "cuda" is one of
        them or of emulated_only.
      on_gpus: attributes of a second test of each of gpu_cases, x_gpus_test for x_test. Its "deps" are linked too.
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
            copts = begins(begin),
            linkstatic = True,
            visibility = ["//tests:__subpackages__"],
            deps = deps + [
                begin,
                "@googletest//:gtest",
            ],
        )
    files = []
    attributes = {}
    defines = {}
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
        defines[src] = local_defines + extra.pop("local_defines", [])
        extra.update(
            data = data + extra.pop("data", []),
            tags = tags,
        )
        attributes[src] = extra
        files.append((src, str([sorted(tags), str(defines[src]), name.endswith("_cxx17_test"), src in gpu_cases])))
    libraries = []
    counts = {}
    for folder, srcs in _share_programs(files, alone):
        if len(srcs) == 1:
            program = _test_name(srcs[0])
        else:
            counts[folder] = counts.get(folder, 0) + 1
            program = "%sprogram_%d" % (folder, counts[folder])
        cases = program + "_cases"
        cxx17 = srcs[0].endswith("_cxx17_test.cc")
        ramet_cases_library(
            name = cases,
            srcs = srcs,
            joined = program + ".cc" if len(srcs) > 1 else None,
            # With another standard the headers are compiled again.
            begin = _TEST_HEADERS if cxx17 else begin,
            copts = ["-std=c++17"] if cxx17 else [],
            local_defines = defines[srcs[0]],
            tags = ["manual"],
            deps = deps + ([":support"] if helpers else []),
        )
        _ramet_program(program, ":" + cases, {_test_name(src): attributes[src] for src in srcs})
        if srcs[0] in gpu_cases:
            libraries.append(":" + cases)
            if on_gpus:
                second = dict(on_gpus)
                more = second.pop("deps")
                names = [_test_name(src).replace("_test", "_gpus_test") for src in srcs]
                _ramet_program(program + "_gpus", ":" + cases, {name: second for name in names}, more)
    if gpu_cases:
        native.cc_library(
            name = "gpu_cases",
            testonly = True,
            tags = ["manual"],
            visibility = ["//tools/gpu:__pkg__"],
            deps = libraries,
        )
    missing = [name for name in settings if not native.glob(["**/" + name + ".cc"], allow_empty = True)]
    missing += [name for name in alone if not native.glob(["**/" + name + ".cc"], allow_empty = True)]
    missing += [src for src in gpu_cases + emulated_only if not native.glob([src], allow_empty = True)]
    if missing:
        fail("settings for tests that do not exist: " + ", ".join(missing))
