#include "tools/training/digest.h"

#include <memory>

#include "nn/serialize/archive.h"
#include "tools/ledger/hash.h"
#define XXH_INLINE_ALL
#include "xxhash.h"

namespace ramet::training {

std::string digest_of(const nn::Module& model, const optim::Optimizer& optimizer) {
  serialize::OutputArchive archive, model_part, optimizer_part;
  model.save(model_part);
  optimizer.save(optimizer_part);
  archive.write("model", model_part);
  archive.write("optimizer", optimizer_part);
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset(state.get());
  archive.save_to([&](const void* data, size_t bytes) {
    XXH3_64bits_update(state.get(), data, bytes);
    return bytes;
  });
  return ledger::hex(XXH3_64bits_digest(state.get()));
}

}  // namespace ramet::training
