/* TorchScript files in C: modules that Python wrote with torch.jit.save() (ramet/c.h says how
 * errors, handles and threads work). A separate library, which links libzip.
 *
 *   ramet_module* net = ramet_script_load("net.pt", NULL);
 *   ramet_tensor* y = ramet_module_forward(net, x);
 *
 * What ramet/c.h has for modules works with it: parameters by name, optimizers, training mode,
 * autocast, files of weights, copies. ramet_module_replicate (ramet/c_processes.h) does, too.
 */
#pragma once
#include "nn/c/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a file. All its code is compiled: an error lists what this library lacks. `device`: NULL,
 * or where its tensors go ("cpu", "cuda:0"). */
RAMET_C_API ramet_module* ramet_script_load(const char* path, const char* device);
/* The forward of `count` tensors. `results`: places for `capacity` handles, which belong to the
 * caller. A result that is a tuple, list or dictionary gives its tensors in order; `made`: how many
 * there are. More than `capacity` is an error, and so is a result without a tensor. */
RAMET_C_API int ramet_script_forward(const ramet_module* module, const ramet_tensor* const* inputs,
                                     int64_t count, ramet_tensor** results, int64_t capacity,
                                     int64_t* made);
/* Writes a file that PyTorch loads: the code as it was read, with the parameters and buffers of
 * now. Written whole or not at all. An error where the module is of no TorchScript file. */
RAMET_C_API int ramet_script_save(const ramet_module* module, const char* path);

#ifdef __cplusplus
}
#endif
