// Parts of nets that compute their activations again, by a backward inside the backward.
#pragma once
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/function.h"
#include "nn/module/module.h"
#include "parallel/distributed/ddp/data_parallel.h"

namespace ramet::distributed {

// Part of a net, and whether it says what its backward leads to.
struct Piece {
  std::function<Tensor(const Tensor&)> run;
  std::vector<Tensor> leads_to;
  bool says = false;
};

// Keeps only its input.
struct Again : autograd::Function<Again> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Piece* piece) {
    ctx->save_for_backward({x});
    ctx->saved_data["piece"] = reinterpret_cast<int64_t>(piece);
    if (piece->says) ctx->mark_differentiated(piece->leads_to);
    return piece->run(x);
  }
  static tensor_list backward(autograd::AutogradContext* ctx, tensor_list gradients) {
    const auto* piece = reinterpret_cast<const Piece*>(ctx->saved_data["piece"].toInt());
    const Tensor x = ctx->get_saved_variables()[0].detach().set_requires_grad(true);
    {
      const AutoGradMode on(true);
      autograd::backward({piece->run(x)}, {gradients[0]});
    }
    return {x.grad(), Tensor()};
  }
};

enum class How : uint8_t { plain, again, again_and_says };

// Graphs refer to pieces, and what a replica's forward writes to its module does not stay.
inline const Piece* kept(Piece piece) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::deque<Piece>;
  const std::lock_guard lock(*mutex);
  return &all->emplace_back(std::move(piece));
}

inline Tensor part(How how, Piece piece, const Tensor& x) {
  if (how == How::plain) return piece.run(x);
  piece.says = how == How::again_and_says;
  return Again::apply(x, kept(std::move(piece)));
}
inline constexpr How kHows[] = {How::again, How::again_and_says};

// A step of gradient descent, after which there are no gradients.
inline void descend(nn::Module& net) {
  const NoGradGuard off;
  for (const Tensor& p : net.parameters()) {
    ASSERT_TRUE(p.grad().defined());
    p.sub_(p.grad(), 0.1);
  }
  net.zero_grad();
}

inline DdpOptions buckets_of(int64_t bytes) {
  DdpOptions o;
  o.bucket_bytes = bytes;
  return o;
}

}  // namespace ramet::distributed
