#include "runtime/cuda/emulated/checks.h"

namespace ramet::emulated {

const CheckHooks& checks() {
  static const CheckHooks none;
  return none;
}

}  // namespace ramet::emulated
