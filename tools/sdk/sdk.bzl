"""sdk_components: what ./tools/install takes out of a build, a component for each row."""

def _ours(file):
    return not file.short_path.startswith("../")

def _files_of(info):
    """{path: (archive, always linked)}, headers and linker options of a library and all that it depends on."""
    archives, flags = {}, []
    for given in info.linking_context.linker_inputs.to_list():
        flags += given.user_link_flags
        for library in given.libraries:
            archive = library.pic_static_library or library.static_library
            if archive and _ours(archive):
                archives[archive.short_path] = (archive, library.alwayslink)
    headers = {h.short_path: h for h in info.compilation_context.headers.to_list() if _ours(h)}
    return archives, headers, flags

def _sdk_component_impl(ctx):
    archives, headers, flags = _files_of(ctx.attr.library[CcInfo])
    if ctx.attr.without:
        below = _files_of(ctx.attr.without[CcInfo])
        archives = {path: a for path, a in archives.items() if path not in below[0]}
        headers = {path: h for path, h in headers.items() if path not in below[1]}
        flags = [f for f in flags if f not in below[2]]
    listed = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(listed, struct(
        name = ctx.label.name,
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
        "library": attr.label(providers = [CcInfo]),
        "without": attr.label(providers = [CcInfo]),
    },
)

def sdk_components(rows):
    """A target for each row: the files of one component.

    Args:
      rows: {name: [label, what CMake looks for...]}, the library that all others stand on first.
    """
    first = None
    for name, row in rows.items():
        _sdk_component(
            name = name,
            library = row[0],
            finds = row[1:],
            without = first,
        )
        first = first or row[0]
