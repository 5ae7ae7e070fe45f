"""External repositories of the workspace: all of them are files that Debian packages put on the machine."""

def bazel4_repositories(clone = "."):
    """What Bazel 4 would download for itself, from the machine instead.

    Debian's bazel-bootstrap (4.2.3) wants rules_cc, rules_java, rules_proto and remote_coverage_tools even for a pure
    C++ workspace. Declared here first, they come from the tree and from Debian's packages bazel-rules-java and
    bazel-rules-proto. rules_cc is in the tree because Debian's bazel-rules-cc is too new for 4.2.3. Newer Bazels bring
    their own and get none of this. Debian's build has an empty version string.

    Args:
      clone: where Ramet's is, in a workspace of somebody else's.
    """
    if native.bazel_version and not native.bazel_version.startswith("4."):
        return
    native.local_repository(name = "rules_cc", path = clone + "/tools/bazel/rules_cc")
    native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")
    native.local_repository(name = "rules_proto", path = "/usr/share/bazel/rules/proto")
    native.local_repository(name = "remote_coverage_tools", path = clone + "/tools/bazel/remote_coverage_tools")

def _system_library_impl(ctx):
    for source, name in ctx.attr.files.items():
        path = ctx.path(source)
        if not path.exists:
            fail("%s is missing: install the Debian package %s, or run ./tools/setup.sh" % (source, ctx.attr.package))
        ctx.symlink(path, name)
    ctx.file("BUILD.bazel", "package(default_visibility = [\"//visibility:public\"])\n" + ctx.attr.build)

system_library = repository_rule(
    doc = "A repository of links to `files` (path on the machine: name in the repository) of one Debian package.",
    implementation = _system_library_impl,
    attrs = {
        "package": attr.string(mandatory = True),
        "files": attr.string_dict(mandatory = True),
        "build": attr.string(mandatory = True),
    },
    local = True,
)

# Only the named headers are linked, never all of /usr/include. An -isystem copy of it in front of the compiler's own folders would
# break #include_next.
_HEADERS = """
cc_library(
    name = "{name}",
    hdrs = glob(["{folder}/**"], exclude = ["**/*.cmake"]),
    includes = ["."],
    {extra}
)
"""

def _headers(name, package, folder, path = None, archive = None, linkopts = []):
    files = {path or "/usr/include/" + folder: folder}
    extra = "linkopts = %r," % linkopts if linkopts else ""
    if archive:
        # The static archive by full path, so that programs need no third-party shared library.
        extra = "linkopts = [\"-l:%s\"] + %r," % (archive, linkopts)
    system_library(
        name = name,
        package = package,
        files = files,
        build = _HEADERS.format(name = name, folder = folder, extra = extra),
    )

_GOOGLETEST = """
cc_library(
    name = "gtest",
    srcs = ["googletest/src/gtest-all.cc"],
    hdrs = glob(["googletest/include/**/*.h"]),
    copts = ["-Iexternal/googletest/googletest"],
    includes = ["googletest/include"],
    linkopts = ["-pthread"],
    linkstatic = True,
    textual_hdrs = glob(["googletest/src/*.cc", "googletest/src/*.h"]),
)
cc_library(
    name = "gtest_main",
    srcs = ["googletest/src/gtest_main.cc"],
    linkstatic = True,
    deps = [":gtest"],
)
cc_library(
    name = "gmock",
    srcs = ["googlemock/src/gmock-all.cc"],
    hdrs = glob(["googlemock/include/**/*.h"]),
    copts = ["-Iexternal/googletest/googlemock"],
    includes = ["googlemock/include"],
    linkstatic = True,
    textual_hdrs = glob(["googlemock/src/*.cc"]),
    deps = [":gtest"],
)
"""

_ZLIB = """
cc_library(
    name = "zlib",
    hdrs = ["zlib.h", "zconf.h"],
    includes = ["."],
    linkopts = ["-l:libz.a"],
)
"""

_XXHASH = """
cc_library(
    name = "xxhash",
    hdrs = ["xxhash.h"],
    includes = ["."],
)
"""

_ZIP = """
cc_library(
    name = "zip",
    hdrs = ["zip.h", "zipconf.h"],
    includes = ["."],
    linkopts = ["-lzip"],
)
"""

_EIGEN = """
cc_library(
    name = "eigen",
    hdrs = glob(["Eigen/**", "unsupported/**"]),
    defines = ["EIGEN_MPL2_ONLY"],
    includes = ["."],
)
"""

# d3-zoom and what it stands on, in order, and d3-array for its ticks: what is inlined in pages (tools/docs/explorer).
_D3 = ["dispatch", "color", "timer", "ease", "interpolate", "selection", "drag", "transition", "zoom", "array"]

_D3_BUILD = """
filegroup(name = "modules", srcs = [%s])
filegroup(name = "licence", srcs = ["copyright"])
""" % ", ".join(["\"d3-%s.min.js\"" % name for name in _D3])

def system_repositories():
    """Third-party code: each is fetched (linked) only by a build that uses it."""
    system_library(
        name = "googletest",
        package = "googletest",
        files = {
            "/usr/src/googletest/googletest": "googletest",
            "/usr/src/googletest/googlemock": "googlemock",
        },
        build = _GOOGLETEST,
    )
    system_library(
        name = "eigen",
        package = "libeigen3-dev",
        files = {
            "/usr/include/eigen3/Eigen": "Eigen",
            "/usr/include/eigen3/unsupported": "unsupported",
        },
        build = _EIGEN,
    )
    system_library(
        name = "zlib",
        package = "zlib1g-dev",
        files = {
            "/usr/include/zlib.h": "zlib.h",
            "/usr/include/zconf.h": "zconf.h",
        },
        build = _ZLIB,
    )
    system_library(
        name = "xxhash",
        package = "libxxhash-dev",
        files = {
            "/usr/include/xxhash.h": "xxhash.h",
        },
        build = _XXHASH,
    )
    system_library(
        name = "d3",
        package = "node-d3-zoom and node-d3-array",
        files = dict(
            [("/usr/share/nodejs/d3-%s/dist/d3-%s.min.js" % (name, name), "d3-%s.min.js" % name) for name in _D3],
            **{"/usr/share/doc/node-d3-zoom/copyright": "copyright"}
        ),
        build = _D3_BUILD,
    )

    # Debian has the shared libraries of these two only.
    system_library(
        name = "zip",
        package = "libzip-dev",
        files = {
            "/usr/include/zip.h": "zip.h",
            "/usr/include/zipconf.h": "zipconf.h",
        },
        build = _ZIP,
    )
    _headers(name = "cairo", package = "libcairo2-dev", folder = "cairo", linkopts = ["-lcairo"])
    _headers(name = "gloo", package = "libgloo-dev", folder = "gloo", linkopts = ["-lgloo"])
    _headers(name = "json", package = "nlohmann-json3-dev", folder = "nlohmann")
    _headers(name = "cli11", package = "libcli11-dev", folder = "CLI")
    _headers(name = "rapidcheck", package = "librapidcheck-dev", folder = "rapidcheck", archive = "librapidcheck.a")
    _headers(
        name = "benchmark",
        package = "libbenchmark-dev",
        folder = "benchmark",
        linkopts = ["-lbenchmark", "-pthread"],
    )
