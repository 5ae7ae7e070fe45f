// Moved. This name stays for one release.
#pragma once
#include "nn/formats/pytorch/state_dict.h"
