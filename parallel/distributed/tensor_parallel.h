// Moved. This name stays for one release.
#pragma once
#include "parallel/distributed/shard/tensor_parallel.h"
