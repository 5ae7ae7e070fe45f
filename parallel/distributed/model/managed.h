// Marks the modules that fully_shard() manages: replicate() skips them.
#pragma once
#include "nn/module/module.h"

namespace ramet {
namespace distributed {

/// Was fully_shard() applied to this module itself?
RAMET_API bool is_fully_sharded(const nn::Module& m);
/// For fully_shard(). A shared_ptr must own the module; the mark ends with the module.
RAMET_API void set_fully_sharded(nn::Module& m, bool on);

}  // namespace distributed
}  // namespace ramet
