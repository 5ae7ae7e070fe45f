! Training in 16 bits from Fortran: autocast to bfloat16; parameters of float16 with masters and a loss scale; LoRA branches on
! top of the frozen network. Each line that fails says which.
program mixed_precision
  use, intrinsic :: iso_c_binding, only: c_int, c_associated
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ramet
  implicit none
  integer, parameter :: samples = 64
  character(*), parameter :: layers = '"layers": [{"type": "Linear", "in_features": 2, "out_features": 16}, ' // &
    '{"type": "Tanh"}, {"type": "Linear", "in_features": 16, "out_features": 1}]'
  real(real32), target :: points(2, samples), wanted(1, samples)
  type(ramet_tensor) :: inputs, goals
  type(ramet_module) :: net
  integer :: i

  do i = 1, samples
    points(:, i) = [sin(1.7_real32 * i), cos(2.9_real32 * i)]
    wanted(1, i) = points(1, i) * points(2, i)
  end do
  inputs = ramet_view(points, reversed=.true.)
  goals = ramet_view(wanted, reversed=.true.)

  call ramet_seed(1)
  net = ramet_module_new('{' // layers // '}')
  call with_autocast(net)
  call without_handles()
  call with_branches(net)
  call ramet_free(net)
  call with_a_scale()
  call ramet_free(inputs)
  call ramet_free(goals)
  print '(a)', 'mixed_precision: OK'

contains

  ! Matrix products in bfloat16; parameters, their gradients and the optimizer in float32.
  subroutine with_autocast(model)
    type(ramet_module), intent(in) :: model
    type(ramet_optimizer) :: adam
    type(ramet_tensor) :: outputs, loss, weight, gradient, same_bits
    real(real64) :: first, now
    logical :: on
    integer(c_int) :: dtype
    integer :: step, status
    adam = ramet_optimizer_new(model, 'Adam', '{"lr": 0.02}')
    first = 0
    now = 0
    do step = 1, 150
      call ramet_zero_grad(adam)
      call ramet_autocast_enter(ramet_bfloat16)
      outputs = ramet_forward(model, inputs)
      call check(ramet_dtype(outputs) == ramet_bfloat16, 'autocast computes in bfloat16')
      loss = ramet_mse_loss(outputs, goals)
      call ramet_autocast_leave()
      call check(ramet_dtype(loss) == ramet_float32, 'a loss is float32')
      call ramet_backward(loss)
      now = ramet_item(loss)
      if (step == 1) first = now
      call ramet_step(adam)
      call ramet_free(outputs)
      call ramet_free(loss)
    end do
    call check(now < first / 4, 'it learns')
    print '(2(a, f8.5))', 'mixed_precision: autocast: loss ', first, ' -> ', now
    weight = ramet_parameter(model, '0.weight')
    gradient = ramet_gradient(weight)
    call check(ramet_dtype(gradient) == ramet_float32, 'a float32 parameter has a float32 gradient')
    call ramet_free(gradient)
    call ramet_free(weight)

    ! The module's forward once more in the backward pass, with the same bits.
    call ramet_autocast_enter()
    call ramet_autocast_get(on, dtype)
    call check(on .and. dtype == ramet_bfloat16, 'what is in force')
    outputs = ramet_forward(model, inputs)
    same_bits = ramet_checkpoint(model, inputs)
    call ramet_autocast_leave()
    loss = ramet_mse_loss(same_bits, outputs)
    call check(ramet_item(loss) <= 0, 'a checkpoint computes the same bits')
    call ramet_backward(loss)
    call ramet_free(loss)
    call ramet_free(same_bits)
    call ramet_free(outputs)
    call ramet_autocast_leave(status)
    call check(status /= 0 .and. index(ramet_last_error(), 'has entered no region') > 0, 'a region that is not there')
    call ramet_autocast_enter(ramet_float32, status=status)
    call check(status /= 0 .and. index(ramet_last_error(), 'dtype: expected RAMET_BFLOAT16') > 0, 'a dtype of 32 bits')
    call ramet_autocast_get(on, dtype)
    call check(.not. on, 'what failed has entered nothing')
    call ramet_free(adam)
  end subroutine

  ! What a call gives that has failed, also where the compiler optimizes.
  subroutine without_handles()
    type(ramet_tensor) :: no_tensor
    type(ramet_optimizer) :: no_optimizer
    type(ramet_grad_scaler) :: no_scaler
    integer :: status(6)
    real(real64) :: numbers(3)
    logical :: masters, on
    integer(c_int) :: dtype, lower
    numbers = [ramet_item(no_tensor, status(1)), ramet_lr(no_optimizer, status(2)), ramet_get_scale(no_scaler, status(3))]
    call check(maxval(abs(numbers)) <= 0, 'the numbers of nothing')
    dtype = ramet_dtype(no_tensor, status(4))
    call check(dtype == ramet_default_dtype, 'the dtype of no tensor')
    masters = ramet_uses_masters(no_optimizer, status(5))
    call check(.not. masters, 'the masters of no optimizer')
    call ramet_autocast_get(on, lower, 9_c_int, status(6))
    call check(.not. on .and. lower == ramet_default_dtype, 'autocast of no device')
    call check(all(status /= 0), 'each of them is an error')
  end subroutine

  ! Few numbers on top of a network that stays.
  subroutine with_branches(model)
    type(ramet_module), intent(in) :: model
    type(ramet_module) :: other
    type(ramet_optimizer) :: adam
    type(ramet_tensor) :: outputs, loss
    real(real64) :: first, now
    integer :: step, status
    real(real32), target :: shifted(1, samples), before(1, samples), after(1, samples)
    type(ramet_tensor) :: new_goals
    shifted = wanted + 0.5_real32 * points(1:1, :)
    new_goals = ramet_view(shifted, reversed=.true.)
    call ramet_apply_lora(model, '{"rank": 0, "alpha": 4}', status)
    call check(status /= 0, 'a branch of rank 0')
    call ramet_apply_lora(model, '{"rank": 2, "alpha": 4, "layers": ["0"]}')
    adam = ramet_optimizer_new(model, 'Adam', '{"lr": 0.05}')
    first = 0
    now = 0
    do step = 1, 100
      call ramet_zero_grad(adam)
      outputs = ramet_forward(model, inputs)
      loss = ramet_mse_loss(outputs, new_goals)
      call ramet_backward(loss)
      now = ramet_item(loss)
      if (step == 1) first = now
      call ramet_step(adam)
      call ramet_free(outputs)
      call ramet_free(loss)
    end do
    call check(now < first / 2, 'branches learn')
    print '(2(a, f8.5))', 'mixed_precision: LoRA: loss ', first, ' -> ', now
    call ramet_save_lora(model, 'mixed_precision.safetensors')
    call ramet_save(model, 'mixed_precision_whole.safetensors')
    outputs = ramet_forward(model, inputs)
    call ramet_get(outputs, before, reversed=.true.)
    call ramet_free(outputs)
    call ramet_merge_lora(model)
    outputs = ramet_forward(model, inputs)
    call ramet_get(outputs, after, reversed=.true.)
    call ramet_free(outputs)
    call check(maxval(abs(after - before)) < 1e-5_real32, 'merged, it is the same function')
    call ramet_merge_lora(model, status)
    call check(status /= 0 .and. index(ramet_last_error(), 'got no LoRA branch') > 0, 'nothing left to merge')
    ! The files: the whole network, then the branches alone.
    other = ramet_module_new('{' // layers // '}')
    call ramet_apply_lora(other, '{"rank": 2, "alpha": 4, "layers": ["0"]}')
    call ramet_load(other, 'mixed_precision_whole.safetensors')
    call ramet_load_lora(other, 'mixed_precision.safetensors')
    outputs = ramet_forward(other, inputs)
    call ramet_get(outputs, after, reversed=.true.)
    call ramet_free(outputs)
    call check(all(after == before), 'branches come back from their file')
    call ramet_free(other)
    call ramet_free(adam)
    call ramet_free(new_goals)
  end subroutine

  ! Parameters of float16: the optimizer keeps a float32 master of each, and a scale keeps small gradients from vanishing.
  subroutine with_a_scale()
    type(ramet_module) :: model
    type(ramet_optimizer) :: adam
    type(ramet_grad_scaler) :: scaler, other
    type(ramet_tensor) :: halves, outputs, answers, loss, scaled
    real(real64) :: first, now
    integer :: step, status
    call ramet_seed(1)
    model = ramet_module_new('{"dtype": "float16", ' // layers // '}')
    adam = ramet_optimizer_new(model, 'Adam', '{"lr": 0.02}')
    call check(ramet_uses_masters(adam), 'masters are kept')
    scaler = ramet_grad_scaler_new('{"init_scale": 1024, "growth_interval": 50}')
    halves = ramet_cast(inputs, ramet_float16)
    call check(ramet_dtype(halves) == ramet_float16, 'a tensor of float16')
    first = 0
    now = 0
    do step = 1, 150
      call ramet_zero_grad(adam)
      outputs = ramet_forward(model, halves)
      answers = ramet_cast(outputs, ramet_float32)
      loss = ramet_mse_loss(answers, goals)
      scaled = ramet_scale_loss(scaler, loss)
      call ramet_backward(scaled)
      now = ramet_item(loss)
      if (step == 1) first = now
      if (step == 2) then
        call ramet_unscale(scaler, adam)
        call ramet_unscale(scaler, adam, status)
        call check(status /= 0 .and. index(ramet_last_error(), 'has already been called') > 0, 'gradients are divided once')
      end if
      call ramet_step(scaler, adam)
      call ramet_update(scaler)
      call ramet_free(scaled)
      call ramet_free(loss)
      call ramet_free(answers)
      call ramet_free(outputs)
    end do
    call check(now < first / 4, 'float16 learns with a scale')
    call check(nint(ramet_get_scale(scaler)) == 8192, 'the scale has grown three times')
    print '(2(a, f8.5))', 'mixed_precision: float16: loss ', first, ' -> ', now
    call ramet_save(scaler, 'mixed_precision.scaler')
    other = ramet_grad_scaler_new()
    call ramet_load(other, 'mixed_precision.scaler')
    call check(nint(ramet_get_scale(other)) == 8192, 'a file carries the scale')
    call ramet_set_scale(other, 2.0_real64)
    call check(nint(ramet_get_scale(other)) == 2, 'a scale that the program sets')
    call ramet_set_scale(other, -1.0_real64, status)
    call check(status /= 0, 'a scale below 0')
    call ramet_use_masters(adam, .false.)
    call check(.not. ramet_uses_masters(adam), 'masters are not kept')
    call ramet_free(halves)
    call ramet_free(scaler)
    call check(.not. c_associated(scaler%handle), 'a freed handle is NULL')
    call ramet_free(other)
    call ramet_free(adam)
    call ramet_free(model)
  end subroutine

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (.not. ok) then
      print '(2a)', 'mixed_precision: FAILED: ', what
      print '(a)', ramet_last_error()
      error stop 1
    end if
  end subroutine
end program
