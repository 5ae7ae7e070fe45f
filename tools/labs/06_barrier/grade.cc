// Uses the emulated GPU, which knows which thread waits at which barrier, for sizes of every kind.
#include "tools/labs/06_barrier/lab.h"
#include "tools/labs/gpu.h"

namespace ramet::labs {
namespace {

std::string run(const BarrierLab& answer, int n) {
  std::vector<float> x(size_t(n) + 1);  // one more, so that there is memory for n = 0
  double sum = 0;
  for (size_t i = 0; i < size_t(n); ++i) sum += x[i] = float(1 + (i * 37) % 19);
  std::vector<double> want(x.size());
  for (size_t i = 0; i < size_t(n); ++i) want[i] = x[i] / sum;
  for (const Order& order : orders()) {
    fresh_gpu(order);
    const std::string run = words("threads in the order \"", order.name, "\"");
    const DeviceFloats in(x), out(std::vector<float>(x.size(), 0.0f));
    expect_no_report(answer.normalise(in, out, n), run);
    expect_numbers(out.host(), want, 1e-6, run);
  }
  return words("right in ", orders().size(), " orders of threads");
}

}  // namespace

void grade(const BarrierLab& answer, Report& report) {
  const std::string where =
      "a barrier is for all threads of the block, or for none of them: which of them come here, "
      "and "
      "where are the others? chapter 11, and the small example in task.md";
  for (const int n : {64, 128, 100, 3, 0, 1000})
    report.step(words("n = ", n), where, [&] { return run(answer, n); });
}

}  // namespace ramet::labs
