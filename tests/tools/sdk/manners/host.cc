// host static|shared A.so B.so: loads plug-ins and drops them, while threads that used them live.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "expect.h"

namespace {

bool mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

struct Plugin {
  Plugin(const char* path, int flags) : handle(dlopen(path, flags)) {
    if (!handle) std::printf("%s\n", dlerror()), std::exit(1);
    train = get<double (*)(int)>("plugin_train");
    set = get<void (*)(int, int)>("plugin_set");
    state = get<int (*)()>("plugin_get");
    fail = get<int (*)(int)>("plugin_fail");
  }
  void close() { EXPECT(dlclose(handle) == 0); }
  template <class F> F get(const char* name) {
    void* found = dlsym(handle, name);
    EXPECT(found);
    return reinterpret_cast<F>(found);
  }
  void* handle;
  double (*train)(int);
  void (*set)(int, int);
  int (*state)();
  int (*fail)(int);
};

// A thread of the host's that has used the plug-in, and lives on.
struct Foreign {
  explicit Foreign(const Plugin& p, int seed)
      : thread([this, train = p.train, seed] {
          result = train(seed);
          used = true;
          while (!end) std::this_thread::yield();
        }) {
    while (!used) std::this_thread::yield();
  }
  void join() {
    end = true;
    thread.join();
  }
  double result = 0;
  std::atomic<bool> used{false}, end{false};
  std::thread thread;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool shared = argv[1] == std::string("shared");
  const std::string name = std::filesystem::path(argv[2]).filename();

  // Opened, used by a thread that has ended, dropped, opened again: nothing is left of the
  // archive's plug-in, its threads have ended. The shared library stays, and they with it.
  double first = 0;
  for (int round = 0; round < 3; ++round) {
    Plugin p(argv[2], RTLD_NOW | RTLD_LOCAL);
    p.set(3, 0);
    Foreign foreign(p, 7);
    foreign.join();
    if (round == 0) first = foreign.result;
    EXPECT(foreign.result == first);
    EXPECT(threads() == 3);
    p.close();
    if (shared) EXPECT(mapped("libramet.so"));
    else EXPECT(threads() == 1 && !mapped(name));
  }
  // Closed while two threads that have used it live, one of which ends: the C library keeps it for
  // their thread-local destructors.
  for (int round = 0; round < 3; ++round) {
    Plugin p(argv[2], RTLD_NOW | RTLD_LOCAL);
    Foreign foreign(p, 7);
    EXPECT(foreign.result == first && p.train(7) == first);
    p.close();
    foreign.join();
  }

  // Two plug-ins, each with a library of its own or both with one.
  for (const int scope : {RTLD_LOCAL, RTLD_GLOBAL}) {
    Plugin a(argv[2], RTLD_NOW | scope), b(argv[3], RTLD_NOW | scope);
    a.set(2, 0);
    b.set(4, 1);
    EXPECT(a.state() == (shared ? 408 : 204));
    EXPECT(b.state() == 408);
    a.set(2, 0);
    b.set(2, 0);
    Foreign in_a(a, 7), in_b(b, 7);
    for (int round = 0; round < 3; ++round) EXPECT(a.train(7) == first && b.train(7) == first);
    EXPECT(in_a.result == first && in_b.result == first);
    // Its errors are its own where it catches them, and exceptions where the host does.
    EXPECT(a.fail(0) == 0 && b.fail(0) == 0);
    for (const Plugin* p : {&a, &b}) {
      bool caught = false;
      try {
        p->fail(1);
      } catch (const std::exception& error) {
        caught = std::string(error.what()).find("[mm]") == 0;
      }
      EXPECT(caught);
    }
    a.close();
    b.close();
    in_a.join();
    in_b.join();
  }
  return 0;
}
