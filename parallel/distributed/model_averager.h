// Moved. This name stays for one release.
#pragma once
#include "parallel/distributed/ddp/model_averager.h"
