// Names outside the front end: of at, of devices that are not here, of switches, and of the
// standard headers that LibTorch brings.
#include <torch/torch.h>

template <class T> typename at::scalar_value_type<T>::type lowest() {
  return std::numeric_limits<typename at::scalar_value_type<T>::type>::lowest();
}

int main() {
  const auto t = torch::zeros({3, 2, 1});
  std::cout << at::size(t, 0) << " " << at::size(t, -1) << " "
            << at::_unsafe_view(t, {at::size(t, 0), at::size(t, 1)}).sizes() << "\n";
  std::cout << t.mT().sizes() << " " << t.mH().sizes() << " " << t.adjoint().sizes() << " "
            << at::adjoint(t).sizes() << "\n";

  auto& context = at::globalContext();
  context.setAllowFP16ReductionCuBLAS(true);
  context.setAllowBF16ReductionCuBLAS(false, false);
  context.setAllowFP16AccumulationCuBLAS(false);
  std::cout << (context.allowFP16ReductionCuBLAS() ==
                at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK)
            << (context.allowBF16ReductionCuBLAS() ==
                at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK)
            << "\n";

  torch::Device device(torch::kCPU);
  if (torch::mps::is_available()) device = torch::Device(torch::kMPS);
  std::cout << device << " " << device.is_mps() << " " << torch::Device(torch::kMPS) << " "
            << torch::Device(torch::kMPS, 0) << " " << torch::Device("mps").is_mps() << " "
            << torch::Device(torch::kXPU) << " " << torch::Device(torch::kHIP) << "\n";

  std::cout << lowest<float>() << " " << lowest<std::complex<double>>() << "\n";

  const auto noise = torch::_sample_dirichlet(torch::full({2, 7}, 0.3));
  std::cout << noise.sizes() << " " << (noise.sum(-1) - 1).abs().lt(1e-5).all().item<bool>() << " "
            << noise.ge(0).all().item<bool>() << "\n";

  std::list<torch::Tensor> list{torch::zeros(1), torch::ones(1)};
  std::unordered_set<int> set{3};
  std::unordered_map<std::type_index, int> types{{typeid(int), 1}};
  std::condition_variable condition;
  std::bitset<4> bits(5);
  timeval now;
  gettimeofday(&now, nullptr);
  usleep(0);
  std::cout << list.size() << " " << set.size() << " " << types.size() << " " << bits.count() << " "
            << (now.tv_sec > 0) << " " << std::abs(std::complex<double>(3, 4)) << "\n";
#if __cplusplus >= 202002L
  const int numbers[] = {1, 2, 3};
  std::cout << std::span(numbers).size() << std::ranges::size(numbers) << "\n";
#else
  std::cout << "33\n";
#endif
}
