#include "parallel/distributed/stages/comm_stage.h"

namespace ramet::distributed {

CommStage::~CommStage() = default;
StageNext::~StageNext() = default;
void CommStage::attach(const StageSetting&) {}
std::map<std::string, Tensor> CommStage::state() const { return {}; }
void CommStage::load_state(const std::map<std::string, Tensor>& state) {
  RAMET_CHECK(state.empty(), "load_state", description(), ": got '", state.begin()->first,
              "', expected nothing: it remembers nothing");
}

}  // namespace ramet::distributed
