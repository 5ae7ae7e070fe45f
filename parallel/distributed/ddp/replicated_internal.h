// Finds modules inside others that replicate() was applied to.
#pragma once
#include <vector>

#include "nn/module/module.h"

namespace ramet::distributed::detail {

class DdpCore;

/// The replicated modules inside `module`, without itself; children before their parents.
std::vector<DdpCore*> replicated_below(const nn::Module& module);

}  // namespace ramet::distributed::detail
