/* Ramet in C: tensors over the caller's memory, modules from JSON, losses, backward, optimizers,
 * mixed precision, files. For C (C99), Fortran (ramet.f90 in this folder) and whatever else calls C
 * functions. A program links the C++ runtime too.
 *
 *   ramet_module* net = ramet_module_new(
 *       "{\"layers\": [{\"type\": \"Linear\", \"in_features\": 2, \"out_features\": 8},"
 *       " {\"type\": \"Tanh\"},"
 *       " {\"type\": \"Linear\", \"in_features\": 8, \"out_features\": 1}]}", NULL);
 *   ramet_optimizer* adam = ramet_optimizer_new(net, "Adam", "{\"lr\": 0.05}");
 *   const int64_t sizes[2] = {4, 2};
 *   ramet_tensor* x = ramet_tensor_from_memory(inputs, RAMET_FLOAT32, 2, sizes, NULL);
 *   ...
 *   ramet_tensor* y = ramet_module_forward(net, x);
 *   ramet_tensor* loss = ramet_mse_loss(y, target, RAMET_MEAN);
 *   if (ramet_optimizer_zero_grad(adam, 1) || ramet_tensor_backward(loss, NULL) ||
 *       ramet_optimizer_step(adam))
 *     fprintf(stderr, "%s\n", ramet_last_error());
 *
 * Errors. A function returns a status, RAMET_OK (0) or a code below, or a handle, NULL where it
 * failed. What was wrong is ramet_last_error(), in words: "[function] what is wrong: got X,
 * expected Y". Checks come before any work: a module is made, a file read or written and a step
 * made whole or not at all, and results behind pointers are written by calls that succeed only. No
 * C++ exception leaves a function. A handle that is NULL, was freed or is of another kind is such
 * an error too, so a chain of calls may be checked at its end.
 *
 * Handles. What a function returns belongs to the caller until it is given to the ..._free
 * function; NULL may be freed. A handle is a number and no address: it is never used again for
 * something else. Handles share what is behind them: a parameter's handle outlives that of its
 * module, and the memory of a tensor lives as long as anything shows it.
 *
 * Threads. Any thread may call anything, also one that the library has not made. What reads
 * (forward, losses, copies out) may run at the same time on the same handles. What writes (copies
 * in, backward, zero_grad, step, learning rates, masters, scalers, LoRA, load, train, replicate)
 * runs alone among everything that uses the same module, its parameters or its optimizer: that lock
 * is the caller's. The last error, the gradient mode and autocast are each thread's own; the
 * generator of random numbers is the process's. A handle may be freed while another thread is
 * inside a call with it. An operation uses up to ramet_set_num_threads() threads of a pool, which
 * starts with the first operation that is large enough; results have the same bits for any number.
 * Functions of the caller's (deleters, closures) run on a thread that called the library, and may
 * call it. They run under no lock of it, but for what ramet_checkpoint says.
 *
 * Versions. RAMET_C_VERSION grows by one where functions are added; none changes or goes. A program
 * that was compiled with version n works with every library whose ramet_c_version() is n or more:
 * ramet_check_version(RAMET_C_VERSION).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Version of this interface: grows by one where functions are added. */
#define RAMET_C_VERSION 2
/* A name that leaves the shared library. */
#define RAMET_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses. */
enum {
  RAMET_OK = 0,
  RAMET_INVALID = 1, /* wrong use: an argument, a shape, a file's content */
  RAMET_OUT_OF_MEMORY = 2,
  RAMET_NOT_IMPLEMENTED = 3, /* there is no such operation or derivative */
  RAMET_INTERNAL = 4 /* anything else: a defect of the library, or an exception of the caller's */
};

/* Types of elements; the numbers are LibTorch's. */
enum {
  RAMET_UINT8 = 0,
  RAMET_INT8 = 1,
  RAMET_INT16 = 2,
  RAMET_INT32 = 3,
  RAMET_INT64 = 4,
  RAMET_FLOAT16 = 5,
  RAMET_FLOAT32 = 6,
  RAMET_FLOAT64 = 7,
  RAMET_BOOL = 11, /* a byte, 0 or 1 */
  RAMET_BFLOAT16 = 15,
  RAMET_DEFAULT_DTYPE = -1 /* where a comment says so */
};

/* Kinds of devices; the numbers are LibTorch's. */
enum { RAMET_CPU = 0, RAMET_CUDA = 1 };

/* What a loss makes of its elements. */
enum { RAMET_NONE = 0, RAMET_MEAN = 1, RAMET_SUM = 2 };

/* Handles. A handle is a number and no address: */
typedef struct ramet_tensor ramet_tensor;
typedef struct ramet_module ramet_module;
typedef struct ramet_optimizer ramet_optimizer;
typedef struct ramet_grad_scaler ramet_grad_scaler;

/* ---- the library -------------------------------------------------------------------------- */

/* The text of this thread's last failure; "" before the first one. Valid until the thread's next
 * failure. */
RAMET_C_API const char* ramet_last_error(void);
/* For bindings to other languages: `text` is the last error from now on. Returns RAMET_INVALID. */
RAMET_C_API int ramet_fail(const char* text);
/* RAMET_C_VERSION of the library. */
RAMET_C_API int ramet_c_version(void);
/* Of all of Ramet: "0.1.0". */
RAMET_C_API const char* ramet_version(void);
/* Fails where the library is older than the header, `header` being RAMET_C_VERSION. */
RAMET_C_API int ramet_check_version(int header);
/* Seeds the generator that initial weights, dropout and ramet_tensor_randn draw from. */
RAMET_C_API int ramet_manual_seed(uint64_t seed);
/* `threads`: 1 or more. */
RAMET_C_API int ramet_set_num_threads(int threads);
/* How many threads an operation uses at most. */
RAMET_C_API int ramet_get_num_threads(int* threads);
/* Whether this thread's operations are recorded for a backward (they are, at first). `before`:
 * NULL, or what it was. */
RAMET_C_API int ramet_set_grad_enabled(int on, int* before);
/* How many handles of all kinds there are that were not freed. */
RAMET_C_API int ramet_live_handles(int64_t* count);

/* ---- tensors ------------------------------------------------------------------------------ */
/* `sizes` has `dim` entries, 0 to 64 of them; of no dimension it is not read and may be NULL.
 * `strides`, in elements, not negative, are NULL for row-major order, in which the last index runs
 * fastest (C's). */

/* Over the caller's memory, which is neither copied nor freed: what either side writes the other
 * one reads, but for parameters inside autocast (see mixed precision). It must stay until the last
 * handle that shows it is freed and no recorded operation needs it any more. `data` is aligned to
 * the size of an element. */
RAMET_C_API ramet_tensor* ramet_tensor_from_memory(void* data, int dtype, int64_t dim,
                                                   const int64_t* sizes, const int64_t* strides);
/* The same of memory in column-major order, in which the first index runs fastest (Fortran's):
 * index (i, j) here is (i + 1, j + 1) there. Fortran's shape in reverse with row-major order is the
 * other way to look at it, with i and j exchanged: a batch that is Fortran's last index is the
 * first one then. */
RAMET_C_API ramet_tensor* ramet_tensor_from_column_major(void* data, int dtype, int64_t dim,
                                                         const int64_t* sizes);
/* As ramet_tensor_from_memory; deleter(context) is called once nothing shows the memory any more,
 * by whichever thread lets go of it last. Where this fails it is not called. */
RAMET_C_API ramet_tensor* ramet_tensor_from_owned_memory(void* data, int dtype, int64_t dim,
                                                         const int64_t* sizes,
                                                         const int64_t* strides,
                                                         void (*deleter)(void* context),
                                                         void* context);
/* A copy, in row-major order. */
RAMET_C_API ramet_tensor* ramet_tensor_from_copy(const void* data, int dtype, int64_t dim,
                                                 const int64_t* sizes, const int64_t* strides);
/* Of zeros. */
RAMET_C_API ramet_tensor* ramet_tensor_zeros(int dtype, int64_t dim, const int64_t* sizes);
/* Of the normal distribution; a floating-point dtype. */
RAMET_C_API ramet_tensor* ramet_tensor_randn(int dtype, int64_t dim, const int64_t* sizes);
/* Gives the handle back; NULL may be freed. */
RAMET_C_API int ramet_tensor_free(ramet_tensor* tensor);

/* The caller's memory, described as above, has the tensor's sizes; dtypes may differ, values are
 * cast. */
RAMET_C_API int ramet_tensor_copy_out(const ramet_tensor* tensor, void* data, int dtype,
                                      int64_t dim, const int64_t* sizes, const int64_t* strides);
/* The other way: the tensor gets the values of the caller's memory. Nothing is recorded. */
RAMET_C_API int ramet_tensor_copy_in(ramet_tensor* tensor, const void* data, int dtype, int64_t dim,
                                     const int64_t* sizes, const int64_t* strides);
/* The values of `from`, broadcast and cast; nothing is recorded. */
RAMET_C_API int ramet_tensor_assign(ramet_tensor* tensor, const ramet_tensor* from);

/* What it is: the type of its elements, the number of dimensions, of elements: */
RAMET_C_API int ramet_tensor_dtype(const ramet_tensor* tensor, int* dtype);
RAMET_C_API int ramet_tensor_dim(const ramet_tensor* tensor, int64_t* dim);
RAMET_C_API int ramet_tensor_numel(const ramet_tensor* tensor, int64_t* numel);
/* `capacity`: how many entries there is room for, at least the tensor's dim. */
RAMET_C_API int ramet_tensor_sizes(const ramet_tensor* tensor, int64_t* sizes, int64_t capacity);
/* In elements, `capacity` as above. */
RAMET_C_API int ramet_tensor_strides(const ramet_tensor* tensor, int64_t* strides,
                                     int64_t capacity);
/* The first element, in memory that lies as the strides say; `dtype` must be the tensor's. Valid as
 * long as something shows this memory; a parameter's stays where it is as long as its module is not
 * replicated (ramet/c_processes.h). */
RAMET_C_API int ramet_tensor_data(const ramet_tensor* tensor, int dtype, void** data);
/* The value of a tensor of one element. */
RAMET_C_API int ramet_tensor_item(const ramet_tensor* tensor, double* value);

/* Of a tensor that was not computed: whether backward collects its gradient. */
RAMET_C_API int ramet_tensor_set_requires_grad(ramet_tensor* tensor, int on);
/* The gradient that was collected, itself: writing into it changes what a step sees. NULL, with an
 * error, where there is none. zero_grad with set_to_none leaves the handle with the old values: ask
 * again. */
RAMET_C_API ramet_tensor* ramet_tensor_grad(const ramet_tensor* tensor);
/* Adds the derivatives of `tensor` into the gradients of all that it was computed from. `gradient`:
 * NULL for a tensor of one element, else what is above it, of its sizes: the adjoint of a program
 * that goes on with its values. */
RAMET_C_API int ramet_tensor_backward(const ramet_tensor* tensor, const ramet_tensor* gradient);

/* New tensors, differentiable but for detach. */
RAMET_C_API ramet_tensor* ramet_tensor_detach(
    const ramet_tensor* tensor); /* the same memory, without history */
/* With another dtype: this memory where it has it already. */
RAMET_C_API ramet_tensor* ramet_tensor_to(const ramet_tensor* tensor, int dtype);
/* One of the sizes may be -1: what is left. */
RAMET_C_API ramet_tensor* ramet_tensor_reshape(const ramet_tensor* tensor, int64_t dim,
                                               const int64_t* sizes);
/* Dimensions dim0 and dim1 exchanged: the same memory. */
RAMET_C_API ramet_tensor* ramet_tensor_transpose(const ramet_tensor* tensor, int64_t dim0,
                                                 int64_t dim1);
/* Rows start to start + length - 1 of dimension `dim`: the same memory. */
RAMET_C_API ramet_tensor* ramet_tensor_narrow(const ramet_tensor* tensor, int64_t dim,
                                              int64_t start, int64_t length);
/* Element by element, with sizes broadcast to each other: */
RAMET_C_API ramet_tensor* ramet_tensor_add(const ramet_tensor* a, const ramet_tensor* b);
RAMET_C_API ramet_tensor* ramet_tensor_sub(const ramet_tensor* a, const ramet_tensor* b);
RAMET_C_API ramet_tensor* ramet_tensor_mul(const ramet_tensor* a, const ramet_tensor* b);
RAMET_C_API ramet_tensor* ramet_tensor_div(const ramet_tensor* a, const ramet_tensor* b);
/* The product of matrices, of vectors, or of batches of matrices: torch.matmul. */
RAMET_C_API ramet_tensor* ramet_tensor_matmul(const ramet_tensor* a, const ramet_tensor* b);
/* Each element times `factor`. */
RAMET_C_API ramet_tensor* ramet_tensor_scale(const ramet_tensor* a, double factor);
/* Of all elements, a tensor of no dimension; integers give int64, and have no mean: */
RAMET_C_API ramet_tensor* ramet_tensor_sum(const ramet_tensor* a);
RAMET_C_API ramet_tensor* ramet_tensor_mean(const ramet_tensor* a);
/* The index of the largest element along `dim`, as int64: the class of each row of scores with dim
 * -1. */
RAMET_C_API ramet_tensor* ramet_tensor_argmax(const ramet_tensor* a, int64_t dim);

/* ---- losses ------------------------------------------------------------------------------- */
/* LibTorch's functions of these names, with its defaults for what has no argument here.
 * `reduction`: RAMET_NONE, RAMET_MEAN or RAMET_SUM. */

/* (input - target)^2; sizes broadcast. */
RAMET_C_API ramet_tensor* ramet_mse_loss(const ramet_tensor* input, const ramet_tensor* target,
                                         int reduction);
/* |input - target|; sizes broadcast. */
RAMET_C_API ramet_tensor* ramet_l1_loss(const ramet_tensor* input, const ramet_tensor* target,
                                        int reduction);
/* A parabola below `delta` (1 is usual), a line above. */
RAMET_C_API ramet_tensor* ramet_huber_loss(const ramet_tensor* input, const ramet_tensor* target,
                                           int reduction, double delta);
/* `input`: scores, [batch, classes, ...]; `target`: int64 classes, [batch, ...], or probabilities.
 * `weight`: NULL, or one number a class. `label_smoothing`: 0 to 1. Classes -100 are left out. */
RAMET_C_API ramet_tensor* ramet_cross_entropy_loss(const ramet_tensor* input,
                                                   const ramet_tensor* target,
                                                   const ramet_tensor* weight, int reduction,
                                                   double label_smoothing);
/* `input`: probabilities; `target` of its sizes, 0 to 1. */
RAMET_C_API ramet_tensor* ramet_bce_loss(const ramet_tensor* input, const ramet_tensor* target,
                                         int reduction);
/* The same of scores, by their sigmoid. */
RAMET_C_API ramet_tensor* ramet_bce_with_logits_loss(const ramet_tensor* input,
                                                     const ramet_tensor* target, int reduction);

/* ---- modules ------------------------------------------------------------------------------ */
/* A module is described by a JSON object: "type" is the name of LibTorch's class, the other entries
 * are its options by their names there; those that have a default may be left out.
 *
 *   {"type": "Linear", "in_features": 2, "out_features": 8, "bias": false}
 *   {"type": "Conv2d", "in_channels": 3, "out_channels": 8, "kernel_size": [3, 5],
 *    "padding": "same"}
 *   {"type": "Sequential", "layers": [{"type": "Flatten"}, {...}]}
 *
 * "type" may be left out where "layers" is there.
 * Sequential runs its layers one after the other; each is a module, Sequential among them. A layer
 * may have a "name" (its number, from "0", if not), with which its parameters' names begin, as in
 * PyTorch: "0.weight". The outermost module may have a "dtype": "float32" (what it is without),
 * "float64", "float16" or "bfloat16", to which it is cast. Sizes along dimensions are a number or a
 * list of numbers. Values that LibTorch writes kReflect are "reflect".
 *
 * Types: Identity, Linear, Flatten, Unflatten, Embedding; Conv1d to 3d, ConvTranspose1d to 3d;
 * MaxPool, AvgPool, AdaptiveAvgPool, AdaptiveMaxPool 1d to 3d; ReflectionPad, ReplicationPad,
 * ZeroPad, ConstantPad 1d to 3d; Upsample, PixelShuffle, PixelUnshuffle, Fold, Unfold; BatchNorm
 * and InstanceNorm 1d to 3d, LayerNorm, GroupNorm, RMSNorm, LocalResponseNorm; Dropout, Dropout2d,
 * Dropout3d, AlphaDropout, FeatureAlphaDropout; ReLU, ReLU6, LeakyReLU, PReLU, RReLU, ELU, SELU,
 * CELU, GELU, GLU, SiLU, Mish, Tanh, Sigmoid, LogSigmoid, Hardtanh, Hardshrink, Softshrink,
 * Tanhshrink, Softplus, Softsign, Threshold, Softmax, Softmin, LogSoftmax, Softmax2d; RNN, LSTM,
 * GRU; TransformerEncoderLayer. RNN, LSTM and GRU begin with states of zeros and hand on their
 * output; their entry "output" (not LibTorch's) is "sequence", all of it, as it is without, or
 * "last": of the last step of time alone, [batch, features].
 *
 * Errors name the place: "layers[2].in_features: expected a positive integer, got -3". */

/* `weights`: NULL, or a file as for ramet_module_load. Initial weights are drawn as LibTorch's
 * modules draw theirs, in the order of the description. */
RAMET_C_API ramet_module* ramet_module_new(const char* json, const char* weights);
/* A copy with memory of its own. */
RAMET_C_API ramet_module* ramet_module_clone(const ramet_module* module);
/* Gives the handle back; NULL may be freed. */
RAMET_C_API int ramet_module_free(ramet_module* module);
/* What the module makes of `input`; recorded where the gradient mode is on. */
RAMET_C_API ramet_tensor* ramet_module_forward(const ramet_module* module,
                                               const ramet_tensor* input);
/* Training mode (at first) or evaluation: what dropout and batch norms do. */
RAMET_C_API int ramet_module_train(ramet_module* module, int on);
/* Which of the two it is in. */
RAMET_C_API int ramet_module_is_training(const ramet_module* module, int* on);
/* Forgets the gradients, or with set_to_none = 0 makes them zeros where they lie. */
RAMET_C_API int ramet_module_zero_grad(ramet_module* module, int set_to_none);

/* Parameters by number, in the order of the description; each has one name. */
RAMET_C_API int ramet_module_parameter_count(const ramet_module* module, int64_t* count);
/* Elements of all of them. */
RAMET_C_API int ramet_module_parameter_numel(const ramet_module* module, int64_t* numel);
/* Valid as long as the module's handle, and until LoRA branches come or go. */
RAMET_C_API const char* ramet_module_parameter_name(const ramet_module* module, int64_t index);
/* The parameter itself, by its name, or a buffer (a batch norm's "1.running_mean"). */
RAMET_C_API ramet_tensor* ramet_module_parameter(const ramet_module* module, const char* name);
/* All parameters and buffers become those of `from`, a module of the same description. */
RAMET_C_API int ramet_module_assign(ramet_module* module, const ramet_module* from);
/* Scales all gradients so that their 2-norm is at most max_norm. `norm`: NULL, or what it was. */
RAMET_C_API int ramet_module_clip_grad_norm(ramet_module* module, double max_norm, double* norm);

/* Parameters and buffers in a safetensors file, by their names; written whole or not at all. */
RAMET_C_API int ramet_module_save(const ramet_module* module, const char* path);
/* Names, sizes and dtypes must be the module's: an error lists what is missing, unexpected and of
 * another kind, and nothing is changed. */
RAMET_C_API int ramet_module_load(ramet_module* module, const char* path);

/* ---- optimizers --------------------------------------------------------------------------- */
/* SGD (its "lr" has no default), Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam,
 * ASGD, Rprop, Lion, Muon, LBFGS; `options`: NULL, or a JSON object of their options by LibTorch's
 * names: {"lr": 1e-3, "betas": [0.9, 0.99]}. */

/* Over all parameters of the module. */
RAMET_C_API ramet_optimizer* ramet_optimizer_new(ramet_module* module, const char* name,
                                                 const char* options);
/* Gives the handle back; NULL may be freed. */
RAMET_C_API int ramet_optimizer_free(ramet_optimizer* optimizer);
/* Of the parameters, as ramet_module_zero_grad. */
RAMET_C_API int ramet_optimizer_zero_grad(ramet_optimizer* optimizer, int set_to_none);
/* One update from the gradients. */
RAMET_C_API int ramet_optimizer_step(ramet_optimizer* optimizer);
/* For LBFGS, which evaluates several times in a step: closure(context, &loss) clears the gradients,
 * computes a loss, runs its backward and stores the value; it returns RAMET_OK, or another status
 * that ends the step. It leaves the autocast regions that it enters, and no others. `loss`: NULL,
 * or that of the first evaluation. */
RAMET_C_API int ramet_optimizer_step_closure(ramet_optimizer* optimizer,
                                             int (*closure)(void* context, double* loss),
                                             void* context, double* loss);
/* The learning rate, of all parameters: */
RAMET_C_API int ramet_optimizer_set_lr(ramet_optimizer* optimizer, double lr);
RAMET_C_API int ramet_optimizer_get_lr(const ramet_optimizer* optimizer, double* lr);
/* Whether parameters of 16 bits have float32 masters, which is so at first: the step updates the
 * master and rounds it to the parameter. Without masters updates below the rounding are lost. LBFGS
 * always has masters. */
RAMET_C_API int ramet_optimizer_use_masters(ramet_optimizer* optimizer, int on);
/* `on`: what it is now. */
RAMET_C_API int ramet_optimizer_uses_masters(const ramet_optimizer* optimizer, int* on);
/* Options and state; written whole or not at all. A file is for an optimizer of the same name over
 * the same parameters; where it is not, nothing is changed. */
RAMET_C_API int ramet_optimizer_save(const ramet_optimizer* optimizer, const char* path);
/* Reads what ramet_optimizer_save has written. */
RAMET_C_API int ramet_optimizer_load(ramet_optimizer* optimizer, const char* path);

/* ---- mixed precision ---------------------------------------------------------------------- */
/* Between enter and leave this thread's operations on devices of that kind compute in 16 bits where
 * this is safe, from float32 tensors: matrix products, convolutions, attention. Losses and others
 * that need it compute in float32. Modules, losses and all functions above take part. A backward
 * runs in the dtypes of its forward, wherever it is called, and a parameter's gradient has the
 * parameter's dtype.
 *
 * Inside a region the program does not write the memory of tensors that require gradients. Casts
 * are kept until the outermost region ends. Functions of this interface may write there: the
 * library casts again then.
 *
 *   ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1);
 *   y = ramet_module_forward(net, x);
 *   loss = ramet_mse_loss(y, target, RAMET_MEAN);
 *   ramet_autocast_leave();
 *   ramet_tensor_backward(loss, NULL);
 */

/* Opens a region. `dtype`: RAMET_BFLOAT16, RAMET_FLOAT16, or RAMET_DEFAULT_DTYPE: the one in force,
 * which is bfloat16 for CPUs and float16 for GPUs at first. `enabled` 0: inside, operations are not
 * cast. Regions nest. */
RAMET_C_API int ramet_autocast_enter(int device_type, int dtype, int enabled);
/* Closes the region that this thread has entered last. */
RAMET_C_API int ramet_autocast_leave(void);
/* What is in force on this thread. `enabled`, `dtype`: NULL, or whether operations are cast, and to
 * what. */
RAMET_C_API int ramet_autocast_get(int device_type, int* enabled, int* dtype);

/* A scaler keeps small gradients of float16 from becoming zero: a loss is multiplied by a scale,
 * and the gradients are divided by it before the step. Where a gradient is infinite or NaN the step
 * is skipped, and the scale gets smaller. `options`: NULL, or a JSON object: {"init_scale": 65536,
 * "growth_factor": 2, "backoff_factor": 0.5, "growth_interval": 2000, "enabled": true}.
 *
 *   scaled = ramet_grad_scaler_scale(scaler, loss);
 *   if (ramet_tensor_backward(scaled, NULL) || ramet_grad_scaler_step(scaler, adam) ||
 *       ramet_grad_scaler_update(scaler)) ...
 */
RAMET_C_API ramet_grad_scaler* ramet_grad_scaler_new(const char* options);
/* Gives the handle back; NULL may be freed. */
RAMET_C_API int ramet_grad_scaler_free(ramet_grad_scaler* scaler);
/* `outputs` times the scale. */
RAMET_C_API ramet_tensor* ramet_grad_scaler_scale(ramet_grad_scaler* scaler,
                                                  const ramet_tensor* outputs);
/* Divides the gradients by the scale, for a program that reads or clips them before the step. At
 * most once for each optimizer between two updates. */
RAMET_C_API int ramet_grad_scaler_unscale(ramet_grad_scaler* scaler, ramet_optimizer* optimizer);
/* The optimizer's step, unless a gradient is infinite or NaN. Divides the gradients if
 * ramet_grad_scaler_unscale has not. Once for each optimizer between two updates. */
RAMET_C_API int ramet_grad_scaler_step(ramet_grad_scaler* scaler, ramet_optimizer* optimizer);
/* Adapts the scale, after the steps of all optimizers. */
RAMET_C_API int ramet_grad_scaler_update(ramet_grad_scaler* scaler);
/* The same, but to this scale: more than 0. */
RAMET_C_API int ramet_grad_scaler_set_scale(ramet_grad_scaler* scaler, double scale);
/* 1 where it is not enabled. */
RAMET_C_API int ramet_grad_scaler_get_scale(const ramet_grad_scaler* scaler, double* scale);
/* The scale and what adapts it; written whole or not at all. */
RAMET_C_API int ramet_grad_scaler_save(const ramet_grad_scaler* scaler, const char* path);
/* Reads what ramet_grad_scaler_save has written. */
RAMET_C_API int ramet_grad_scaler_load(ramet_grad_scaler* scaler, const char* path);

/* ---- less memory -------------------------------------------------------------------------- */

/* What function(context, inputs, count, &output) computes from the inputs. Its operations keep
 * nothing for the backward but parameters: the backward calls the function again. Gradients have
 * the same bits as without. The function makes `output`, and returns RAMET_OK or another status. It
 * gets handles that are freed after it; `output` too is the library's then, and may be one of the
 * inputs. It does the same when it is called again, on any thread, and its parameters and `inputs`
 * are not written in between. It leaves the autocast regions that it enters, and no others. While
 * it is called again, a backward on another thread that needs the same values waits for it, and so
 * does a free of what was computed from them. So the function waits for no other thread. `deleter`:
 * NULL, or deleter(context) is called once nothing needs the context any more. Where
 * ramet_checkpoint fails it is not called. */
RAMET_C_API ramet_tensor* ramet_checkpoint(int (*function)(void* context,
                                                           ramet_tensor* const* inputs,
                                                           int64_t count, ramet_tensor** output),
                                           void* context, void (*deleter)(void* context),
                                           const ramet_tensor* const* inputs, int64_t count);
/* The same for a module's forward, which draws the same random numbers again. */
RAMET_C_API ramet_tensor* ramet_module_checkpoint(const ramet_module* module,
                                                  const ramet_tensor* input);

/* LoRA branches: y = x weight^T + bias + alpha / rank * (dropout(x) A^T) B^T. Those of the module's
 * Linear layers get one, and everything else is frozen. `options`: a JSON object: {"rank": 8,
 * "alpha": 16, "dropout": 0.1, "layers": ["0", "2"]}. Without "layers" all of them get one. Make
 * the optimizer after that. The module then has more parameters, with other indices. */
RAMET_C_API int ramet_module_apply_lora(ramet_module* module, const char* options);
/* Folds each branch into its layer's weight. The parameters stay frozen. */
RAMET_C_API int ramet_module_merge_lora(ramet_module* module);
/* The branches alone in a safetensors file, by the names of PEFT; written whole or not at all. */
RAMET_C_API int ramet_module_save_lora(const ramet_module* module, const char* path);
/* Reads such a file into branches of the same names and sizes. */
RAMET_C_API int ramet_module_load_lora(ramet_module* module, const char* path);

#ifdef __cplusplus
}
#endif
