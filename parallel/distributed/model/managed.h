// Which modules fully_shard() manages: replicate() passes them over.
#pragma once
#include "nn/module/module.h"

namespace ramet {
namespace distributed {

/// Was fully_shard() applied to this module itself?
RAMET_API bool is_fully_sharded(const nn::Module& m);
/// For fully_shard(). The module must be owned by a shared_ptr; when it goes, so does the mark.
RAMET_API void set_fully_sharded(nn::Module& m, bool on);

}  // namespace distributed
}  // namespace ramet
