// Parts of tensors: a maze is written, read and counted. Styles: index() and index_put_() with
// Slice, None, Ellipsis, masks and tensors; operator[], assignment to parts. select, narrow, slice,
// chunk, gather, scatter, masked_fill, where, cat, stack, views and permutations.
#include <torch/torch.h>

#include <iostream>
#include <tuple>
#include <vector>

using namespace torch::indexing;

// A maze: 1 where a wall is.
torch::Tensor make_maze() {
  auto maze = torch::zeros({6, 8}, torch::kInt32);
  maze.index_put_({0, Slice()}, 1);
  maze.index_put_({-1}, 1);
  maze.index_put_({Slice(), 0}, 1);
  maze.index_put_({"...", -1}, 1);
  maze.index_put_({Slice(2, 4), Slice(2, None, 2)}, 1);
  maze[4][1] = 1;
  return maze;
}

// Distances from a cell, by waves.
torch::Tensor distances(const torch::Tensor& maze, int64_t row, int64_t column) {
  auto reached = torch::zeros_like(maze).to(torch::kBool);
  auto distance = torch::full(maze.sizes(), -1, torch::kInt64);
  reached[row][column] = true;
  for (int64_t step = 0; step < 50; ++step) {
    distance.masked_fill_(reached & (distance < 0), step);
    auto next = reached.clone();
    next.index({Slice(1, None)}) |= reached.index({Slice(None, -1)});
    next.index({Slice(None, -1)}) |= reached.index({Slice(1, None)});
    next.index({Slice(), Slice(1)}) |= reached.index({Slice(), Slice(0, -1)});
    next.index({Slice(), Slice(None, -1)}) |= reached.index({Slice(), Slice(1, None)});
    next &= maze == 0;
    if (torch::equal(next, reached)) break;
    reached = next;
  }
  return distance;
}

int main() {
  const auto maze = make_maze();
  std::cout << maze << "\n" << distances(maze, 1, 1) << "\n";
  std::cout << (maze == 0).nonzero().slice(0, 0, 4) << "\n" << maze.sum(0) << "\n";

  auto t = torch::arange(24).view({2, 3, 4});
  std::cout << t.index({1, 2, 3}).item<int64_t>() << " " << t[0][1][2].item<int>() << "\n";
  std::cout << t.index({Slice(), 1, Slice(None, None, 2)}) << "\n"
            << t.index({Ellipsis, 0}) << "\n";
  std::cout << t.index({None, 0, Ellipsis, None}).sizes() << t.index({Slice(1, 2), "..."}).sizes()
            << t.index({true}).sizes() << "\n";
  std::cout << t.index({torch::tensor({1, 0}), torch::tensor({2, 0})}) << "\n";
  std::cout << t.index({Slice(), torch::tensor({2, 0}), 1}) << "\n";
  std::cout << t.index({t > 20}) << "\n" << t.index({t.sum({1, 2}) > 100}).sizes() << "\n";

  // Writing.
  auto w = torch::zeros({3, 4});
  w[0] = 1;
  w[1][2] = 5.5;
  w.index({2}) = torch::tensor({1.f, 2.f, 3.f, 4.f});
  w.index({Slice(), 3}) += 10;
  w.index_put_({torch::tensor({0, 0, 1}), torch::tensor({0, 0, 1})}, torch::tensor({7.f, 7.f, 8.f}),
               /*accumulate=*/true);
  w.index_put_({w > 10}, -1.0);
  w.slice(/*dim=*/1, 1, 3).mul_(2);
  w.narrow(0, 2, 1).fill_(9);
  std::cout << w << "\n";
  w.select(1, 0).zero_();
  w.diagonal() += 100;
  std::cout << w << "\n";
  w.index({Ellipsis, 1}).fill_(0.5);
  w.masked_fill_(w.eq(0), -2);
  std::cout << w << "\n"
            << w.masked_select(w > 50) << "\n"
            << torch::where(w > 0, w, -w).sum(1) << "\n";

  // Gather and scatter: one-hot there and back.
  const auto labels = torch::tensor({2, 0, 3, 1});
  auto hot = torch::zeros({4, 4}).scatter_(1, labels.unsqueeze(1), 1);
  std::cout << hot << "\n" << hot.argmax(1) << "\n";
  std::cout << torch::gather(t[0], /*dim=*/1, torch::tensor({{0, 3}, {1, 1}, {2, 0}})) << "\n";
  std::cout << torch::zeros({3}).scatter_add_(0, torch::tensor({0, 2, 2, 0}),
                                              torch::ones({4}) * 1.5)
            << "\n";
  std::cout << torch::zeros({3, 2}).index_add_(0, torch::tensor({2, 0}), torch::ones({2, 2}))
            << "\n";
  std::cout << t.index_select(2, torch::tensor({3, 0})).sizes() << t.take(torch::tensor({0, 23}))
            << "\n";
  std::cout << torch::one_hot(labels, 5).sum(0) << "\n";

  // Cutting and joining.
  const auto pieces = torch::arange(7).split(3);
  for (const auto& piece : pieces) std::cout << piece.numel() << " ";
  for (const auto& piece : t.chunk(2, /*dim=*/2)) std::cout << piece.sizes() << " ";
  for (const auto& piece : torch::split_with_sizes(t, {1, 2}, 1)) std::cout << piece.sizes() << " ";
  std::cout << torch::unbind(t, 1).size() << "\n";
  std::cout << torch::cat({t[0], t[1]}, 1).sizes() << torch::stack({t[0], t[1]}, -1).sizes()
            << torch::hstack({t[0], t[1]}).sizes() << torch::vstack({t[0], t[1]}).sizes() << "\n";
  std::vector<torch::Tensor> columns;
  for (int64_t i = 0; i < t.size(-1); i++) columns.emplace_back(t.select(-1, i).flatten());
  std::cout << torch::stack(columns).equal(t.reshape({6, 4}).t()) << "\n";

  // Views and orders.
  std::cout << t.permute({2, 0, 1}).sizes() << t.permute({2, 0, 1}).strides()
            << t.transpose(0, 2).is_contiguous() << "\n";
  std::cout << t.view({-1, 6}).sizes() << t.flatten(0, 1).sizes()
            << t.unsqueeze(0).expand({5, -1, -1, -1}).sizes() << t.movedim(0, -1).sizes()
            << t.squeeze().dim() << "\n";
  std::cout << torch::flip(t[0], {1}) << "\n"
            << t[0].repeat({1, 2}).sizes() << t.unfold(2, 2, 1).sizes() << "\n";
  auto [values, where] = torch::max(t.to(torch::kFloat), 2);
  std::cout << values << where << "\n";
  torch::Tensor low, at;
  std::tie(low, at) = torch::min(t[1], /*dim=*/0, /*keepdim=*/true);
  std::cout << low << at << "\n"
            << t.any().item<bool>() << (t > 0).all().item<bool>() << t.ndimension() << t.size(1)
            << "\n";
  std::cout << torch::clamp(torch::tensor({0.5, 1.5, 1.0}), 1 - 0.2, 1 + 0.2)
            << torch::min(torch::tensor({1., 3.}), torch::tensor({2., 2.})) << "\n";
  std::cout << torch::nn::functional::one_hot(torch::tensor({1, 0}), 2)
            << torch::eq(torch::tensor({1, 2}), 2).to(torch::kLong) << "\n";
  return 0;
}
