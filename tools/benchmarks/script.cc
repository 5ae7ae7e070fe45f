// What a script costs in addition to its operations: chains of 1,000 additions of 16 floats, each
// compared with the same chain in C++. Goals: 150 ns an operation more, 250 ns with an item of a
// list or tuple.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "autograd/ops.h"
#include "nn/script/unit_internal.h"

namespace ramet {
namespace {

constexpr int kLength = 1000, kRounds = 50;

/// The best time of an operation of the chain, in nanoseconds.
template <class F> double time_of(F&& chain) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    chain();
    const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
    best = std::min(best, taken.count() / kLength);
  }
  return best;
}

/// x is added to `operand` again and again; "%" in it is 0 or 1.
std::string chain_of(const std::string& type, const std::string& operand) {
  std::string text = "def f(x: Tensor,\n    y: " + type + ") -> Tensor:\n";
  for (int i = 0; i < kLength; ++i) {
    std::string with = operand;
    if (const size_t at = with.find('%'); at != std::string::npos) with[at] = "01"[i % 2];
    text += "  x" + std::to_string(i) + " = torch.add(" +
            (i == 0 ? std::string("x") : "x" + std::to_string(i - 1)) + ", " + with + ")\n";
  }
  return text + "  return x" + std::to_string(kLength - 1) + "\n";
}

double time_of_script(const std::string& text, const IValue& x, const IValue& y) {
  auto source = std::make_shared<script::Source>();
  source->name = "code/__torch__.py";
  source->text = text;
  const auto unit = std::make_shared<script::CompilationUnit>(
      [source](const std::string&) { return source; }, std::vector<IValue>(), 10, script::Limits());
  script::ScriptFunction& f = *unit->function_named("__torch__.f");
  unit->compile(f);
  unit->report_problems();
  return time_of([&] { script::call(f, {x, y}); });
}

int measure() {
  bool reached = true;
  for (const bool records : {false, true}) {
    const Tensor x = ones({16}).requires_grad_(records), y = ones({16});
    const double direct = time_of([&] {
      Tensor sum = x;
      for (int i = 0; i < kLength; ++i) sum = add(sum, y);
    });
    std::printf("%-34s %8.1f ns\n", records ? "C++, recorded for gradients" : "C++", direct);
    const auto row = [&](const char* name, const std::string& text, const IValue& with,
                         double goal) {
      const double more = time_of_script(text, x, with) - direct;
      reached = reached && more <= goal;
      std::printf("  %-32s %+8.1f ns, goal %.0f%s\n", name, more, goal,
                  more <= goal ? "" : ": MISSED");
    };
    row("script", chain_of("Tensor", "y"), y, 150);
    row("script, an item of a list", chain_of("List[Tensor]", "y[%]"), List<Tensor>{y, y}, 250);
    row("script, an item of a tuple", chain_of("Tuple[Tensor, Tensor]", "(y)[%]"),
        std::make_tuple(y, y), 250);
    row("script, a loop",
        "def f(x: Tensor,\n    y: Tensor) -> Tensor:\n  for i in range(" + std::to_string(kLength) +
            "):\n    x = torch.add(x, y)\n  return x\n",
        y, 150);
  }
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace ramet

int main() { return ramet::measure(); }
