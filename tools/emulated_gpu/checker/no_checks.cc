#include "tools/emulated_gpu/checker/checks.h"

namespace ramet::emulated {

const CheckHooks& checks() {
  static const CheckHooks none;
  return none;
}

}  // namespace ramet::emulated
