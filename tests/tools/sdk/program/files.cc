// NumPy's file of a tensor, and what DLPack shows of it.
#include <ramet.h>

#include <cstdio>

#include "ramet/nn/formats/dlpack.h"
#include "ramet/nn/formats/numpy/npz.h"

int main() {
  ramet::OrderedDict<std::string, ramet::Tensor> arrays;
  arrays.insert("x", ramet::arange(6).reshape({2, 3}));
  ramet::formats::save_npz("files.npz", arrays);
  const ramet::Tensor x = ramet::formats::load_npz("files.npz")["x"];
  const ramet::Tensor same = ramet::from_dlpack(ramet::to_dlpack(x));
  std::printf("%d\n", int(same.sum().item<int64_t>()));
  return x.equal(arrays["x"]) && same.data_ptr() == x.data_ptr() ? 0 : 1;
}
