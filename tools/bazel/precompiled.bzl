"""precompiled_header: headers that are parsed once for all files compiled with the same options."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The standard headers that most files include.
STANDARD = [
    "algorithm",
    "atomic",
    "chrono",
    "cmath",
    "condition_variable",
    "functional",
    "map",
    "memory",
    "mutex",
    "numeric",
    "optional",
    "sstream",
    "string",
    "thread",
    "vector",
]

# What .bazelrc says of files that compute little.
UNOPTIMISED = [
    "-O0",
    "-U_FORTIFY_SOURCE",
]

# Further options, by level: a rule does not know those of per_file_copt.
_LEVELS = {
    "O0": UNOPTIMISED,
    "O1": ["-O1"],
    "else": [],
}

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    given = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    source = ctx.actions.declare_file(ctx.attr.name + "_source.h")
    ctx.actions.write(source, "".join(
        ["#include <%s>\n" % header for header in ctx.attr.headers] +
        ["#include \"%s\"\n" % header for header in ctx.attr.own_headers],
    ))
    inputs = ctx.actions.declare_file(ctx.attr.name + "_inputs.txt")
    paths = ctx.actions.args()
    paths.set_param_file_format("multiline")
    paths.add_all(given.headers)
    ctx.actions.write(inputs, paths)

    # The compiler searches NAME.h.gch/ for a header that was made with its options. Where there is none it reads NAME.h, which is
    # empty: a compilation with other options reads nothing.
    plain = ctx.actions.declare_file(ctx.attr.name + ".h")
    ctx.actions.write(plain, "")
    outputs = []
    for level in ctx.attr.levels:
        output = ctx.actions.declare_file("%s.h.gch/%s" % (ctx.attr.name, level))
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = source.path,
            output_file = output.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + _LEVELS[level] + ["-x", "c++-header"],
            include_directories = given.includes,
            quote_include_directories = given.quote_includes,
            system_include_directories = given.system_includes,
            use_pic = ctx.attr.pic,
        )
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        )
        unused = ctx.actions.declare_file("%s_%s_unused.txt" % (ctx.attr.name, level))
        dependencies = ctx.actions.declare_file("%s_%s.d" % (ctx.attr.name, level))
        compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME)
        ctx.actions.run(
            executable = "python3",
            arguments = [ctx.file._script.path, inputs.path, unused.path, dependencies.path, compiler] + arguments,
            use_default_shell_env = True,
            inputs = depset([source, inputs, ctx.file._script], transitive = [given.headers, toolchain.all_files]),
            outputs = [output, unused, dependencies],
            unused_inputs_list = unused,
            mnemonic = "PrecompileHeader",
            progress_message = "Precompiling %s, %s" % (ctx.attr.name, level),
        )
        outputs.append(output)
    # -fpch-deps lists all files that it was made of.
    context = cc_common.create_compilation_context(headers = depset([plain, source] + outputs, transitive = [given.headers]))
    return [CcInfo(compilation_context = context)]

_precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.string_list(),
        "own_headers": attr.string_list(),
        "levels": attr.string_list(mandatory = True),
        "pic": attr.bool(mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_script": attr.label(default = "//tools/bazel:precompile.py", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def precompiled_header(name, levels, **kwargs):
    """A target with this among its `deps` and its begins() (ramet.bzl) among its `copts` starts with the headers already parsed.

    Args:
      name: of the header, too.
      levels: of optimisation, for which it is made: names in _LEVELS.
      **kwargs: `headers` are names between <>, `own_headers` names between quotation marks; `deps` have them.
    """
    _precompiled_header(
        name = name,
        levels = levels,
        # .bazelrc's --force_pic
        pic = select({
            "//tools/bazel:sanitized": False,
            "//conditions:default": True,
        }),
        **kwargs
    )
