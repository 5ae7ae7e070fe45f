"""What the rows of tools/sdk/BUILD look for on the machine that links a component, and what is inside the libraries."""

# name in BUILD: (lines of CMake, target that is linked, pkg-config's words)
FINDS = {
    # CMake asks a compiler of C or C++, which a project in Fortran may not have.
    "Threads": (
        "if(CMAKE_C_COMPILER_LOADED OR CMAKE_CXX_COMPILER_LOADED)\n"
        "  set(THREADS_PREFER_PTHREAD_FLAG ON)\n"
        "  find_dependency(Threads)\n"
        "endif()",
        "$<IF:$<TARGET_EXISTS:Threads::Threads>,Threads::Threads,-pthread>",
        "-pthread",
    ),
    # After the library: gcc, which links programs in C and Fortran, adds neither. Some systems' linkers drop a library that nothing
    # before it needs.
    "Maths": ("", "m", "-lm"),
    "ZLIB": ("find_dependency(ZLIB)", "ZLIB::ZLIB", "-lz"),
    # Debian's package has a CMake configuration; others' may not.
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
    # Debian's package has a CMake configuration that needs programs of another package.
    "LibZip": (
        "find_library(Ramet_ZIP_LIBRARY zip)\n"
        "mark_as_advanced(Ramet_ZIP_LIBRARY)\n"
        "if(NOT Ramet_ZIP_LIBRARY)\n"
        '  set(_ramet_missing "libzip (Debian: libzip-dev)")\n'
        "endif()",
        "${Ramet_ZIP_LIBRARY}",
        "-lzip",
    ),
    "Cairo": (
        "find_library(Ramet_CAIRO_LIBRARY cairo)\n"
        "mark_as_advanced(Ramet_CAIRO_LIBRARY)\n"
        "if(NOT Ramet_CAIRO_LIBRARY)\n"
        '  set(_ramet_missing "Cairo (Debian: libcairo2-dev)")\n'
        "endif()",
        "${Ramet_CAIRO_LIBRARY}",
        "-lcairo",
    ),
    "Elfutils": (
        "find_library(Ramet_DW_LIBRARY dw)\n"
        "find_library(Ramet_ELF_LIBRARY elf)\n"
        "mark_as_advanced(Ramet_DW_LIBRARY Ramet_ELF_LIBRARY)\n"
        "if(NOT Ramet_DW_LIBRARY OR NOT Ramet_ELF_LIBRARY)\n"
        '  set(_ramet_missing "libdw of elfutils (Debian: libdw-dev)")\n'
        "endif()",
        "${Ramet_DW_LIBRARY};${Ramet_ELF_LIBRARY}",
        "-ldw -lelf",
    ),
    # For components that other languages call. (CMake knows that the archive is C++, and links it so where the project has that
    # language.)
    "C++": (
        "set(_ramet_runtime stdc++)\n"
        "if(CMAKE_CXX_COMPILER_LOADED)\n"
        '  set(_ramet_runtime "")\n'
        "endif()",
        "${_ramet_runtime}",
        "-lstdc++",
    ),
    # A library that may be loaded late cannot hold the static one (make_tree.py, shared_cudart).
    "CUDAToolkit": (
        "find_package(CUDAToolkit QUIET)\n"
        "if(NOT CUDAToolkit_FOUND)\n"
        '  set(_ramet_missing "the CUDA toolkit (CUDAToolkit_ROOT says where it is)")\n'
        "endif()",
        "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,CUDA::cudart_static,CUDA::cudart>",
        "-lcudart_static -lrt",
    ),
}

# Code that a component contains, compiled in and not linked, and Debian's package with its licence.
LICENCES = (
    ("Eigen", "libeigen3-dev", "ramet"),
    ("nlohmann-json", "nlohmann-json3-dev", "ramet"),
    ("xxHash", "libxxhash-dev", "ramet"),
    ("D3", "node-d3-zoom", "see"),
)

# Further files of a component: where they are here, and installed. (The one of C is compiled with the program: compilers write what users of a module
# read, each in a form of its own.)
FILES = {
    "ramet": (("tools/see/gdb/ramet_gdb.py", "share/ramet/gdb/ramet_gdb.py"),),
    "see": (("tools/see/read_recording.py", "share/ramet/see/read_recording.py"),),
    "c": (("nn/c/ramet.f90", "include/ramet/ramet.f90"),),
    "c_script": (("nn/c_script/ramet_script.f90", "include/ramet/ramet_script.f90"),),
    "c_processes": (("parallel/c/ramet_processes.f90", "include/ramet/ramet_processes.f90"),),
}
