// What only an installed library has.

/// Of the headers that it was made with: each unit that includes them asks for it (ramet/installed.h).
__attribute__((visibility("default"))) const char @SYMBOL@ = 0;
/// Says that the library is an installed one (tools/see/source_lines.cc).
__attribute__((visibility("default"))) const char ramet_installed = 0;

/// Of ramet/installed.h, in the program or in the shared library that this archive is linked into.
extern const void* ramet_library_in_use(void) __attribute__((weak));
/// Whether what was compiled with the headers calls another copy of the library than this one (runtime/memory/pool.cc).
__attribute__((visibility("hidden"))) int ramet_is_mixed(void) { return ramet_library_in_use && ramet_library_in_use() != &@SYMBOL@; }
