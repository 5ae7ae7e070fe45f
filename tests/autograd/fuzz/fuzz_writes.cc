// Steps that write in place.
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_functions.h"
#include "tests/autograd/fuzz/fuzz_programs.h"
#include "tests/error_text.h"

namespace ramet {
namespace fuzz {

bool Program::writable(const Var& x, bool no_grad) {
  if (overlaps_itself(x.w)) return false;
  // A part of memory that as a whole is a detached view with overlaps. As in LibTorch, the write is
  // allowed, and its backward is refused or counts shared elements twice. Nothing to compare.
  if (x.w.history->overlaps) return false;
  // Mostly programs with a backward that works.
  if (x.w.memory->saved && !tape_.one_in(12)) return false;
  if (no_grad || !x.w.history->leaf) return true;
  const std::string text = error_of([&] { x.t.add_(1); });
  if (!contains(text, "leaf Variable that requires grad")) RC_FAIL("writing a leaf: " + text);
  return false;
}

void Program::write_inplace(bool no_grad) {
  const Var x = pick();
  if (!writable(x, no_grad)) return;
  std::optional<NoGradGuard> guard;
  if (no_grad) guard.emplace();
  std::vector<Dual> v = read(x.w, x.w.sizes);
  const int64_t kind = tape_.below(9);
  bool other_grad = false, saves_result = false;
  std::string text;
  const auto target = [&](const char* op) {
    text = (no_grad ? "no_grad: v" : "v") + std::to_string(x.number) + "." + op;
  };
  const bool was = x.w.memory->saved;
  if (kind == 0) {
    target("fill_(0.5)");
    x.t.fill_(0.5);
    v.assign(v.size(), number(0.5));
  } else if (kind == 1) {
    target("mul_(-0.5)");
    x.t.mul_(-0.5);
    for (Dual& e : v) e = e * number(-0.5);
  } else if (kind == 2) {
    target("masked_fill_(0.25)");
    x.t.masked_fill_(mask_of(x.w.sizes), 0.25);
    for (size_t i = 0; i < v.size(); ++i)
      if (marked(i)) v[i] = number(0.25);
  } else if (kind == 3 || kind == 4) {
    const Unary& f = tape_.one_of(kUnary);
    if (f.kink && near_kink(v)) return;
    target(f.name);
    text += "_";
    (x.t.*f.in_place)();
    v = mapped(f, v);
    saves_result = f.keeps == Keeps::kOutput && x.w.grad() && !no_grad;
  } else {
    const Var* found = partner(x, true);
    if (!found) return;
    const Var y = *found;
    const std::vector<Dual> b = read(y.w, x.w.sizes);
    const bool copies = kind == 5 || kind == 6;
    other_grad = y.w.grad() && !no_grad;
    const bool ga = x.w.grad() && !no_grad;
    static const char* const names[] = {"copy_", "copy_", "add_(0.5)", "mul_"};
    target(names[kind - 5]);
    text += " v" + std::to_string(y.number);
    if (copies) x.t.copy_(y.t);
    else if (kind == 7) x.t.add_(y.t, 0.5);
    else x.t.mul_(y.t);
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = copies ? b[i] : kind == 7 ? v[i] + b[i] * number(0.5) : v[i] * b[i];
    if (kind == 8 && ga) {
      save(y.w);
      overwritten_ |= x.w.memory == y.w.memory;  // it needs what it overwrote
    }
  }
  overwritten_ |= was;
  write(x.w, v, !no_grad);
  x.w.history->grad |= other_grad;
  if (saves_result) save(x.w);
  say(text);
  if (largest(v) <= 1) return;
  say("... mul_(0.0625)");
  overwritten_ |= x.w.memory->saved;
  x.t.mul_(0.0625);
  for (Dual& e : v) e = e * number(0.0625);
  write(x.w, v, !no_grad);
}

void Program::turn(bool no_grad) {
  Var& x = pick();
  // A leaf's gradient has the shape of the leaf.
  if (x.w.history->leaf || x.t.dim() > 4 || !writable(x, no_grad)) return;
  std::optional<NoGradGuard> guard;
  if (no_grad) guard.emplace();
  const int64_t rank = x.t.dim(), d = tape_.below(rank + 1), e = tape_.below(rank + 1);
  const bool turns = d < rank && e < rank;
  if (turns) x.t.transpose_(d, e);
  else x.t.unsqueeze_(d);
  Shape sizes(x.t.sizes().begin(), x.t.sizes().end());
  x.w = view_of(x.w, sizes, [=](Shape i) {
    if (turns) std::swap(i[static_cast<size_t>(d)], i[static_cast<size_t>(e)]);
    else i.erase(i.begin() + d);
    return i;
  });
  overwritten_ |= x.w.memory->saved;
  say((no_grad ? "no_grad: v" : "v") + std::to_string(x.number) +
      (turns ? ".transpose_ " : ".unsqueeze_ ") + std::to_string(d) + " " + std::to_string(e));
}

}  // namespace fuzz
}  // namespace ramet
