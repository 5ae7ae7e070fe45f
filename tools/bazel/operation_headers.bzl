"""operation_headers: the door's headers of single operations, which the repository has not (tools/compat/headers.py)."""

def _operation_headers_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.attr.name)
    ctx.actions.run_shell(
        command = "python3 %s --operations %s" % (ctx.file.script.path, folder.path),
        inputs = ctx.files.data,
        outputs = [folder],
        mnemonic = "OperationHeaders",
    )
    context = cc_common.create_compilation_context(
        headers = depset([folder]),
        system_includes = depset([folder.path]),
    )
    return [DefaultInfo(files = depset([folder])), CcInfo(compilation_context = context)]

# A target with this among its `deps` finds them.
#   script: called as SCRIPT --operations FOLDER
#   data: what it reads, itself among it
operation_headers = rule(
    implementation = _operation_headers_impl,
    attrs = {
        "script": attr.label(allow_single_file = True, mandatory = True),
        "data": attr.label_list(allow_files = True),
    },
)
