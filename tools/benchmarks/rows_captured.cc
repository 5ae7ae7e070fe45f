// The training steps of rows_models.cc, captured.
#include <memory>
#include <vector>

#include "tools/benchmarks/arms.h"
#include "tools/benchmarks/rows_models.h"

namespace {

std::unique_ptr<ramet::Captured<std::function<torch::Tensor()>>> captured;
void (*drop_model)();

void run(long n) {
  if (!captured) captured = std::make_unique<decltype(captured)::element_type>(model_step);
  while (n-- > 0) model_out = (*captured)();
}
void release() {
  captured.reset();
  drop_model();
}

}  // namespace

BenchArm open_captured_arm(int threads) {
  const BenchArm eager = open_models_arm(threads);
  static std::vector<BenchRow> rows(eager.rows, eager.rows + kModelSteps);
  drop_model = rows[0].release;
  for (BenchRow& row : rows) row.run = run, row.release = release;
  return {"captured", rows.data(), kModelSteps};
}
