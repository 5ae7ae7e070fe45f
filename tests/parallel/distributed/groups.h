// Groups of a test: every test program says how its ranks are made.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "parallel/distributed/group/process_group.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {

using Group = std::shared_ptr<ProcessGroup>;
using Body = std::function<void(const Group& group)>;
using std::chrono::seconds;

/// Runs a body on each rank of a fresh group, ranks being threads of this process.
void with_groups(int ranks, Milliseconds timeout, const Body& body);

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

/// Every rank has the bits of rank 0's. All ranks call it.
inline void expect_equal_on_all_ranks(const Group& g, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_TRUE(tensors[i].defined()) << i;
    Tensor first = tensors[i].detach().clone();
    g->broadcast(first, 0).wait();
    EXPECT_TRUE(same_bits(first, tensors[i].detach())) << i;
  }
}

/// The ranks' error texts after a mistake that all of them made in a backward. The quickest rank
/// names it, and may have ended what the others were still waiting for.
inline void expect_mistake_of_all(const std::vector<std::string>& said, const std::string& part) {
  bool named = false;
  for (const std::string& text : said) {
    named = named || contains(text, part);
    EXPECT_TRUE(contains(text, part) || contains(text, ": a backward failed on this rank")) << text;
  }
  EXPECT_TRUE(named) << "nobody said: " << part;
}

/// The sum of the ranks' tensors on the host in the documented order, written down once more.
/// 16-bit types are added in float and rounded once; bool is "or".
inline Tensor summed(std::vector<Tensor> parts, bool tree) {
  const ScalarType dtype = parts[0].scalar_type();
  const bool wide = dtype == kHalf || dtype == kBFloat16 || dtype == kBool;
  for (Tensor& t : parts) t = wide ? t.to(kFloat) : t;
  if (!tree) {
    Tensor sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
    return dtype == kBool ? sum.ne(0) : sum.to(dtype);
  }
  size_t leaves = 1;
  while (leaves < parts.size()) leaves *= 2;
  parts.resize(leaves);
  while (parts.size() > 1) {
    std::vector<Tensor> next;
    for (size_t i = 0; i < parts.size(); i += 2)
      next.push_back(!parts[i + 1].defined() ? parts[i] : parts[i] + parts[i + 1]);
    parts = next;
  }
  return dtype == kBool ? parts[0].ne(0) : parts[0].to(dtype);
}

}  // namespace ramet::distributed
