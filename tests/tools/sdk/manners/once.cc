// A library of the kind of PyTorch and ONNX Runtime: it has used std::call_once, and with it libstdc++'s thread-local variables.
#include <mutex>

static std::once_flag flag;
static int times;

extern "C" int once() {
  std::call_once(flag, [] { ++times; });
  return times;
}
