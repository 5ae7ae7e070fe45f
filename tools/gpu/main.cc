// The one program of tools/gpu_package: gpu_bench where it is called by that name, else the tests.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/benchmarks/gpu/rows.h"

int main(int argc, char** argv) {
  if (argc > 0 && std::filesystem::path(argv[0]).filename() == "gpu_bench") {
    return ramet::gpu_bench::main(argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
