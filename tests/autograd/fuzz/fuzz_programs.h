// Random programs of views, in-place operations, copies and arithmetic on small float64 tensors.
// Each runs on tensors and on their reference versions (fuzz_twin.h).
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "tests/autograd/fuzz/fuzz_twin.h"
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

inline constexpr int64_t kMaxElements = 48;  // of one tensor
inline Shape shape_of(const Tensor& t) { return t.sizes().vec(); }

/// How many programs ended in which way: this shows a test that never compares anything.
struct Outcomes {
  int compared = 0;  // gradients compared
  int refused = 0;   // a saved value was overwritten, and backward refused
  int constant = 0;  // nothing that requires grad
};

/// Above 1: too large for one tolerance.
double largest(const std::vector<Dual>& values);

class Program {
 public:
  explicit Program(Tape& tape) : tape_(tape) {}
  /// Runs the whole tape, then compares all values, and the gradients of a weighted sum of
  /// everything by every leaf. It compares those of backward, of grad(), of backward with
  /// retain_graph and again, and of grad() with create_graph. Fails as RC_ASSERT does.
  void run(Outcomes& outcomes);

 private:
  struct Var {
    Tensor t;
    Twin w;
    int number = 0;
  };
  void step();
  void push_new();
  void push_view();
  void push_unary();
  void push_binary();
  void push_joined();
  void push_reduced();
  void push_alias();
  void write_inplace(bool no_grad);
  /// Another geometry in place.
  void turn(bool no_grad);

  Var& pick() {
    return vars_[static_cast<size_t>(tape_.below(static_cast<int64_t>(vars_.size())))];
  }
  /// A variable that broadcasts with x; into x's own shape if `into`. Null where none was found.
  Var* partner(const Var& x, bool into);
  void push(const std::string& text, Tensor t, Twin w);
  void push(const std::string& text, Tensor t, const Shape& sizes, const std::vector<Dual>& values,
            bool grad);
  void say(const std::string& text) { text_ << "  " << text << "\n"; }
  /// Marks that a recorded operation needs the values of x from here on.
  void save(const Twin& x) { x.memory->saved = true; }
  bool writable(const Var& x, bool no_grad);
  void check_values();
  void check_gradients(Outcomes& outcomes);
  void compare(const char* what, const std::vector<Tensor>& got, double factor);

  Tape& tape_;
  std::vector<Var> vars_;
  struct Leaf {
    Tensor t;
    size_t first;  // slot of its first element
    int number;
  };
  std::vector<Leaf> leaves_;
  Slope total_{};  // of the weighted sum
  size_t slots_ = 0;
  int next_ = 0;
  bool overwritten_ = false;  // a saved value was overwritten
  std::ostringstream text_;
};

}  // namespace fuzz
}  // namespace ramet
