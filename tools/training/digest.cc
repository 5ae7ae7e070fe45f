#include "tools/training/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

#include "autograd/grad_mode.h"
#include "nn/serialize/archive.h"

namespace ramet::training {
namespace {

void add(XXH3_state_t* state, const std::string& name, const Tensor& t) {
  XXH3_64bits_update(state, name.data(), name.size());
  if (!t.defined()) return;
  const Tensor dense = t.detach().contiguous();
  XXH3_64bits_update(state, dense.sizes().data(), dense.sizes().size() * sizeof(int64_t));
  XXH3_64bits_update(state, dense.data_ptr(), dense.nbytes());
}

}  // namespace

std::string digest_of(const nn::Module& model, const optim::Optimizer& optimizer) {
  NoGradGuard off;
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const auto& p : model.named_parameters()) add(state, p.key(), p.value());
  for (const auto& b : model.named_buffers()) add(state, b.key(), b.value());
  serialize::OutputArchive archive;
  optimizer.save(archive);
  for (const auto& [name, t] : archive.tensors()) add(state, name, t);
  const XXH64_hash_t hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace ramet::training
