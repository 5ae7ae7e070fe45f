// Ramet in one program with libraries that have threads, or a BLAS, of their own: what each
// computes is what it computes alone.
#include <cblas.h>
#include <mpi.h>
#include <ramet.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <boost/thread.hpp>
#include <cstdio>
#include <cstring>
#include <opencv2/core.hpp>
#include <vector>

#include "expect.h"

using ramet::Tensor;

namespace {

constexpr int kSide = 192;

Tensor made(double from) {
  return ramet::linspace(from, 3, kSide * kSide).sin().view({kSide, kSide});
}

// A product's gradients, large enough to be shared among threads.
Tensor gradient(const Tensor& a, const Tensor& b) {
  Tensor x = a.detach().requires_grad_(true);
  x.mm(b).tanh().sum().backward();
  return x.grad();
}

bool same(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data_ptr<float>(), b.data_ptr<float>(), sizeof(float) * size_t(a.numel())) ==
         0;
}

}  // namespace

int main(int argc, char** argv) {
  ramet::set_num_threads(3);
  const Tensor a = made(-2), b = made(1), alone = gradient(a, b);
  const auto right = [&] { return same(gradient(a, b), alone); };

  // OpenBLAS, while it and Ramet compute in turn.
  std::vector<float> product(kSide * kSide);
  for (int round = 0; round < 5; ++round) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1,
                a.data_ptr<float>(), kSide, b.data_ptr<float>(), kSide, 0, product.data(), kSide);
    EXPECT(right());
    EXPECT(ramet::allclose(ramet::from_blob(product.data(), {kSide, kSide}), a.mm(b), 1e-4, 1e-4));
  }

  std::atomic<int> good{0};
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 6; ++i) good += right();
  EXPECT(good == 6);

  tbb::parallel_for(0, 6, [&](int) { good += right(); });
  EXPECT(good == 12);

  boost::thread_group threads;
  for (int i = 0; i < 3; ++i) threads.create_thread([&] { good += right(); });
  threads.join_all();
  EXPECT(good == 15);

  cv::setNumThreads(3);
  cv::parallel_for_(cv::Range(0, 6), [&](const cv::Range& part) {
    for (int i = part.start; i < part.end; ++i) good += right();
  });
  EXPECT(good == 21);
  const cv::Mat left(kSide, kSide, CV_32F, a.data_ptr<float>()),
      other(kSide, kSide, CV_32F, b.data_ptr<float>());
  const cv::Mat by_opencv = left * other;
  EXPECT(ramet::allclose(ramet::from_blob(by_opencv.data, {kSide, kSide}), a.mm(b), 1e-4, 1e-4));

  int level = 0, rank = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Tensor sum = gradient(a, b);
  MPI_Allreduce(MPI_IN_PLACE, sum.data_ptr<float>(), static_cast<int>(sum.numel()), MPI_FLOAT,
                MPI_SUM, MPI_COMM_WORLD);
  EXPECT(rank == 0 && same(sum, alone) && right());
  MPI_Finalize();
  EXPECT(right());
  return 0;
}
