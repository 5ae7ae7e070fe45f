"""compat_headers: the compatibility headers that the repository has not (tools/compat/names.py)."""

def _compat_headers_impl(ctx):
    scripts = ctx.files.data
    command = "python3 %s " % ctx.file.script.path

    # LibTorch's include paths: they depend on no header of the library.
    forwarding = ctx.actions.declare_directory(ctx.attr.name)
    ctx.actions.run_shell(
        command = command + "--forwarding " + forwarding.path,
        inputs = scripts,
        outputs = [forwarding],
        mnemonic = "ForwardingHeaders",
    )

    # The lists of names lie where names.py writes them in a clone, so that tests find them there.
    lists = [ctx.actions.declare_file(ctx.attr.include + "/" + name) for name in ctx.attr.lists]
    folder = lists[0].path[:-len("/" + ctx.attr.lists[0])]
    ctx.actions.run_shell(
        command = command + "--lists " + folder,
        inputs = depset(scripts, transitive = [ctx.attr.library[CcInfo].compilation_context.headers]),
        outputs = lists,
        mnemonic = "NameLists",
        use_default_shell_env = True,
    )

    # What is made comes first: a clone's include folder may have what names.py wrote there for older headers.
    context = cc_common.create_compilation_context(
        headers = depset([forwarding] + lists),
        system_includes = depset([forwarding.path, folder, ctx.label.package + "/" + ctx.attr.include], order = "preorder"),
    )
    return [
        DefaultInfo(files = depset(lists)),
        CcInfo(compilation_context = context),
    ]

# A target with this among its `deps` finds them, and those of the folder `include`, which it declares itself. As a file among
# `srcs` it is the lists.
#   script: called as SCRIPT --forwarding FOLDER, and SCRIPT --lists FOLDER
#   data: what it reads, itself among it
#   include: the folder of the package where the other headers are
#   lists: what --lists writes
#   library: has these public names
compat_headers = rule(
    implementation = _compat_headers_impl,
    attrs = {
        "script": attr.label(allow_single_file = True, mandatory = True),
        "data": attr.label_list(allow_files = True),
        "include": attr.string(mandatory = True),
        "lists": attr.string_list(mandatory = True),
        "library": attr.label(mandatory = True, providers = [CcInfo]),
    },
)
