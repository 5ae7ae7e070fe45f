"""Which of Ramet's public names stand where in LibTorch's namespaces: what names.py cannot see in the headers.

Each public name has a place: upstream.txt lists it, or one of the lists here does. `names.py --check` names those without.
"""

# In namespace c10; at and torch have them by their using-directives, as in LibTorch.
C10 = """
    ArrayRef AutoGradMode BFloat16 Backend CppTypeToScalarType DataPtr Device DeviceGuard DeviceIndex DeviceType Error Event
    Dict GradMode Half IValue IndexError InferenceMode IntArrayRef Layout LinAlgError List MemoryFormat NoGradGuard NotImplementedError
    OneOf OptionalIntArrayRef OutOfMemoryError Scalar ScalarType SourceLocation Storage StorageImpl Stream TensorImpl TensorOptions
    backendToDeviceType canCast contiguous_strides device device_index dtype elementSize fmap get_if holds_alternative
    get_default_dtype get_default_dtype_as_scalartype isComplexType isFloatingType isIntegralType
    isReducedFloatingType isSignedType kBFloat16 kBool kByte kCPU kCUDA kChar kDouble kFloat kHIP kHalf kInt kLong kMPS kShort kUInt16 kUInt32 kXPU
    kStrided layout memory_format nullopt nullopt_t optTypeMetaToScalarType optional promoteTypes requires_grad
    scalarTypeToTypeMeta scalar_to_tensor set_default_dtype toString typeMetaToScalarType
""".split()

# In namespace torch alone.
TORCH = """
    Dtype ExpandingArray ExpandingArrayWithOptionalElem OrderedDict kArea kBatchMean kBicubic kBilinear kBorder
    kCircular kConstant kConv1D kConv2D kConv3D kConvTranspose1D kConvTranspose2D kConvTranspose3D kF16 kF32 kF64
    kFanIn kFanOut kFloat16 kFloat32 kFloat64 kGELU kGRU kI16 kI32 kI64 kI8 kInt16 kInt32 kInt64 kInt8 kLSTM
    kLeakyReLU kLinear kMax kMean kMish kNearest kNearestExact kNone kRNN_RELU kRNN_TANH kReLU kReflect kReflection
    kReplicate kSame kSiLU kSigmoid kSum kTanh kTrilinear kU16 kU32 kU8 kUInt8 kValid kZeros load pickle_load pickle_save save
""".split()

# Declared in torch and in at by LibTorch, so that a program may add overloads to torch's.
TORCH_AND_AT = """
    AutoGradMode NoGradGuard Tensor arange bartlett_window blackman_window empty empty_like empty_strided eye from_blob
    full full_like get_num_threads hamming_window hann_window kaiser_window linspace logspace normal ones
    ones_like rand rand_like randint randint_like randn randn_like randperm range scalar_tensor set_num_threads set_printoption_sci_mode tensor tril_indices triu_indices zeros zeros_like
""".split()

# Whole namespaces that LibTorch does not have.
OWN_SPACES = "capture devices gpu parallel pool".split()

# Namespaces of at; torch has them by its using-directive, as in LibTorch.
AT_SPACES = "Reduction autocast indexing".split()

# Also in namespace caffe2.
CAFFE2 = "TypeMeta".split()

# Names that LibTorch does not have in these namespaces, or has for something else. A program may have classes and functions of its
# own with these names, in namespace torch or next to a `using namespace torch`. So these are ramet::NAME only.
OWN = {
    "": """
        AutocastGuard AutogradSlot CaptureState Captured CapturedCounters Checkpoint ChromeTrace Context EnableGradGuard
        GeneratorKind GeneratorState HostWait KernelCall KernelObserver LogHandler LogLevel LogListener MemoryStats Mersenne Observer PhiloxKey
        RandomRegion RecordScope RecordWait ReplicaRandom ReplicaRandomGuard ReplicaRandomRef RestoreState ScalarTypeOf Scope
        ScopedValue ShardNumbers add_observer add_ref batch_norm_relu_max_pool2d broadcast_sizes compute_type config
        cpu_device_count cross_entropy_loss_consuming current_device custom_bwd custom_fwd debug_memory default_generator deviceTypeToBackend describe drop_ref
        empty_cache expand fail fused_gru_cell fused_lstm_cell generator_kind generator_states initial_seed is_floating is_integral is_unsigned item_size kDefaultSeed
        kInlineRank kMaxDevices kMaxDevicesPerType kMaxRank kPrintLine kScalarTypes kUndefinedTensor linear_cross_entropy linear_gelu_linear load_as_double log_to_stderr manual_seed
        logging max_parallel_slots memory_stats monotonic_ns name_of non_overlapping_and_dense observed packed_scaled_dot_product_attention parallel_grain
        parallel_tasks pinned_memory register_thread_local_state remove_observer repeat reserve_random
        reset_peak_memory_stats residual_layer_norm resolve runtime_config same_sizes same_strides scope_path
        set_generator_kind set_generator_states set_log_handler set_memory_limit set_thread_log_listener short_name_of shortest_text
        tensor_list to_doubles type_string unregister_thread_local_state version view wait_pending wrap_dim
    """.split(),
    "autograd": """
        AddArguments Argument Arguments
        CheckedFunction CheckpointFrame
        ForwardContext ForwardContextGuard FunctionNode GradcheckOptions GraphPicture
        Input LambdaNode LeafBucket ListNode NoGradGuard NodeCount NodeExtra NodePtr RawEdge ReduceBucket Saved SavedOutput SavesNothing
        add_reduce_edge attach backward_twice check_fits checkpoint collect_graph copy_reversed copy_values copy_values_later
        count_node count_node_slowly edge_of fill_values grad_accumulator gradcheck gradgradcheck in_turn
        index_add_zeros is_recomputing is_recorded keeps_tensors make_node new_node node_count nodes_alive note_meeting record
        record_list recording refuse_inference_leaf release renew_view repeated_positions save save_if
        save_output saves_nothing scatter_zeros set_grad_destination set_reduce_bucket softmax_backward tell_made tell_saved value_of view_wants_grad
        wants_grad with_history_of_now zero_grad
    """.split(),
    "cuda": """
        card current_stream
    """.split(),
    "data": """
        IdxHeader find_idx read_idx read_idx_header write_idx
    """.split(),
    "data::datasets": """
        GatherDataset
    """.split(),
    "nn": """
        BatchNormReLUMaxPool2d BatchNormReLUMaxPool2dImpl BufferPolicy ComputedParameter DropoutImplBase FlatParameters
        FlatRun FlatStore ForwardDefaults ForwardHook ForwardPreHook ForwardScope LoRALinear LoRALinearImpl LoRALinearOptions LoRAOptions
        ModuleHooks RMSNorm RMSNormImpl RMSNormOptions ReplicaMeeting ShardsElsewhere apply_lora call convert_sync_batchnorm flat_padded
        flatten_parameters kFlatAlign load_lora_state_dict lora_parameters lora_state_dict merge_lora
    """.split(),
    "nn::functional": """
        RMSNormFuncOptions residual_layer_norm rms_norm
    """.split(),
    "nn::parallel": """
        Broadcast DataParallel DataParallelCall DataParallelOptions DeviceCapacity Extent FailedReplica GatherPlan
        GradBucket How Join NoScatter PerReplica PostReduceHook PreReduceHook ReduceOrder ReplicaError ReplicaOptions
        ReplicaSet Scalars ScatterPlan Spread clear_data_parallel_cache default_devices imbalance_warning
        last_failed_replica replica_index replica_state shared
    """.split(),
    "nn::utils": """
        clip_grads_with_norm_ get_total_norm remove_spectral_norm remove_weight_norm spectral_norm weight_norm
    """.split(),
    "optim": """
        ASGD ASGDOptions ASGDParamState Adadelta AdadeltaOptions AdadeltaParamState Adamax AdamaxOptions
        AdamaxParamState AveragedModel AveragedModelImpl AveragedModelOptions AvgFn ChainedScheduler ConstantLR
        CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR CyclicLROptions ExponentialLR FusedOptimizer
        FusedParamState GradScaler GradScalerOptions GradientAccumulation LambdaLR LinearLR Lion LionOptions LionParamState MultiAvgFn MultiStepLR
        MultiplicativeLR Muon MuonOptions MuonParamState NAdam NAdamOptions NAdamParamState OneCycleLR
        OneCycleLROptions PolynomialLR RAdam RAdamOptions RAdamParamState Rprop RpropOptions RpropParamState SWALR
        SequentialLR get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn get_swa_multi_avg_fn update_bn
    """.split(),
    "serialize": """
        Safetensors WriteFunction load_safetensors load_safetensors_index map_safetensors map_safetensors_index save_safetensors
        save_safetensors_index
    """.split(),
}

# Of these, the names that the compatibility headers themselves declare in LibTorch's namespaces.
NEVER = {"": ["Context", "RecordScope", "manual_seed"]}

# Whole namespaces of LibTorch's that upstream.txt leaves out.
LIBTORCH_SPACES = "Reduction enumtype indexing mps xpu".split()

# LibTorch's names that upstream.txt leaves out, by namespace.
MORE = {
    "": """
        DefaultPtrTraits DeprecatedTypeProperties DeviceTypeName Generator GenericPackedTensorAccessor
        PackedTensorAccessor PackedTensorAccessor32 PackedTensorAccessor64 RestrictPtrTraits TensorAccessor
        TensorBase TensorList ThreadLocalState ThreadLocalStateGuard _sample_dirichlet _unique _unique2
        _unsafe_view _upsample_bicubic2d_aa _upsample_bicubic2d_aa_out _upsample_bilinear2d_aa
        _upsample_bilinear2d_aa_out _upsample_nearest_exact1d _upsample_nearest_exact1d_out
        _upsample_nearest_exact2d _upsample_nearest_exact2d_out _upsample_nearest_exact3d
        _upsample_nearest_exact3d_out col2im col2im_out embedding_renorm embedding_renorm_
        embedding_renorm_out frobenius_norm frobenius_norm_out gelu_backward im2col im2col_out index_copy
        index_copy_out leaky_relu_backward native_channel_shuffle native_dropout_backward nuclear_norm
        nuclear_norm_out sigmoid_backward silu_backward softplus_backward tanh_backward threshold_backward
    """.split(),
    "autograd": """
        AccumulateGrad AutoGradMode Broadcast DelayedError Gather GradMode GraphTask IndexRange InferenceMode
        Node RecurrentResult ReduceAddCoalesced Scatter UndefinedGrad UndefinedGradBackward edge_list
        make_variable move_to_zeros offset_of tensor_list
    """.split(),
    "jit": ["Module"],
    "autocast": """
        cached_cast clear_cache decrement_nesting get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
        increment_nesting is_autocast_available is_autocast_cache_enabled is_autocast_enabled is_cpu_enabled is_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_dtype set_autocast_enabled
        set_autocast_gpu_dtype set_cpu_enabled set_enabled
    """.split(),
    "cuda": """
        cudnn_is_available
    """.split(),
    "data::example": """
        NoTarget
    """.split(),
    "nn": """
        AdaptiveAvgPoolImpl AdaptiveMaxPoolImpl AnyModule AnyValue AvgPoolImpl BatchNormImplBase Cloneable
        ConstantPadImpl ConvNdImpl ConvTransposeNdImpl EmbeddingBagMode InstanceNormImpl MaxPoolImpl Module
        ModuleHolder NamedAnyModule ReflectionPadImpl ReplicationPadImpl ZeroPadImpl activation_t
    """.split(),
    "nn::init": """
        _calculate_fan_in_and_fan_out
    """.split(),
    "nn::parallel": """
        data_parallel parallel_apply replicate replicate_grad_edges
    """.split(),
}
