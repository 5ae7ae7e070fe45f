! Ramet in Fortran 2008, over its C interface (c.h in this folder says what the functions do, how errors, handles and
! threads work, and how modules are described in JSON). Compile this file with the program and link Ramet and the C++
! runtime:
!
!   gfortran ramet.f90 program.f90 $(pkg-config --libs ramet-c)
!
!   type(ramet_module) :: net
!   type(ramet_optimizer) :: adam
!   type(ramet_tensor) :: x, y, target_, loss
!   real(real32), target :: points(2, 64), values(1, 64)
!
!   net = ramet_module_new('{"layers": [{"type": "Linear", "in_features": 2, "out_features": 8}, {"type": "Tanh"}, ' // &
!                          '{"type": "Linear", "in_features": 8, "out_features": 1}]}')
!   adam = ramet_optimizer_new(net, 'Adam', '{"lr": 0.01}')
!   x = ramet_view(points, reversed=.true.)
!   ...
!
! Memory. ramet_view(a) is a tensor over the array a itself, of real32 or real64 and 1 to 4 dimensions, or of int32 or int64
! and 1 or 2, which is contiguous and has the target attribute: nothing is copied, and what either side writes the other one
! reads. Fortran keeps the first index together in memory, modules want the batch first:
!
!   ramet_view(a)                    has the shape of a: element (i, j) is a(i, j)
!   ramet_view(a, reversed=.true.)   has it in reverse: element (j, i) is a(i, j). This is memory as modules like it best, so
!                                    an array with a sample in each column, a(features, samples), is taken as it is.
!
! ramet_get(t, a) copies a tensor into an array, whose shape (or, with reversed, its reverse) it must have.
!
! Mixed precision. Inside a region the program does not write the memory of tensors that require gradients. Casts are kept
! until the outermost region ends.
!
! Errors. Without the optional argument status a failure prints its text and stops the program; with it nothing is printed,
! and ramet_last_error() is the text. A number is 0 then, a logical .false. and a dtype ramet_default_dtype. What functions
! return is to be given to ramet_free; assignment copies the handle alone.
module ramet
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64, int32, int64, error_unit
  implicit none
  private

  type, public :: ramet_tensor
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ramet_module
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ramet_optimizer
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ramet_grad_scaler
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! Numbers of c.h.
  integer(c_int), parameter, public :: ramet_int32 = 3, ramet_int64 = 4, ramet_float16 = 5, ramet_float32 = 6, &
    ramet_float64 = 7, ramet_bfloat16 = 15, ramet_default_dtype = -1
  integer(c_int), parameter, public :: ramet_cpu = 0, ramet_cuda = 1
  integer(c_int), parameter, public :: ramet_none = 0, ramet_mean_of = 1, ramet_sum_of = 2

  character(*), parameter :: gaps = '[ramet] array: expected a contiguous one, got a section with gaps'

  public :: ramet_last_error, ramet_settle, ramet_seed, ramet_set_threads, ramet_record
  public :: ramet_view, ramet_get, ramet_item, ramet_free, ramet_zero_grad
  public :: ramet_require_grad, ramet_gradient, ramet_backward, ramet_cast, ramet_reshape, ramet_assign
  public :: ramet_add, ramet_sub, ramet_mul, ramet_scale, ramet_sum, ramet_mean, ramet_argmax
  public :: ramet_mse_loss, ramet_l1_loss, ramet_huber_loss, ramet_cross_entropy_loss, ramet_bce_with_logits_loss
  public :: ramet_module_new, ramet_forward, ramet_train, ramet_parameter, ramet_save, ramet_load
  public :: ramet_optimizer_new, ramet_step, ramet_set_lr, ramet_lr, ramet_use_masters, ramet_uses_masters
  public :: ramet_dtype, ramet_autocast_enter, ramet_autocast_leave, ramet_autocast_get
  public :: ramet_grad_scaler_new, ramet_scale_loss, ramet_unscale, ramet_update, ramet_get_scale, ramet_set_scale
  public :: ramet_checkpoint, ramet_apply_lora, ramet_merge_lora, ramet_save_lora, ramet_load_lora

  interface ramet_view
    module procedure view_r32_1, view_r32_2, view_r32_3, view_r32_4, view_r64_1, view_r64_2, view_r64_3, &
      view_r64_4, view_i32_1, view_i32_2, view_i64_1, view_i64_2
  end interface
  interface ramet_get
    module procedure get_r32_1, get_r32_2, get_r32_3, get_r32_4, get_r64_1, get_r64_2, get_r64_3, get_r64_4, &
      get_i32_1, get_i32_2, get_i64_1, get_i64_2
  end interface
  interface ramet_free
    module procedure free_tensor, free_module, free_optimizer, free_scaler
  end interface
  interface ramet_step
    module procedure step_optimizer, step_scaled
  end interface
  interface ramet_zero_grad
    module procedure zero_grad_module, zero_grad_optimizer
  end interface
  interface ramet_save
    module procedure save_module, save_optimizer, save_scaler
  end interface
  interface ramet_load
    module procedure load_module, load_optimizer, load_scaler
  end interface

  interface
    type(c_ptr) function c_last_error() bind(c, name="ramet_last_error")
      import
    end function
    integer(c_int) function c_fail(text) bind(c, name="ramet_fail")
      import
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int) function c_manual_seed(seed) bind(c, name="ramet_manual_seed")
      import
      integer(c_int64_t), value :: seed
    end function
    integer(c_int) function c_set_num_threads(threads) bind(c, name="ramet_set_num_threads")
      import
      integer(c_int), value :: threads
    end function
    integer(c_int) function c_set_grad_enabled(on, before) bind(c, name="ramet_set_grad_enabled")
      import
      integer(c_int), value :: on
      type(c_ptr), value :: before
    end function
    type(c_ptr) function c_tensor_from_memory(data, dtype, dim, sizes, strides) &
        bind(c, name="ramet_tensor_from_memory")
      import
      type(c_ptr), value :: data, strides
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: dim
      integer(c_int64_t), intent(in) :: sizes(*)
    end function
    type(c_ptr) function c_tensor_from_column_major(data, dtype, dim, sizes) &
        bind(c, name="ramet_tensor_from_column_major")
      import
      type(c_ptr), value :: data
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: dim
      integer(c_int64_t), intent(in) :: sizes(*)
    end function
    integer(c_int) function c_tensor_copy_out(tensor, data, dtype, dim, sizes, strides) &
        bind(c, name="ramet_tensor_copy_out")
      import
      type(c_ptr), value :: tensor, data, strides
      integer(c_int), value :: dtype
      integer(c_int64_t), value :: dim
      integer(c_int64_t), intent(in) :: sizes(*)
    end function
    integer(c_int) function c_tensor_free(tensor) bind(c, name="ramet_tensor_free")
      import
      type(c_ptr), value :: tensor
    end function
    integer(c_int) function c_tensor_item(tensor, value) bind(c, name="ramet_tensor_item")
      import
      type(c_ptr), value :: tensor
      real(c_double), intent(inout) :: value  ! here and below: a call that fails leaves it
    end function
    integer(c_int) function c_tensor_set_requires_grad(tensor, on) bind(c, name="ramet_tensor_set_requires_grad")
      import
      type(c_ptr), value :: tensor
      integer(c_int), value :: on
    end function
    type(c_ptr) function c_tensor_grad(tensor) bind(c, name="ramet_tensor_grad")
      import
      type(c_ptr), value :: tensor
    end function
    integer(c_int) function c_tensor_backward(tensor, gradient) bind(c, name="ramet_tensor_backward")
      import
      type(c_ptr), value :: tensor, gradient
    end function
    type(c_ptr) function c_tensor_to(tensor, dtype) bind(c, name="ramet_tensor_to")
      import
      type(c_ptr), value :: tensor
      integer(c_int), value :: dtype
    end function
    type(c_ptr) function c_tensor_reshape(tensor, dim, sizes) bind(c, name="ramet_tensor_reshape")
      import
      type(c_ptr), value :: tensor
      integer(c_int64_t), value :: dim
      integer(c_int64_t), intent(in) :: sizes(*)
    end function
    integer(c_int) function c_tensor_assign(tensor, from) bind(c, name="ramet_tensor_assign")
      import
      type(c_ptr), value :: tensor, from
    end function
    type(c_ptr) function c_tensor_add(a, b) bind(c, name="ramet_tensor_add")
      import
      type(c_ptr), value :: a, b
    end function
    type(c_ptr) function c_tensor_sub(a, b) bind(c, name="ramet_tensor_sub")
      import
      type(c_ptr), value :: a, b
    end function
    type(c_ptr) function c_tensor_mul(a, b) bind(c, name="ramet_tensor_mul")
      import
      type(c_ptr), value :: a, b
    end function
    type(c_ptr) function c_tensor_scale(a, factor) bind(c, name="ramet_tensor_scale")
      import
      type(c_ptr), value :: a
      real(c_double), value :: factor
    end function
    type(c_ptr) function c_tensor_sum(a) bind(c, name="ramet_tensor_sum")
      import
      type(c_ptr), value :: a
    end function
    type(c_ptr) function c_tensor_mean(a) bind(c, name="ramet_tensor_mean")
      import
      type(c_ptr), value :: a
    end function
    type(c_ptr) function c_tensor_argmax(a, dim) bind(c, name="ramet_tensor_argmax")
      import
      type(c_ptr), value :: a
      integer(c_int64_t), value :: dim
    end function
    type(c_ptr) function c_mse_loss(input, goal, reduction) bind(c, name="ramet_mse_loss")
      import
      type(c_ptr), value :: input, goal
      integer(c_int), value :: reduction
    end function
    type(c_ptr) function c_l1_loss(input, goal, reduction) bind(c, name="ramet_l1_loss")
      import
      type(c_ptr), value :: input, goal
      integer(c_int), value :: reduction
    end function
    type(c_ptr) function c_bce_with_logits_loss(input, goal, reduction) bind(c, name="ramet_bce_with_logits_loss")
      import
      type(c_ptr), value :: input, goal
      integer(c_int), value :: reduction
    end function
    type(c_ptr) function c_huber_loss(input, goal, reduction, delta) bind(c, name="ramet_huber_loss")
      import
      type(c_ptr), value :: input, goal
      integer(c_int), value :: reduction
      real(c_double), value :: delta
    end function
    type(c_ptr) function c_cross_entropy_loss(input, goal, weight, reduction, label_smoothing) &
        bind(c, name="ramet_cross_entropy_loss")
      import
      type(c_ptr), value :: input, goal, weight
      integer(c_int), value :: reduction
      real(c_double), value :: label_smoothing
    end function
    type(c_ptr) function c_module_new(json, weights) bind(c, name="ramet_module_new")
      import
      character(kind=c_char), intent(in) :: json(*)
      type(c_ptr), value :: weights
    end function
    integer(c_int) function c_module_free(module_) bind(c, name="ramet_module_free")
      import
      type(c_ptr), value :: module_
    end function
    type(c_ptr) function c_module_forward(module_, input) bind(c, name="ramet_module_forward")
      import
      type(c_ptr), value :: module_, input
    end function
    integer(c_int) function c_module_train(module_, on) bind(c, name="ramet_module_train")
      import
      type(c_ptr), value :: module_
      integer(c_int), value :: on
    end function
    integer(c_int) function c_module_zero_grad(module_, set_to_none) bind(c, name="ramet_module_zero_grad")
      import
      type(c_ptr), value :: module_
      integer(c_int), value :: set_to_none
    end function
    type(c_ptr) function c_module_parameter(module_, name) bind(c, name="ramet_module_parameter")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_module_save(module_, path) bind(c, name="ramet_module_save")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_module_load(module_, path) bind(c, name="ramet_module_load")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: path(*)
    end function
    type(c_ptr) function c_optimizer_new(module_, name, options) bind(c, name="ramet_optimizer_new")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: name(*), options(*)
    end function
    integer(c_int) function c_optimizer_free(optimizer) bind(c, name="ramet_optimizer_free")
      import
      type(c_ptr), value :: optimizer
    end function
    integer(c_int) function c_optimizer_zero_grad(optimizer, set_to_none) bind(c, name="ramet_optimizer_zero_grad")
      import
      type(c_ptr), value :: optimizer
      integer(c_int), value :: set_to_none
    end function
    integer(c_int) function c_optimizer_step(optimizer) bind(c, name="ramet_optimizer_step")
      import
      type(c_ptr), value :: optimizer
    end function
    integer(c_int) function c_optimizer_set_lr(optimizer, lr) bind(c, name="ramet_optimizer_set_lr")
      import
      type(c_ptr), value :: optimizer
      real(c_double), value :: lr
    end function
    integer(c_int) function c_optimizer_get_lr(optimizer, lr) bind(c, name="ramet_optimizer_get_lr")
      import
      type(c_ptr), value :: optimizer
      real(c_double), intent(inout) :: lr
    end function
    integer(c_int) function c_optimizer_save(optimizer, path) bind(c, name="ramet_optimizer_save")
      import
      type(c_ptr), value :: optimizer
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_optimizer_load(optimizer, path) bind(c, name="ramet_optimizer_load")
      import
      type(c_ptr), value :: optimizer
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_tensor_dtype(tensor, dtype) bind(c, name="ramet_tensor_dtype")
      import
      type(c_ptr), value :: tensor
      integer(c_int), intent(inout) :: dtype
    end function
    integer(c_int) function c_optimizer_use_masters(optimizer, on) bind(c, name="ramet_optimizer_use_masters")
      import
      type(c_ptr), value :: optimizer
      integer(c_int), value :: on
    end function
    integer(c_int) function c_optimizer_uses_masters(optimizer, on) bind(c, name="ramet_optimizer_uses_masters")
      import
      type(c_ptr), value :: optimizer
      integer(c_int), intent(inout) :: on
    end function
    integer(c_int) function c_autocast_enter(device_type, dtype, enabled) bind(c, name="ramet_autocast_enter")
      import
      integer(c_int), value :: device_type, dtype, enabled
    end function
    integer(c_int) function c_autocast_leave() bind(c, name="ramet_autocast_leave")
      import
    end function
    integer(c_int) function c_autocast_get(device_type, enabled, dtype) bind(c, name="ramet_autocast_get")
      import
      integer(c_int), value :: device_type
      integer(c_int), intent(inout) :: enabled, dtype
    end function
    type(c_ptr) function c_grad_scaler_new(options) bind(c, name="ramet_grad_scaler_new")
      import
      character(kind=c_char), intent(in) :: options(*)
    end function
    integer(c_int) function c_grad_scaler_free(scaler) bind(c, name="ramet_grad_scaler_free")
      import
      type(c_ptr), value :: scaler
    end function
    type(c_ptr) function c_grad_scaler_scale(scaler, outputs) bind(c, name="ramet_grad_scaler_scale")
      import
      type(c_ptr), value :: scaler, outputs
    end function
    integer(c_int) function c_grad_scaler_unscale(scaler, optimizer) bind(c, name="ramet_grad_scaler_unscale")
      import
      type(c_ptr), value :: scaler, optimizer
    end function
    integer(c_int) function c_grad_scaler_step(scaler, optimizer) bind(c, name="ramet_grad_scaler_step")
      import
      type(c_ptr), value :: scaler, optimizer
    end function
    integer(c_int) function c_grad_scaler_update(scaler) bind(c, name="ramet_grad_scaler_update")
      import
      type(c_ptr), value :: scaler
    end function
    integer(c_int) function c_grad_scaler_set_scale(scaler, scale) bind(c, name="ramet_grad_scaler_set_scale")
      import
      type(c_ptr), value :: scaler
      real(c_double), value :: scale
    end function
    integer(c_int) function c_grad_scaler_get_scale(scaler, scale) bind(c, name="ramet_grad_scaler_get_scale")
      import
      type(c_ptr), value :: scaler
      real(c_double), intent(inout) :: scale
    end function
    integer(c_int) function c_grad_scaler_save(scaler, path) bind(c, name="ramet_grad_scaler_save")
      import
      type(c_ptr), value :: scaler
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_grad_scaler_load(scaler, path) bind(c, name="ramet_grad_scaler_load")
      import
      type(c_ptr), value :: scaler
      character(kind=c_char), intent(in) :: path(*)
    end function
    type(c_ptr) function c_module_checkpoint(module_, input) bind(c, name="ramet_module_checkpoint")
      import
      type(c_ptr), value :: module_, input
    end function
    integer(c_int) function c_module_apply_lora(module_, options) bind(c, name="ramet_module_apply_lora")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: options(*)
    end function
    integer(c_int) function c_module_merge_lora(module_) bind(c, name="ramet_module_merge_lora")
      import
      type(c_ptr), value :: module_
    end function
    integer(c_int) function c_module_save_lora(module_, path) bind(c, name="ramet_module_save_lora")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_module_load_lora(module_, path) bind(c, name="ramet_module_load_lora")
      import
      type(c_ptr), value :: module_
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! ---- errors ----------------------------------------------------------------------------------------------------

  function ramet_last_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: at
    integer :: i
    at = c_last_error()
    call c_f_pointer(at, letters, [c_strlen(at)])
    allocate(character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  ! What becomes of a function's status: it is given on, or, where nobody asks, ends the program. For further
  ! modules over Ramet's C functions.
  subroutine ramet_settle(code, status)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: status
    if (present(status)) then
      status = code
    else if (code /= 0) then
      write (error_unit, '(a)') ramet_last_error()
      error stop 1
    end if
  end subroutine

  function made(handle, status) result(tensor)
    type(c_ptr), intent(in) :: handle
    integer, intent(out), optional :: status
    type(ramet_tensor) :: tensor
    tensor%handle = handle
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(handle)), status)
  end function

  integer(c_int) function flag(on)
    logical, intent(in) :: on
    flag = merge(1_c_int, 0_c_int, on)
  end function

  integer(c_int) function reduction_of(reduction)
    integer(c_int), intent(in), optional :: reduction
    reduction_of = ramet_mean_of
    if (present(reduction)) reduction_of = reduction
  end function

  ! ---- the library -----------------------------------------------------------------------------------------------

  subroutine ramet_seed(seed, status)
    integer, intent(in) :: seed
    integer, intent(out), optional :: status
    call ramet_settle(c_manual_seed(int(seed, c_int64_t)), status)
  end subroutine

  subroutine ramet_set_threads(threads, status)
    integer, intent(in) :: threads
    integer, intent(out), optional :: status
    call ramet_settle(c_set_num_threads(int(threads, c_int)), status)
  end subroutine

  ! Whether this thread's operations are recorded for a backward.
  subroutine ramet_record(on, status)
    logical, intent(in) :: on
    integer, intent(out), optional :: status
    call ramet_settle(c_set_grad_enabled(flag(on), c_null_ptr), status)
  end subroutine

  ! ---- arrays ----------------------------------------------------------------------------------------------------

  function view_of(at, dtype, sizes, contiguous_, reversed, status) result(tensor)
    type(c_ptr), intent(in) :: at
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: sizes(:)
    logical, intent(in) :: contiguous_
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(ramet_tensor) :: tensor
    integer(c_int64_t) :: dim
    dim = size(sizes, kind=c_int64_t)
    if (.not. contiguous_) then
      call ramet_settle(c_fail(gaps // c_null_char), status)
    else if (is_reversed(reversed)) then
      tensor = made(c_tensor_from_memory(at, dtype, dim, sizes(dim:1:-1), c_null_ptr), status)
    else
      tensor = made(c_tensor_from_column_major(at, dtype, dim, sizes), status)
    end if
  end function

  subroutine get_of(tensor, at, dtype, sizes, contiguous_, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    type(c_ptr), intent(in) :: at
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: sizes(:)
    logical, intent(in) :: contiguous_
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    integer(c_int64_t), target :: strides(size(sizes))
    integer(c_int64_t) :: dim
    integer :: d
    dim = size(sizes, kind=c_int64_t)
    if (.not. contiguous_) then
      call ramet_settle(c_fail(gaps // c_null_char), status)
    else if (is_reversed(reversed)) then
      call ramet_settle(c_tensor_copy_out(tensor%handle, at, dtype, dim, sizes(dim:1:-1), c_null_ptr), status)
    else
      do d = 1, size(sizes)
        strides(d) = product(max(sizes(:d - 1), 1_c_int64_t))
      end do
      call ramet_settle(c_tensor_copy_out(tensor%handle, at, dtype, dim, sizes, c_loc(strides)), status)
    end if
  end subroutine

  logical function is_reversed(reversed)
    logical, intent(in), optional :: reversed
    is_reversed = .false.
    if (present(reversed)) is_reversed = reversed
  end function

  type(ramet_tensor) function view_r32_1(a, reversed, status) result(tensor)
    real(real32), target, intent(in) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    tensor = view_of(at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r32_2(a, reversed, status) result(tensor)
    real(real32), target, intent(in) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    tensor = view_of(at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r32_3(a, reversed, status) result(tensor)
    real(real32), target, intent(in) :: a(:, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1))
    tensor = view_of(at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r32_4(a, reversed, status) result(tensor)
    real(real32), target, intent(in) :: a(:, :, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1, 1))
    tensor = view_of(at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r64_1(a, reversed, status) result(tensor)
    real(real64), target, intent(in) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    tensor = view_of(at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r64_2(a, reversed, status) result(tensor)
    real(real64), target, intent(in) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    tensor = view_of(at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r64_3(a, reversed, status) result(tensor)
    real(real64), target, intent(in) :: a(:, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1))
    tensor = view_of(at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_r64_4(a, reversed, status) result(tensor)
    real(real64), target, intent(in) :: a(:, :, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1, 1))
    tensor = view_of(at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_i32_1(a, reversed, status) result(tensor)
    integer(int32), target, intent(in) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    tensor = view_of(at, ramet_int32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_i32_2(a, reversed, status) result(tensor)
    integer(int32), target, intent(in) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    tensor = view_of(at, ramet_int32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_i64_1(a, reversed, status) result(tensor)
    integer(int64), target, intent(in) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    tensor = view_of(at, ramet_int64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  type(ramet_tensor) function view_i64_2(a, reversed, status) result(tensor)
    integer(int64), target, intent(in) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    tensor = view_of(at, ramet_int64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end function
  subroutine get_r32_1(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real32), target, intent(inout) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    call get_of(tensor, at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r32_2(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real32), target, intent(inout) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    call get_of(tensor, at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r32_3(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real32), target, intent(inout) :: a(:, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1))
    call get_of(tensor, at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r32_4(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real32), target, intent(inout) :: a(:, :, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1, 1))
    call get_of(tensor, at, ramet_float32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r64_1(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real64), target, intent(inout) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    call get_of(tensor, at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r64_2(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real64), target, intent(inout) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    call get_of(tensor, at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r64_3(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real64), target, intent(inout) :: a(:, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1))
    call get_of(tensor, at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_r64_4(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    real(real64), target, intent(inout) :: a(:, :, :, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1, 1, 1))
    call get_of(tensor, at, ramet_float64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_i32_1(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    integer(int32), target, intent(inout) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    call get_of(tensor, at, ramet_int32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_i32_2(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    integer(int32), target, intent(inout) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    call get_of(tensor, at, ramet_int32, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_i64_1(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    integer(int64), target, intent(inout) :: a(:)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1))
    call get_of(tensor, at, ramet_int64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine
  subroutine get_i64_2(tensor, a, reversed, status)
    type(ramet_tensor), intent(in) :: tensor
    integer(int64), target, intent(inout) :: a(:, :)
    logical, intent(in), optional :: reversed
    integer, intent(out), optional :: status
    type(c_ptr) :: at
    at = c_null_ptr
    if (size(a) > 0) at = c_loc(a(1, 1))
    call get_of(tensor, at, ramet_int64, shape(a, c_int64_t), is_contiguous(a), reversed, status)
  end subroutine

  ! ---- tensors ---------------------------------------------------------------------------------------------------

  ! The value of a tensor of one element.
  real(real64) function ramet_item(tensor, status) result(value)
    type(ramet_tensor), intent(in) :: tensor
    integer, intent(out), optional :: status
    value = 0
    call ramet_settle(c_tensor_item(tensor%handle, value), status)
  end function
  subroutine ramet_require_grad(tensor, on, status)
    type(ramet_tensor), intent(in) :: tensor
    logical, intent(in) :: on
    integer, intent(out), optional :: status
    call ramet_settle(c_tensor_set_requires_grad(tensor%handle, flag(on)), status)
  end subroutine
  type(ramet_tensor) function ramet_gradient(of, status) result(tensor)
    type(ramet_tensor), intent(in) :: of
    integer, intent(out), optional :: status
    tensor = made(c_tensor_grad(of%handle), status)
  end function
  ! `gradient`: the adjoint of the tensor's elements, where it has more than one.
  subroutine ramet_backward(tensor, gradient, status)
    type(ramet_tensor), intent(in) :: tensor
    type(ramet_tensor), intent(in), optional :: gradient
    integer, intent(out), optional :: status
    type(c_ptr) :: adjoint
    adjoint = c_null_ptr
    if (present(gradient)) adjoint = gradient%handle
    call ramet_settle(c_tensor_backward(tensor%handle, adjoint), status)
  end subroutine
  ! ramet_float32, ramet_bfloat16 ...
  integer(c_int) function ramet_dtype(tensor, status) result(dtype)
    type(ramet_tensor), intent(in) :: tensor
    integer, intent(out), optional :: status
    dtype = ramet_default_dtype
    call ramet_settle(c_tensor_dtype(tensor%handle, dtype), status)
  end function
  type(ramet_tensor) function ramet_cast(a, dtype, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    integer(c_int), intent(in) :: dtype
    integer, intent(out), optional :: status
    tensor = made(c_tensor_to(a%handle, dtype), status)
  end function
  type(ramet_tensor) function ramet_reshape(a, sizes, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    integer, intent(in) :: sizes(:)
    integer, intent(out), optional :: status
    tensor = made(c_tensor_reshape(a%handle, size(sizes, kind=c_int64_t), int(sizes, c_int64_t)), status)
  end function
  subroutine ramet_assign(to, from, status)
    type(ramet_tensor), intent(in) :: to, from
    integer, intent(out), optional :: status
    call ramet_settle(c_tensor_assign(to%handle, from%handle), status)
  end subroutine
  type(ramet_tensor) function ramet_add(a, b, status) result(tensor)
    type(ramet_tensor), intent(in) :: a, b
    integer, intent(out), optional :: status
    tensor = made(c_tensor_add(a%handle, b%handle), status)
  end function
  type(ramet_tensor) function ramet_sub(a, b, status) result(tensor)
    type(ramet_tensor), intent(in) :: a, b
    integer, intent(out), optional :: status
    tensor = made(c_tensor_sub(a%handle, b%handle), status)
  end function
  type(ramet_tensor) function ramet_mul(a, b, status) result(tensor)
    type(ramet_tensor), intent(in) :: a, b
    integer, intent(out), optional :: status
    tensor = made(c_tensor_mul(a%handle, b%handle), status)
  end function
  type(ramet_tensor) function ramet_scale(a, factor, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    real(real64), intent(in) :: factor
    integer, intent(out), optional :: status
    tensor = made(c_tensor_scale(a%handle, factor), status)
  end function
  type(ramet_tensor) function ramet_sum(a, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    integer, intent(out), optional :: status
    tensor = made(c_tensor_sum(a%handle), status)
  end function
  type(ramet_tensor) function ramet_mean(a, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    integer, intent(out), optional :: status
    tensor = made(c_tensor_mean(a%handle), status)
  end function
  ! `dim` counts from 0, and from the end below 0, as in C.
  type(ramet_tensor) function ramet_argmax(a, dim, status) result(tensor)
    type(ramet_tensor), intent(in) :: a
    integer, intent(in) :: dim
    integer, intent(out), optional :: status
    tensor = made(c_tensor_argmax(a%handle, int(dim, c_int64_t)), status)
  end function

  ! ---- losses: without `reduction` the mean ----------------------------------------------------------------------

  type(ramet_tensor) function ramet_mse_loss(input, goal, reduction, status) result(tensor)
    type(ramet_tensor), intent(in) :: input, goal
    integer(c_int), intent(in), optional :: reduction
    integer, intent(out), optional :: status
    tensor = made(c_mse_loss(input%handle, goal%handle, reduction_of(reduction)), status)
  end function
  type(ramet_tensor) function ramet_l1_loss(input, goal, reduction, status) result(tensor)
    type(ramet_tensor), intent(in) :: input, goal
    integer(c_int), intent(in), optional :: reduction
    integer, intent(out), optional :: status
    tensor = made(c_l1_loss(input%handle, goal%handle, reduction_of(reduction)), status)
  end function
  type(ramet_tensor) function ramet_bce_with_logits_loss(input, goal, reduction, status) result(tensor)
    type(ramet_tensor), intent(in) :: input, goal
    integer(c_int), intent(in), optional :: reduction
    integer, intent(out), optional :: status
    tensor = made(c_bce_with_logits_loss(input%handle, goal%handle, reduction_of(reduction)), status)
  end function
  type(ramet_tensor) function ramet_huber_loss(input, goal, delta, reduction, status) result(tensor)
    type(ramet_tensor), intent(in) :: input, goal
    real(real64), intent(in) :: delta
    integer(c_int), intent(in), optional :: reduction
    integer, intent(out), optional :: status
    tensor = made(c_huber_loss(input%handle, goal%handle, reduction_of(reduction), delta), status)
  end function
  ! `goal`: classes from 0, as int64.
  type(ramet_tensor) function ramet_cross_entropy_loss(input, goal, reduction, status) result(tensor)
    type(ramet_tensor), intent(in) :: input, goal
    integer(c_int), intent(in), optional :: reduction
    integer, intent(out), optional :: status
    tensor = made(c_cross_entropy_loss(input%handle, goal%handle, c_null_ptr, reduction_of(reduction), &
        0.0_c_double), status)
  end function

  ! ---- modules ---------------------------------------------------------------------------------------------------

  type(ramet_module) function ramet_module_new(json, weights, status) result(net)
    character(*), intent(in) :: json
    character(*), intent(in), optional :: weights
    integer, intent(out), optional :: status
    character(:, c_char), allocatable, target :: path
    if (present(weights)) then
      path = trim(weights) // c_null_char
      net%handle = c_module_new(json // c_null_char, c_loc(path))
    else
      net%handle = c_module_new(json // c_null_char, c_null_ptr)
    end if
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(net%handle)), status)
  end function
  type(ramet_tensor) function ramet_forward(net, input, status) result(tensor)
    type(ramet_module), intent(in) :: net
    type(ramet_tensor), intent(in) :: input
    integer, intent(out), optional :: status
    tensor = made(c_module_forward(net%handle, input%handle), status)
  end function
  subroutine ramet_train(net, on, status)
    type(ramet_module), intent(in) :: net
    logical, intent(in) :: on
    integer, intent(out), optional :: status
    call ramet_settle(c_module_train(net%handle, flag(on)), status)
  end subroutine
  type(ramet_tensor) function ramet_parameter(net, name, status) result(tensor)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: name
    integer, intent(out), optional :: status
    tensor = made(c_module_parameter(net%handle, trim(name) // c_null_char), status)
  end function
  subroutine zero_grad_module(net, status)
    type(ramet_module), intent(in) :: net
    integer, intent(out), optional :: status
    call ramet_settle(c_module_zero_grad(net%handle, 1_c_int), status)
  end subroutine
  subroutine save_module(net, path, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_module_save(net%handle, trim(path) // c_null_char), status)
  end subroutine
  subroutine load_module(net, path, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_module_load(net%handle, trim(path) // c_null_char), status)
  end subroutine

  ! ---- optimizers ------------------------------------------------------------------------------------------------

  type(ramet_optimizer) function ramet_optimizer_new(net, name, options, status) result(optimizer)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: name
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: status
    character(:), allocatable :: json
    json = '{}'
    if (present(options)) json = options
    optimizer%handle = c_optimizer_new(net%handle, trim(name) // c_null_char, json // c_null_char)
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(optimizer%handle)), status)
  end function
  subroutine step_optimizer(optimizer, status)
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_step(optimizer%handle), status)
  end subroutine
  subroutine zero_grad_optimizer(optimizer, status)
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_zero_grad(optimizer%handle, 1_c_int), status)
  end subroutine
  subroutine ramet_set_lr(optimizer, lr, status)
    type(ramet_optimizer), intent(in) :: optimizer
    real(real64), intent(in) :: lr
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_set_lr(optimizer%handle, lr), status)
  end subroutine
  real(real64) function ramet_lr(optimizer, status) result(lr)
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    lr = 0
    call ramet_settle(c_optimizer_get_lr(optimizer%handle, lr), status)
  end function
  ! Whether parameters of 16 bits have float32 masters.
  subroutine ramet_use_masters(optimizer, on, status)
    type(ramet_optimizer), intent(in) :: optimizer
    logical, intent(in) :: on
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_use_masters(optimizer%handle, flag(on)), status)
  end subroutine
  logical function ramet_uses_masters(optimizer, status) result(on)
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    integer(c_int) :: number
    number = 0
    call ramet_settle(c_optimizer_uses_masters(optimizer%handle, number), status)
    on = number /= 0
  end function
  subroutine save_optimizer(optimizer, path, status)
    type(ramet_optimizer), intent(in) :: optimizer
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_save(optimizer%handle, trim(path) // c_null_char), status)
  end subroutine
  subroutine load_optimizer(optimizer, path, status)
    type(ramet_optimizer), intent(in) :: optimizer
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_optimizer_load(optimizer%handle, trim(path) // c_null_char), status)
  end subroutine

  ! ---- mixed precision -------------------------------------------------------------------------------------------

  ! Until ramet_autocast_leave this thread's operations compute in 16 bits where that is safe; with enabled=.false. they do not.
  subroutine ramet_autocast_enter(dtype, device_type, enabled, status)
    integer(c_int), intent(in), optional :: dtype, device_type
    logical, intent(in), optional :: enabled
    integer, intent(out), optional :: status
    integer(c_int) :: lower, device, on
    lower = ramet_default_dtype
    if (present(dtype)) lower = dtype
    device = ramet_cpu
    if (present(device_type)) device = device_type
    on = 1
    if (present(enabled)) on = flag(enabled)
    call ramet_settle(c_autocast_enter(device, lower, on), status)
  end subroutine
  subroutine ramet_autocast_leave(status)
    integer, intent(out), optional :: status
    call ramet_settle(c_autocast_leave(), status)
  end subroutine
  ! What is in force on this thread.
  subroutine ramet_autocast_get(enabled, dtype, device_type, status)
    logical, intent(out) :: enabled
    integer(c_int), intent(out) :: dtype
    integer(c_int), intent(in), optional :: device_type
    integer, intent(out), optional :: status
    integer(c_int) :: device, on
    device = ramet_cpu
    if (present(device_type)) device = device_type
    on = 0
    dtype = ramet_default_dtype
    call ramet_settle(c_autocast_get(device, on, dtype), status)
    enabled = on /= 0
  end subroutine

  type(ramet_grad_scaler) function ramet_grad_scaler_new(options, status) result(scaler)
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: status
    character(:), allocatable :: json
    json = '{}'
    if (present(options)) json = options
    scaler%handle = c_grad_scaler_new(json // c_null_char)
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(scaler%handle)), status)
  end function
  type(ramet_tensor) function ramet_scale_loss(scaler, loss, status) result(tensor)
    type(ramet_grad_scaler), intent(in) :: scaler
    type(ramet_tensor), intent(in) :: loss
    integer, intent(out), optional :: status
    tensor = made(c_grad_scaler_scale(scaler%handle, loss%handle), status)
  end function
  subroutine ramet_unscale(scaler, optimizer, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_unscale(scaler%handle, optimizer%handle), status)
  end subroutine
  ! ramet_step(scaler, optimizer): none where a gradient is infinite or NaN.
  subroutine step_scaled(scaler, optimizer, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    type(ramet_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_step(scaler%handle, optimizer%handle), status)
  end subroutine
  subroutine ramet_update(scaler, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_update(scaler%handle), status)
  end subroutine
  subroutine ramet_set_scale(scaler, scale, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    real(real64), intent(in) :: scale
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_set_scale(scaler%handle, scale), status)
  end subroutine
  real(real64) function ramet_get_scale(scaler, status) result(scale)
    type(ramet_grad_scaler), intent(in) :: scaler
    integer, intent(out), optional :: status
    scale = 0
    call ramet_settle(c_grad_scaler_get_scale(scaler%handle, scale), status)
  end function
  subroutine save_scaler(scaler, path, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_save(scaler%handle, trim(path) // c_null_char), status)
  end subroutine
  subroutine load_scaler(scaler, path, status)
    type(ramet_grad_scaler), intent(in) :: scaler
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_grad_scaler_load(scaler%handle, trim(path) // c_null_char), status)
  end subroutine

  ! ---- less memory -----------------------------------------------------------------------------------------------

  ! As ramet_forward; the backward runs the module again, and the forward keeps nothing for it.
  type(ramet_tensor) function ramet_checkpoint(net, input, status) result(tensor)
    type(ramet_module), intent(in) :: net
    type(ramet_tensor), intent(in) :: input
    integer, intent(out), optional :: status
    tensor = made(c_module_checkpoint(net%handle, input%handle), status)
  end function
  ! `options`: '{"rank": 8, "alpha": 16, "layers": ["0", "2"]}'.
  subroutine ramet_apply_lora(net, options, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: options
    integer, intent(out), optional :: status
    call ramet_settle(c_module_apply_lora(net%handle, options // c_null_char), status)
  end subroutine
  subroutine ramet_merge_lora(net, status)
    type(ramet_module), intent(in) :: net
    integer, intent(out), optional :: status
    call ramet_settle(c_module_merge_lora(net%handle), status)
  end subroutine
  subroutine ramet_save_lora(net, path, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_module_save_lora(net%handle, trim(path) // c_null_char), status)
  end subroutine
  subroutine ramet_load_lora(net, path, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_module_load_lora(net%handle, trim(path) // c_null_char), status)
  end subroutine

  ! ---- ends: the handle is NULL afterwards -----------------------------------------------------------------------

  impure elemental subroutine free_tensor(it)
    type(ramet_tensor), intent(inout) :: it
    call ramet_settle(c_tensor_free(it%handle))
    it%handle = c_null_ptr
  end subroutine
  impure elemental subroutine free_module(it)
    type(ramet_module), intent(inout) :: it
    call ramet_settle(c_module_free(it%handle))
    it%handle = c_null_ptr
  end subroutine
  impure elemental subroutine free_optimizer(it)
    type(ramet_optimizer), intent(inout) :: it
    call ramet_settle(c_optimizer_free(it%handle))
    it%handle = c_null_ptr
  end subroutine
  impure elemental subroutine free_scaler(it)
    type(ramet_grad_scaler), intent(inout) :: it
    call ramet_settle(c_grad_scaler_free(it%handle))
    it%handle = c_null_ptr
  end subroutine
end module ramet
