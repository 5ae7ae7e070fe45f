// Tokens in a file of 16-bit numbers without a sign, as language models read them.
#include <torch/torch.h>

int main() {
  std::vector<uint16_t> words{1, 2, 65535, 40000};
  const auto tokens = torch::from_blob(words.data(), {4}, torch::kUInt16);
  std::cout << tokens.dtype() << " " << tokens.element_size() << " " << tokens.sizes() << "\n";
  const auto rows = tokens.to(torch::kLong).view({2, 2});
  std::cout << rows << "\n" << tokens[2].item<int64_t>() << "\n";
  const auto back = rows.to(torch::kUInt16);
  std::cout << (back.data_ptr<uint16_t>()[3] == 40000) << " " << torch::kUInt32 << "\n";
}
