#!/usr/bin/env bash
# Note [The compatibility prefix] in nn/module/class_name.h: what the library calls its classes, for every way to link it and the program.
# Two files stand for the library: the one that knows the prefix, and what it calls.
set -euo pipefail

root=$PWD
work=${TEST_TMPDIR:-$(mktemp -d)}
cd "$work"

cat >name.cc <<'END'
#include "nn/module/class_name.h"
// What a plugin of a host that knows nothing of us offers.
extern "C" __attribute__((visibility("default"))) const char* plugin_name() {
  static const std::string name = ramet::nn::detail::qualified("nn::Linear");
  return name.c_str();
}
END
cat >main.cc <<'END'
#include <cstdio>

extern "C" const char* plugin_name();
int main() { std::puts(plugin_name()); }
END
printf '#include "%s"\n' nn/module/class_name.cc runtime/base/demangle.cc >library.cc
echo '#include "ramet/compat/prefix.h"' >compat.cc
cat >host.cc <<'END'
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    void* plugin = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    std::puts(reinterpret_cast<const char* (*)()>(dlsym(plugin, "plugin_name"))());
  }
}
END
cat compat.cc host.cc >host_compat.cc
cat compat.cc name.cc >name_compat.cc

failed=0
expect() {  # expect WHAT EXPECTED COMMAND...
  local what=$1 expected=$2 got
  shift 2
  got=$("$@" 2>&1 | paste -sd' ') || true
  [[ $got == "$expected" ]] || { echo "FAILED: $what: got '$got', expected '$expected'" && failed=1; }
}

run() {  # run COMPILER FLAGS... (LINK_FLAG: for linking alone)
  local cxx=$1
  shift
  local flags=(-std=c++17 -O1 -Wall -Wextra -Werror -fvisibility=hidden -fvisibility-inlines-hidden
    -ffunction-sections -fdata-sections -iquote "$root" -I "$root/tools/compat/include" "$@")
  local link=("$cxx" "${flags[@]}" ${LINK_FLAG:-} -Wl,--gc-sections) what="$cxx $* ${LINK_FLAG:-}"
  "$cxx" "${flags[@]}" -fPIC -c library.cc -o library.o
  local f
  for f in name main compat name_compat; do "$cxx" "${flags[@]}" -fPIC -c $f.cc -o $f.o; done
  rm -f libramet.a && "${AR:-ar}" rcs libramet.a library.o

  # One program, static.
  "${link[@]}" main.o name.o libramet.a -o plain
  "${link[@]}" main.o name.o compat.o libramet.a -o through
  "${link[@]}" main.o name_compat.o compat.o libramet.a -o twice  # two files came in by the compatibility headers
  expect "$what: a program" ramet::nn::Linear ./plain
  expect "$what: a program with the compatibility headers" torch::nn::Linear ./through
  expect "$what: with two such files" torch::nn::Linear ./twice

  # The library shared.
  "${link[@]}" -shared library.o -o libramet.so -Wl,-soname,libramet.so
  "${link[@]}" main.o name.o -L. -l:libramet.so "-Wl,-rpath,$work" -o plain
  "${link[@]}" main.o name.o compat.o -L. -l:libramet.so "-Wl,-rpath,$work" -o through
  expect "$what: a shared library" ramet::nn::Linear ./plain
  expect "$what: a shared library, the program with the compatibility headers" torch::nn::Linear ./through

  # Inside plugins. The host includes the LibTorch compatibility headers or not, with a library of its own or none.
  "${link[@]}" -shared name.o library.o -o plugin.so
  "${link[@]}" -shared name.o compat.o library.o -o plugin_compat.so
  "${link[@]}" -shared name.o compat.o -L. -l:libramet.so "-Wl,-rpath,$work" -o plugin_shared.so
  "${link[@]}" host.cc -ldl -o host
  "${link[@]}" host_compat.cc library.o -ldl -o host_compat
  expect "$what: plugins" "ramet::nn::Linear torch::nn::Linear torch::nn::Linear" \
    ./host ./plugin.so ./plugin_compat.so ./plugin_shared.so
  expect "$what: plugins of a program with the compatibility headers" "ramet::nn::Linear torch::nn::Linear" \
    ./host_compat ./plugin.so ./plugin_compat.so
}

run g++
AR=gcc-ar run g++ -flto
# Debian's package of one version of clang has no program clang++.
clang=$(compgen -G '/usr/bin/clang++*' | sort -V | tail -n 1)
run "$clang"
LINK_FLAG=-fuse-ld=lld run "$clang"
[[ $failed == 0 ]] && echo "OK"
exit $failed
