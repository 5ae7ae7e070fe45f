"""precompiled_header: headers that never change, parsed once for all that are compiled with the same options."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

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
    ctx.actions.write(source, "".join(["#include <%s>\n" % header for header in ctx.attr.headers]))

    # The compiler searches NAME.h.gch/ for a header that was made with its options. Where there is none it reads NAME.h, which is
    # empty: a compilation with other options reads nothing.
    plain = ctx.actions.declare_file(ctx.attr.name + ".h")
    ctx.actions.write(plain, "")
    outputs = []
    for level, copts in ctx.attr.levels.items():
        output = ctx.actions.declare_file("%s.h.gch/%s" % (ctx.attr.name, level))
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = source.path,
            output_file = output.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + copts + ["-x", "c++-header"],
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
        ctx.actions.run(
            executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME),
            arguments = arguments,
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            inputs = depset([source], transitive = [given.headers, toolchain.all_files]),
            outputs = [output],
            mnemonic = "PrecompileHeader",
            progress_message = "Precompiling %s, %s" % (ctx.attr.name, level),
        )
        outputs.append(output)
    context = cc_common.create_compilation_context(headers = depset([plain] + outputs))
    return [CcInfo(compilation_context = context)]

# A target with this among its `deps` and `-include PACKAGE/NAME.h` among its `copts` starts with the headers already parsed.
#   headers: names between <>
#   pic: whether Bazel compiles everything position-independent
#   levels: further options, by name: those of per_file_copt are not known here
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.string_list(mandatory = True),
        "levels": attr.string_list_dict(mandatory = True),
        "pic": attr.bool(mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
