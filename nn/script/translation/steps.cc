// Branches and loops, read off a program's jumps.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;

class StepReader {
 public:
  explicit StepReader(const Program& program) : instructions_(program.instructions) {
    for (size_t i = 0; i < instructions_.size(); ++i)
      if (instructions_[i].code == Code::kJump && instructions_[i].extra <= i)
        loop_ends_[instructions_[i].extra] = i;
  }

  std::optional<std::vector<Step>> read() {
    std::vector<Step> steps = read(0, instructions_.size(), nullptr);
    if (!nests_) return std::nullopt;
    return steps;
  }

 private:
  struct Loop {
    size_t start, out, next;  // where `break` and `continue` go
  };

  // `inside`: the loop that starts at `low` has been read as such. `exit`: of the inside of a
  // `with`, gets the place after its end.
  std::vector<Step> read(size_t low, size_t high, const Loop* loop, bool inside = false,
                         size_t* exit = nullptr) {
    std::vector<Step> steps;
    size_t i = low;
    while (nests_ && i < high) {
      const auto end = loop_ends_.find(i);
      if (end != loop_ends_.end() && !(inside && i == low)) {
        if (end->second >= high) return give_up();
        steps.push_back(read_loop(i, end->second));
        i = end->second + 1;
        continue;
      }
      const Instruction& at = instructions_[i];
      const size_t to = at.extra;
      Step step;
      step.at = i;
      if (at.code == Code::kEnter) {
        step.kind = Step::Kind::kWith;
        size_t next = high;  // where nothing reaches the end of the block
        step.body = read(i + 1, high, loop, false, &next);
        i = next;
        steps.push_back(std::move(step));
        continue;
      }
      if (at.code == Code::kExit) {
        ++i;
        if (!exit) continue;  // a return, break or continue follows, and leaves the block
        *exit = i;
        return steps;
      }
      if (at.code == Code::kJumpUnless) {
        if (to <= i || to > high) return give_up();
        step.kind = Step::Kind::kIf;
        const Instruction& last = instructions_[to - 1];
        const bool has_other =
            to - 1 > i && last.code == Code::kJump && last.extra >= to && last.extra <= high;
        step.body = read(i + 1, has_other ? to - 1 : to, loop);
        i = to;
        if (has_other) {
          step.other = read(to, last.extra, loop);
          i = last.extra;
        }
        steps.push_back(std::move(step));
        continue;
      }
      ++i;
      if (at.code == Code::kJumpUnlessMore) return give_up();
      if (at.code == Code::kJump) {
        if (to == i) continue;
        if (!loop || (to != loop->out && to != loop->next)) return give_up();
        step.kind = to == loop->out ? Step::Kind::kBreak : Step::Kind::kContinue;
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

  Step read_loop(size_t start, size_t end) {
    Step step;
    size_t exit = start;
    while (exit < end &&
           !(decides(instructions_[exit].code) && instructions_[exit].extra == end + 1))
      ++exit;
    step.at = exit;
    if (exit == end) {
      nests_ = false;
      return step;
    }
    const bool counts = instructions_[exit].code == Code::kJumpUnlessMore;
    step.kind = counts ? Step::Kind::kFor : Step::Kind::kWhile;
    // A counter's step and the jump back end the body.
    const size_t body_end = counts ? end - 1 : end;
    const Loop loop{start, end + 1, counts ? body_end : start};
    if (counts && (exit != start || instructions_[body_end].code != Code::kStep)) nests_ = false;
    step.head = read(start, exit, nullptr, /*inside=*/true);
    step.body = read(exit + 1, body_end, &loop);
    return step;
  }

  static bool decides(Code code) {
    return code == Code::kJumpUnless || code == Code::kJumpUnlessMore;
  }
  std::vector<Step> give_up() {
    nests_ = false;
    return {};
  }

  const std::vector<Instruction>& instructions_;
  std::map<size_t, size_t> loop_ends_;  // the last jump back to an instruction
  bool nests_ = true;
};

}  // namespace

std::optional<std::vector<Step>> structure_of(const Program& program) {
  return StepReader(program).read();
}

}  // namespace ramet::script
