// Numbers between C++ and tensors: a small image filter. Styles: from_blob with and without strides
// and deleter, accessors, packed accessors, data_ptr, data<T>. C arrays, std::vector both ways,
// memcpy, options of new tensors, contiguous().
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <numeric>
#include <vector>

struct Image {
  int width, height;
  std::vector<uint8_t> bytes;  // rows of RGB
};

Image gradient(int width, int height) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c)
        image.bytes.push_back(static_cast<uint8_t>((x * 40 + y * 20 + c * 10) % 256));
    }
  }
  return image;
}

// Height, width, channels of bytes to channels, height, width between 0 and 1.
torch::Tensor to_tensor(Image& image) {
  auto bytes = torch::from_blob(image.bytes.data(), {image.height, image.width, 3}, torch::kByte);
  return bytes.permute({2, 0, 1}).to(torch::kF32).div(255).clone(torch::MemoryFormat::Contiguous);
}

Image to_image(const torch::Tensor& tensor) {
  const auto bytes =
      tensor.mul(255).add(0.5).clamp(0, 255).to(torch::kU8).permute({1, 2, 0}).contiguous();
  Image image{static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(0)),
              std::vector<uint8_t>(bytes.numel())};
  std::memcpy(image.bytes.data(), bytes.data_ptr(), bytes.numel() * bytes.element_size());
  return image;
}

template <typename T> std::vector<T> to_vector(const torch::Tensor& tensor) {
  const auto flat = tensor.contiguous().view({-1});
  return std::vector<T>(flat.data_ptr<T>(), flat.data_ptr<T>() + flat.numel());
}

// The mean of the neighbours, by hand.
torch::Tensor blur(const torch::Tensor& image) {
  auto result = torch::zeros_like(image);
  const auto in = image.accessor<float, 3>();
  auto out = result.accessor<float, 3>();
  for (int64_t c = 0; c < in.size(0); ++c) {
    for (int64_t y = 0; y < in.size(1); ++y) {
      for (int64_t x = 0; x < in.size(2); ++x) {
        float sum = 0;
        int count = 0;
        for (int64_t j = std::max<int64_t>(y - 1, 0); j <= std::min(y + 1, in.size(1) - 1); ++j) {
          for (int64_t i = std::max<int64_t>(x - 1, 0); i <= std::min(x + 1, in.size(2) - 1); ++i) {
            sum += in[c][j][i];
            ++count;
          }
        }
        out[c][y][x] = sum / count;
      }
    }
  }
  return result;
}

template <typename Accessor> double trace_of(Accessor matrix) {
  double sum = 0;
  for (int i = 0; i < std::min(matrix.size(0), matrix.size(1)); ++i) sum += matrix[i][i];
  return sum;
}

int main() {
  auto image = gradient(5, 4);
  const auto tensor = to_tensor(image);
  std::cout << tensor[0] << "\n" << blur(tensor)[1] << "\n";
  const auto back = to_image(tensor);
  std::cout << std::boolalpha << (back.bytes == image.bytes) << " " << back.width << "x"
            << back.height << "\n";

  // Memory that is shared, and memory that is not.
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  auto shared = torch::from_blob(numbers, {2, 3});
  auto copied = shared.clone();
  numbers[0] = 100;
  shared[1][2] = -6;
  std::cout << shared << copied << numbers[5] << "\n";
  std::cout << torch::from_blob(numbers, {3, 2}, /*strides=*/{1, 3}) << "\n";
  {
    auto* owned = new double[3]{0.5, 1.5, 2.5};
    auto with_deleter = torch::from_blob(
        owned, {3},
        [](void* p) {
          std::cout << "freed\n";
          delete[] static_cast<double*>(p);
        },
        torch::TensorOptions().dtype(torch::kFloat64));
    std::cout << with_deleter.sum().item<double>() << "\n";
  }

  // Vectors and arrays to tensors.
  std::vector<float> floats(4);
  std::iota(floats.begin(), floats.end(), 0.5f);
  std::cout << torch::tensor(floats) << torch::tensor(std::vector<int64_t>{7, 8}).dtype() << "\n";
  std::vector<std::vector<float>> rows{{1, 2}, {3, 4}, {5, 6}};
  auto matrix = torch::empty({static_cast<int64_t>(rows.size()), 2});
  for (size_t i = 0; i < rows.size(); ++i)
    matrix.slice(0, i, i + 1) = torch::from_blob(rows[i].data(), {1, 2}, torch::kFloat);
  std::cout << matrix << "\n";
  const std::array<int, 3> array{4, 5, 6};
  std::cout << torch::tensor(torch::ArrayRef<int>(array)) << torch::tensor({{1, 2}, {3, 4}}).sizes()
            << torch::tensor(floats, torch::kDouble).dtype() << "\n";

  // And back.
  std::cout << to_vector<float>(matrix.t()) << "\n" << to_vector<int64_t>(torch::arange(3)) << "\n";
  auto ints = torch::arange(4, torch::kInt32);
  int* raw = ints.data_ptr<int>();
  std::for_each(raw, raw + ints.numel(), [](int& i) { i *= i; });
  std::cout << ints << *ints.const_data_ptr<int>() << ints.mutable_data_ptr<int>()[3] << "\n";
  for (int64_t i = 0; i < ints.size(0); ++i)
    std::cout << ints[i].item<int>() << (i + 1 < ints.size(0) ? ", " : "\n");

  // Tokens in numbers of 16 bits without a sign, as language models read them.
  std::vector<uint16_t> words{1, 2, 65535, 40000};
  const auto tokens = torch::from_blob(words.data(), {4}, torch::kUInt16);
  std::cout << tokens.dtype() << " " << tokens.element_size() << " " << tokens.sizes() << "\n";
  const auto ids = tokens.to(torch::kLong).view({2, 2});
  std::cout << ids << "\n" << tokens[2].item<int64_t>() << "\n";
  std::cout << (ids.to(torch::kUInt16).data_ptr<uint16_t>()[3] == 40000) << " " << torch::kUInt32
            << "\n";

  // Accessors.
  auto grid = torch::arange(9, torch::kFloat64).view({3, 3});
  std::cout << trace_of(grid.accessor<double, 2>()) << " "
            << trace_of(grid.packed_accessor64<double, 2>()) << " "
            << trace_of(grid.packed_accessor32<double, 2>()) << " ";
  const auto turned = grid.t();
  std::cout << trace_of(turned.accessor<double, 2>()) << "\n";
  auto a = grid.accessor<double, 2>();
  a[1][1] = 40;
  const auto row = a[1];
  std::cout << grid << row[1] << " " << row.size(0) << " " << a.stride(0) << "\n";

  // What is made like what.
  const auto options = torch::TensorOptions()
                           .dtype(torch::kFloat64)
                           .layout(torch::kStrided)
                           .device(torch::kCPU)
                           .requires_grad(false);
  std::cout << torch::zeros({2}, options) << torch::empty_like(grid).sizes()
            << grid.new_full({2}, 3) << torch::full_like(ints, 2) << "\n";
  std::cout << grid.nbytes() << " " << grid.itemsize() << " " << grid.t().is_contiguous() << " "
            << grid.t().contiguous().is_contiguous() << " " << grid.storage_offset()
            << grid[1].storage_offset() << " " << (grid.data_ptr() == grid.view({9}).data_ptr())
            << "\n";
  std::cout << torch::linspace(0, 1, 5) << torch::arange(0, 10, 4) << torch::eye(2, torch::kLong)
            << "\n";
  return 0;
}
