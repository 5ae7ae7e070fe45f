// Moved. This name stays for one release.
#pragma once
#include "parallel/distributed/shard/fully_shard.h"
