"""What the rows of tools/sdk/BUILD look for on the machine of whoever links a component, and what is inside the libraries."""

# name in BUILD: (lines of CMake, target that is linked, pkg-config's words)
FINDS = {
    "Threads": ("set(THREADS_PREFER_PTHREAD_FLAG ON)\nfind_dependency(Threads)", "Threads::Threads", "-pthread"),
    "ZLIB": ("find_dependency(ZLIB)", "ZLIB::ZLIB", "-lz"),
    # Debian's package has a configuration; others' may not.
    "Gloo": (
        "find_package(Gloo CONFIG QUIET)\n"
        "if(NOT TARGET gloo)\n"
        "  find_library(Ramet_GLOO_LIBRARY gloo)\n"
        "  mark_as_advanced(Ramet_GLOO_LIBRARY)\n"
        "  if(NOT Ramet_GLOO_LIBRARY)\n"
        '    set(_ramet_missing "Gloo (Debian: libgloo-dev)")\n'
        "  endif()\n"
        "endif()",
        "$<IF:$<TARGET_EXISTS:gloo>,gloo,${Ramet_GLOO_LIBRARY}>",
        "-lgloo",
    ),
    # Debian's package has a configuration that wants programs of another package.
    "LibZip": (
        "find_library(Ramet_ZIP_LIBRARY zip)\n"
        "mark_as_advanced(Ramet_ZIP_LIBRARY)\n"
        "if(NOT Ramet_ZIP_LIBRARY)\n"
        '  set(_ramet_missing "libzip (Debian: libzip-dev)")\n'
        "endif()",
        "${Ramet_ZIP_LIBRARY}",
        "-lzip",
    ),
    # Of what other languages call. (CMake knows that the archive is of C++.)
    "C++": ("", "", "-lstdc++ -lm"),
    "CUDAToolkit": ("find_dependency(CUDAToolkit)", "CUDA::cudart_static", "-lcudart_static -lrt"),
}

# Folder: (what it holds, Debian's package with its text). Compiled in, not linked.
LICENCES = (
    ("Eigen", "libeigen3-dev"),
    ("nlohmann-json", "nlohmann-json3-dev"),
    ("xxHash", "libxxhash-dev"),
)

# Further files of a component: where they are here, and installed. (The one of C is compiled with the program: compilers write what users of a module
# read, each in a form of its own.)
FILES = {
    "ramet": (("tools/see/gdb/ramet_gdb.py", "share/ramet/gdb/ramet_gdb.py"),),
    "c": (("nn/c/ramet.f90", "include/ramet/ramet.f90"),),
    "c_processes": (("parallel/c/ramet_processes.f90", "include/ramet/ramet_processes.f90"),),
}
