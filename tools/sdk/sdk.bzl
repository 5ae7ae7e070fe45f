"""sdk_components: what ./tools/install takes out of a build, a component for each row."""

def _ours(file):
    return not file.short_path.startswith("../")

def _files_of(info):
    """{path: (archive, always linked)} and {path: header} of a library and all that it depends on."""
    archives = {}
    for given in info.linking_context.linker_inputs.to_list():
        for library in given.libraries:
            archive = library.pic_static_library or library.static_library
            if archive and _ours(archive):
                archives[archive.short_path] = (archive, library.alwayslink)
    headers = {h.short_path: h for h in info.compilation_context.headers.to_list() if _ours(h)}
    return archives, headers

def _sdk_component_impl(ctx):
    archives, headers = _files_of(cc_common.merge_cc_infos(cc_infos = [library[CcInfo] for library in ctx.attr.libraries]))
    if ctx.attr.without:
        below_archives, below_headers = _files_of(cc_common.merge_cc_infos(cc_infos = [library[CcInfo] for library in ctx.attr.without]))
        archives = {path: a for path, a in archives.items() if path not in below_archives}
        headers = {path: h for path, h in headers.items() if path not in below_headers}
    listed = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(listed, struct(
        name = ctx.label.name,
        needs = ctx.attr.needs,
        finds = ctx.attr.finds,
        archives = sorted(archives.keys()),
        whole = any([always for _, always in archives.values()]),
        headers = sorted(headers.keys()),
    ).to_json())
    files = [listed] + [archive for archive, _ in archives.values()]
    return [DefaultInfo(
        files = depset(files),
        runfiles = ctx.runfiles(files = files + headers.values()),
    )]

_sdk_component = rule(
    doc = "The archives of a library and of all that it depends on, and a list of these and of the headers: <name>.json.",
    implementation = _sdk_component_impl,
    attrs = {
        "finds": attr.string_list(),
        "libraries": attr.label_list(providers = [CcInfo]),
        "needs": attr.string_list(),
        "without": attr.label_list(providers = [CcInfo]),
    },
)

def sdk_components(rows):
    """A target for each row: the files of one component.

    Args:
      rows: {name: [labels, what CMake looks for, ":" and a component that it stands on...]}, the library that all others stand on
        first.
    """
    first = []
    for name, row in rows.items():
        libraries = [word for word in row if word.startswith("//")]
        needs = [word[1:] for word in row if word.startswith(":")]
        _sdk_component(
            name = name,
            libraries = libraries,
            needs = needs,
            # Emulated GPUs need no toolkit.
            finds = [
                word
                for word in row
                if not word.startswith("//") and not word.startswith(":") and word != "CUDAToolkit"
            ] + (select({
                "//tools/cuda:is_cuda": ["CUDAToolkit"],
                "//conditions:default": [],
            }) if "CUDAToolkit" in row else []),
            without = first + [word for need in needs for word in rows[need] if word.startswith("//")],
        )
        first = first or libraries
