#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "autograd/graph/layout.h"
#include "tests/autograd/table/op_checks.h"

namespace ramet {
namespace op_table {
namespace {

// As the result of a convolution lies, where the rank is an image's.
Tensor image_of(const Tensor& t) {
  if (t.dim() != 4) return t.clone();
  const IntArrayRef s = t.sizes();
  const Tensor image =
      autograd::empty_channels_last(s[0], s[1], s[2], s[3], t.scalar_type(), t.device());
  image.copy_(t);
  return image;
}
bool is_image(const Index& sizes) {
  return sizes.size() == 4 && sizes[1] > 1 && sizes[2] * sizes[3] > 1 && sizes[0] > 0;
}

}  // namespace

void check_images(const Row& row, Device device) {
  Samples samples;
  for (const Sample& sample : row.samples)
    if (std::any_of(sample.begin(), sample.end(), [](const Input& i) { return is_image(i.sizes); }))
      samples.push_back(sample);
  if (row.point && samples.empty()) {
    samples.push_back(row.samples.front());
    for (Input& in : samples.back()) in.sizes = {2, 3, 4, 5};
  }
  for (ScalarType dtype : types_on(device, row, compared_types(row))) {
    for (const Sample& sample : samples) {
      const Operands o = operands(sample, dtype);
      const Plain want = expected(row, o.plain);
      const std::vector<Tensor> gradient = gradients(row.call, o.tensors);
      for (const std::string look : {"never", "meanwhile", "before backward"}) {
        SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample) + " seen as rows " +
                     look);
        std::vector<Tensor> in;
        for (const Tensor& t : moved(o.tensors, device)) in.push_back(image_of(t));
        require_grad(in);
        const auto settle_all = [&in] {
          for (const Tensor& t : in) autograd::settle(t);
        };
        std::jthread other([&] {
          if (look == "meanwhile") settle_all();
        });
        const Tensor y = row.call(in);
        if (look == "before backward") settle_all();
        if (y.requires_grad()) y.backward(seed_like(y));
        expect_close(y, want, row.slack);
        for (size_t k = 0; k < in.size(); ++k) {
          EXPECT_EQ(in[k].grad().defined(), gradient[k].defined());
          if (gradient[k].defined())
            expect_close(in[k].grad(), plain_of(gradient[k]), 8 * row.slack);
        }
      }
    }
  }
}

}  // namespace op_table
}  // namespace ramet
