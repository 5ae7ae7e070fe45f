// Lab 9: what carries buckets, and what the grader calls.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ramet.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

/// What carries gradients between ranks.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int ranks() const = 0;
  /// Begins to replace `flat`, one-dimensional, by its sum over all ranks, concurrently with what
  /// this thread does next. Every rank has to start the same buckets in the same order.
  virtual void start(size_t bucket, const Tensor& flat) = 0;
  /// Returns when the sum is there. Each bucket that was started is waited for.
  virtual void wait(size_t bucket) = 0;
};

struct BucketsLab {
  /// A reducer for these parameters, plan[b] being the parameters of bucket b; returns its
  /// finish().
  std::function<void()> (*make)(const std::vector<Tensor>& parameters,
                                const std::vector<std::vector<size_t>>& plan, Wire& wire);
};
void grade(const BucketsLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space)                                                                          \
  ramet::labs::BucketsLab {                                                                        \
    [](const std::vector<ramet::Tensor>& parameters, const std::vector<std::vector<size_t>>& plan, \
       ramet::labs::Wire& wire) {                                                                  \
      auto reducer = std::make_shared<space::Reducer>(parameters, plan, wire);                     \
      return std::function<void()>([reducer] { reducer->finish(); });                              \
    }                                                                                              \
  }
