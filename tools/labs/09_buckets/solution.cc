// Lab 9: gradients that leave while the backward still runs. task.md says what to do.
#include <vector>

#include "ramet.h"
#include "tools/labs/09_buckets/lab.h"

namespace lab {
using namespace ramet;
using ramet::labs::Wire;

// Averages gradients over ranks, bucket by bucket.
class Reducer {
  struct Bucket {
    std::vector<size_t> members;
    Tensor flat;     // the members' gradients, one after the other
    size_t missing;  // members with gradients that are not in it yet
  };
  std::vector<Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;
  std::vector<int64_t> offset_;
  Wire& wire_;
  size_t next_ = 0;  // the first bucket that has not left

  // Where the gradient of parameter p lies in its bucket, in the parameter's shape.
  Tensor piece(size_t p) {
    return buckets_[bucket_of_[p]]
        .flat.narrow(0, offset_[p], parameters_[p].numel())
        .view(parameters_[p].sizes());
  }

  void start_next() {
    wire_.start(next_, buckets_[next_].flat);
    ++next_;
  }

  // In the backward: the gradient of parameter p is complete.
  void has_gradient(size_t p) {
    NoGradGuard no_grad;
    piece(p).copy_(parameters_[p].grad());
    // HOLE 1: start every bucket that may leave now. Ranks compare nothing: all of them have to
    // start bucket 0 first, then bucket 1, whichever is full first.
    --buckets_[bucket_of_[p]].missing;
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) start_next();
    // END 1
  }

 public:
  // plan[b]: which parameters are in bucket b.
  Reducer(std::vector<Tensor> parameters, std::vector<std::vector<size_t>> plan, Wire& wire)
      : parameters_(std::move(parameters)), wire_(wire) {
    bucket_of_.resize(parameters_.size());
    offset_.resize(parameters_.size());
    for (size_t b = 0; b < plan.size(); ++b) {
      int64_t size = 0;
      for (const size_t p : plan[b]) {
        bucket_of_[p] = b;
        offset_[p] = size;
        size += parameters_[p].numel();
      }
      buckets_.push_back(
          {plan[b], zeros({size}, parameters_[0].options().requires_grad(false)), plan[b].size()});
    }
    for (size_t p = 0; p < parameters_.size(); ++p)
      parameters_[p].register_post_accumulate_grad_hook(
          [this, p](const Tensor&) { has_gradient(p); });
  }

  // After each backward: all gradients are the means over the ranks, and the next backward may
  // begin.
  void finish() {
    NoGradGuard no_grad;
    // HOLE 2: start the buckets that have not left yet (a parameter that this backward did not use
    // counts as a gradient of zeros). Wait for all. Give each parameter its mean. Be ready for the
    // next backward.
    while (next_ < buckets_.size()) start_next();
    for (size_t b = 0; b < buckets_.size(); ++b) {
      Bucket& bucket = buckets_[b];
      wire_.wait(b);
      bucket.flat.div_(wire_.ranks());
      for (const size_t p : bucket.members) {
        Tensor& grad = parameters_[p].mutable_grad();
        if (!grad.defined()) grad = zeros_like(parameters_[p].detach());
        grad.copy_(piece(p));
      }
      bucket.flat.zero_();
      bucket.missing = bucket.members.size();
    }
    next_ = 0;
    // END 2
  }
};

}  // namespace lab
