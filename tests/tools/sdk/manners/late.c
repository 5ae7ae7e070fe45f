// late ONCE.so LIBRARY.so [CALL DATA]: a host in C that loads libstdc++ late, by a plug-in that has used its thread-local variables,
// and Ramet after that. CALL is a function of LIBRARY.so that is called with DATA and has to return 0.
#include <dlfcn.h>
#include <stdio.h>

static void* loaded(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) printf("FAILED: %s\n", dlerror());
  return handle;
}

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  void* const first = loaded(argv[1]);
  if (!first) return 1;
  int (*const once)(void) = (int (*)(void))dlsym(first, "once");
  if (!once || once() != 1) return 2;
  void* const library = loaded(argv[2]);
  if (!library) return 1;
  if (argc == 3) return 0;
  int (*const call)(const char*) = (int (*)(const char*))dlsym(library, argv[3]);
  if (!call) return 2;
  return call(argv[4]);
}
