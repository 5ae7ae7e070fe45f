// Ramet's public names that LibTorch does not have, in torch too. Written by tools/compat/names.py: do not edit.
//
// Only for programs that ask for it by including this: a LibTorch program may have a class Checkpoint of its own beside its
// `using namespace torch`.
#pragma once
#include <ramet/compat/torch.h>

namespace torch {
using ::ramet::AutogradSlot;  // Ramet's class: include the door, no forward declaration
using ::ramet::CaptureState;
using ::ramet::Captured;  // Ramet's class: include the door, no forward declaration
using ::ramet::CapturedCounters;  // Ramet's class: include the door, no forward declaration
using ::ramet::Checkpoint;  // Ramet's class: include the door, no forward declaration
using ::ramet::ChromeTrace;  // Ramet's class: include the door, no forward declaration
using ::ramet::EnableGradGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::GeneratorState;  // Ramet's class: include the door, no forward declaration
using ::ramet::HostWait;  // Ramet's class: include the door, no forward declaration
using ::ramet::KernelCall;  // Ramet's class: include the door, no forward declaration
using ::ramet::KernelObserver;
using ::ramet::LogHandler;
using ::ramet::LogLevel;  // Ramet's class: include the door, no forward declaration
using ::ramet::LogListener;
using ::ramet::MemoryStats;  // Ramet's class: include the door, no forward declaration
using ::ramet::Observer;  // Ramet's class: include the door, no forward declaration
using ::ramet::PhiloxKey;  // Ramet's class: include the door, no forward declaration
using ::ramet::RandomRegion;  // Ramet's class: include the door, no forward declaration
using ::ramet::RecordWait;  // Ramet's class: include the door, no forward declaration
using ::ramet::ReplicaRandom;  // Ramet's class: include the door, no forward declaration
using ::ramet::ReplicaRandomGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::ReplicaRandomRef;  // Ramet's class: include the door, no forward declaration
using ::ramet::RestoreState;
using ::ramet::ScalarTypeOf;  // Ramet's class: include the door, no forward declaration
using ::ramet::Scope;  // Ramet's class: include the door, no forward declaration
using ::ramet::ScopedValue;  // Ramet's class: include the door, no forward declaration
using ::ramet::ShardNumbers;  // Ramet's class: include the door, no forward declaration
using ::ramet::add_observer;
using ::ramet::add_ref;
using ::ramet::batch_norm_relu_max_pool2d;
using ::ramet::broadcast_sizes;
using ::ramet::compute_type;
using ::ramet::config;
using ::ramet::cpu_device_count;
using ::ramet::cross_entropy_loss_consuming;
using ::ramet::current_device;
using ::ramet::debug_memory;
using ::ramet::default_generator;
using ::ramet::describe;
using ::ramet::deviceTypeToBackend;
using ::ramet::drop_ref;
using ::ramet::empty_cache;
using ::ramet::expand;
using ::ramet::fail;
using ::ramet::fused_gru_cell;
using ::ramet::fused_lstm_cell;
using ::ramet::generator_states;
using ::ramet::initial_seed;
using ::ramet::is_floating;
using ::ramet::is_integral;
using ::ramet::is_unsigned;
using ::ramet::item_size;
using ::ramet::kDefaultSeed;
using ::ramet::kInlineRank;
using ::ramet::kMaxDevices;
using ::ramet::kMaxDevicesPerType;
using ::ramet::kMaxRank;
using ::ramet::kPrintLine;
using ::ramet::kScalarTypes;
using ::ramet::kUndefinedTensor;
using ::ramet::load_as_double;
using ::ramet::log_to_stderr;
using ::ramet::logging;
using ::ramet::max_parallel_slots;
using ::ramet::memory_stats;
using ::ramet::monotonic_ns;
using ::ramet::name_of;
using ::ramet::non_overlapping_and_dense;
using ::ramet::observed;
using ::ramet::parallel_grain;
using ::ramet::parallel_tasks;
using ::ramet::pinned_memory;
using ::ramet::register_thread_local_state;
using ::ramet::remove_observer;
using ::ramet::repeat;
using ::ramet::reserve_random;
using ::ramet::reset_peak_memory_stats;
using ::ramet::residual_layer_norm;
using ::ramet::resolve;
using ::ramet::runtime_config;
using ::ramet::same_sizes;
using ::ramet::same_strides;
using ::ramet::scope_path;
using ::ramet::set_generator_states;
using ::ramet::set_log_handler;
using ::ramet::set_memory_limit;
using ::ramet::set_thread_log_listener;
using ::ramet::short_name_of;
using ::ramet::shortest_text;
using ::ramet::tensor_list;
using ::ramet::to_doubles;
using ::ramet::type_string;
using ::ramet::unregister_thread_local_state;
using ::ramet::version;
using ::ramet::view;
using ::ramet::wait_pending;
using ::ramet::wrap_dim;
}  // namespace torch

namespace torch::autograd {
using ::ramet::autograd::CheckedFunction;
using ::ramet::autograd::ForwardContext;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::ForwardContextGuard;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::FunctionNode;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::GradcheckOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::GraphPicture;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Input;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::LambdaNode;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::ListNode;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::NoGradGuard;
using ::ramet::autograd::NodeCount;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::NodeExtra;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::NodePtr;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::RawEdge;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::ReduceBucket;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::Saved;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::SavedOutput;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::SavesNothing;  // Ramet's class: include the door, no forward declaration
using ::ramet::autograd::add_reduce_edge;
using ::ramet::autograd::attach;
using ::ramet::autograd::backward_twice;
using ::ramet::autograd::check_fits;
using ::ramet::autograd::collect_graph;
using ::ramet::autograd::copy_reversed;
using ::ramet::autograd::copy_values;
using ::ramet::autograd::copy_values_later;
using ::ramet::autograd::count_node;
using ::ramet::autograd::count_node_slowly;
using ::ramet::autograd::edge_of;
using ::ramet::autograd::fill_values;
using ::ramet::autograd::grad_accumulator;
using ::ramet::autograd::gradcheck;
using ::ramet::autograd::gradgradcheck;
using ::ramet::autograd::in_turn;
using ::ramet::autograd::index_add_zeros;
using ::ramet::autograd::is_recorded;
using ::ramet::autograd::keeps_tensors;
using ::ramet::autograd::make_node;
using ::ramet::autograd::new_node;
using ::ramet::autograd::node_count;
using ::ramet::autograd::nodes_alive;
using ::ramet::autograd::note_meeting;
using ::ramet::autograd::record;
using ::ramet::autograd::record_list;
using ::ramet::autograd::recording;
using ::ramet::autograd::refuse_inference_leaf;
using ::ramet::autograd::release;
using ::ramet::autograd::renew_view;
using ::ramet::autograd::repeated_positions;
using ::ramet::autograd::save;
using ::ramet::autograd::save_if;
using ::ramet::autograd::save_output;
using ::ramet::autograd::saves_nothing;
using ::ramet::autograd::scatter_zeros;
using ::ramet::autograd::set_grad_destination;
using ::ramet::autograd::set_reduce_bucket;
using ::ramet::autograd::softmax_backward;
using ::ramet::autograd::tell_made;
using ::ramet::autograd::tell_saved;
using ::ramet::autograd::value_of;
using ::ramet::autograd::view_wants_grad;
using ::ramet::autograd::wants_grad;
using ::ramet::autograd::with_history_of_now;
using ::ramet::autograd::zero_grad;
}  // namespace torch::autograd

namespace torch::capture {
using ::ramet::capture::Life;  // Ramet's class: include the door, no forward declaration
using ::ramet::capture::active;
using ::ramet::capture::born;
using ::ramet::capture::effect;
using ::ramet::capture::guard;
using ::ramet::capture::host_work;
using ::ramet::capture::in_turn;
using ::ramet::capture::on_failure;
using ::ramet::capture::once;
using ::ramet::capture::patch_last;
using ::ramet::capture::patch_last_call;
using ::ramet::capture::queued_work;
using ::ramet::capture::refuse;
using ::ramet::capture::refused;
using ::ramet::capture::replaying;
using ::ramet::capture::reserved;
using ::ramet::capture::spare_memory;
using ::ramet::capture::unique;
using ::ramet::capture::used;
}  // namespace torch::capture

namespace torch::cuda {
using ::ramet::cuda::card;
using ::ramet::cuda::current_stream;
}  // namespace torch::cuda

namespace torch::data {
using ::ramet::data::IdxHeader;  // Ramet's class: include the door, no forward declaration
using ::ramet::data::find_idx;
using ::ramet::data::read_idx;
using ::ramet::data::read_idx_header;
using ::ramet::data::write_idx;
}  // namespace torch::data

namespace torch::data::datasets {
using ::ramet::data::datasets::GatherDataset;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::data::datasets

namespace torch::devices {
using ::ramet::devices::OperandsReady;  // Ramet's class: include the door, no forward declaration
using ::ramet::devices::done;
using ::ramet::devices::host_syncs;
using ::ramet::devices::on_worker;
using ::ramet::devices::origin;
using ::ramet::devices::post;
using ::ramet::devices::post_after;
using ::ramet::devices::reset_host_syncs;
using ::ramet::devices::synchronize;
using ::ramet::devices::wait;
using ::ramet::devices::worker;
}  // namespace torch::devices

namespace torch::gpu {
using ::ramet::gpu::Event;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::gpu

namespace torch::nn {
using ::ramet::nn::BatchNormReLUMaxPool2d;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BatchNormReLUMaxPool2dImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::BufferPolicy;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ComputedParameter;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::DropoutImplBase;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FlatParameters;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FlatRun;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::FlatStore;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ForwardDefaults;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ForwardHook;
using ::ramet::nn::ForwardPreHook;
using ::ramet::nn::ForwardScope;
using ::ramet::nn::ModuleHooks;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RMSNorm;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RMSNormImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::RMSNormOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ReplicaMeeting;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::ShardsElsewhere;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::call;
using ::ramet::nn::convert_sync_batchnorm;
using ::ramet::nn::flat_padded;
using ::ramet::nn::flatten_parameters;
using ::ramet::nn::kFlatAlign;
}  // namespace torch::nn

namespace torch::nn::functional {
using ::ramet::nn::functional::RMSNormFuncOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::functional::residual_layer_norm;
using ::ramet::nn::functional::rms_norm;
}  // namespace torch::nn::functional

namespace torch::nn::parallel {
using ::ramet::nn::parallel::Broadcast;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::DataParallel;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::DataParallelOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::DeviceCapacity;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::Extent;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::FailedReplica;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::GatherPlan;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::GradBucket;
using ::ramet::nn::parallel::How;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::Join;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::NoScatter;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::PerReplica;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::PostReduceHook;
using ::ramet::nn::parallel::PreReduceHook;
using ::ramet::nn::parallel::ReduceOrder;
using ::ramet::nn::parallel::ReplicaError;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::ReplicaOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::ReplicaSet;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::Scalars;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::ScatterPlan;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::Spread;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::Value;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::clear_data_parallel_cache;
using ::ramet::nn::parallel::default_devices;
using ::ramet::nn::parallel::imbalance_warning;
using ::ramet::nn::parallel::last_failed_replica;
using ::ramet::nn::parallel::replica_index;
using ::ramet::nn::parallel::replica_state;  // Ramet's class: include the door, no forward declaration
using ::ramet::nn::parallel::shared;  // Ramet's class: include the door, no forward declaration
}  // namespace torch::nn::parallel

namespace torch::nn::utils {
using ::ramet::nn::utils::clip_grads_with_norm_;
using ::ramet::nn::utils::get_total_norm;
using ::ramet::nn::utils::remove_spectral_norm;
using ::ramet::nn::utils::remove_weight_norm;
using ::ramet::nn::utils::spectral_norm;
using ::ramet::nn::utils::weight_norm;
}  // namespace torch::nn::utils

namespace torch::optim {
using ::ramet::optim::ASGD;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::ASGDOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::ASGDParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Adadelta;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdadeltaOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdadeltaParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Adamax;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamaxOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AdamaxParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AveragedModel;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AveragedModelImpl;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AveragedModelOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::AvgFn;
using ::ramet::optim::ChainedScheduler;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::ConstantLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::CosineAnnealingLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::CosineAnnealingWarmRestarts;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::CyclicLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::CyclicLROptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::ExponentialLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::FusedOptimizer;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::FusedParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::GradientAccumulation;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LambdaLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LinearLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Lion;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LionOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::LionParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::MultiAvgFn;
using ::ramet::optim::MultiStepLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::MultiplicativeLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Muon;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::MuonOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::MuonParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::NAdam;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::NAdamOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::NAdamParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OneCycleLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::OneCycleLROptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::PolynomialLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RAdam;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RAdamOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RAdamParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::Rprop;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RpropOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::RpropParamState;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::SWALR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::SequentialLR;  // Ramet's class: include the door, no forward declaration
using ::ramet::optim::get_ema_avg_fn;
using ::ramet::optim::get_ema_multi_avg_fn;
using ::ramet::optim::get_swa_avg_fn;
using ::ramet::optim::get_swa_multi_avg_fn;
using ::ramet::optim::update_bn;
}  // namespace torch::optim

namespace torch::parallel {
using ::ramet::parallel::Alias;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::BucketItem;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::GradBucket;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::GroupRule;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::Parity;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::PostReduceHook;
using ::ramet::parallel::PreReduceHook;
using ::ramet::parallel::ReduceAdd;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::ReduceHooks;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::ReduceOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::ReduceOrder;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::ScatterOptions;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::Split;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::broadcast;
using ::ramet::parallel::broadcast_coalesced;
using ::ramet::parallel::gather;
using ::ramet::parallel::kDefaultBufferSize;
using ::ramet::parallel::kMaxLeaves;
using ::ramet::parallel::plan_buckets;
using ::ramet::parallel::reduce_add;
using ::ramet::parallel::reduce_add_coalesced;
using ::ramet::parallel::scatter;
}  // namespace torch::parallel

namespace torch::parallel::comm {
using ::ramet::parallel::comm::Route;  // Ramet's class: include the door, no forward declaration
using ::ramet::parallel::comm::broadcast;
using ::ramet::parallel::comm::broadcast_coalesced;
using ::ramet::parallel::comm::broadcast_out;
using ::ramet::parallel::comm::gather;
using ::ramet::parallel::comm::gather_out;
using ::ramet::parallel::comm::plan;
using ::ramet::parallel::comm::reduce_add;
using ::ramet::parallel::comm::reduce_add_coalesced;
using ::ramet::parallel::comm::scatter;
using ::ramet::parallel::comm::scatter_out;
}  // namespace torch::parallel::comm

namespace torch::pool {
using ::ramet::pool::Counts;  // Ramet's class: include the door, no forward declaration
using ::ramet::pool::Free;  // Ramet's class: include the door, no forward declaration
using ::ramet::pool::Heap;  // Ramet's class: include the door, no forward declaration
using ::ramet::pool::HeapFront;  // Ramet's class: include the door, no forward declaration
using ::ramet::pool::Slab;  // Ramet's class: include the door, no forward declaration
using ::ramet::pool::allocate;
using ::ramet::pool::allocate_slow;
using ::ramet::pool::allocations_counted;
using ::ramet::pool::count_allocation;
using ::ramet::pool::counts;
using ::ramet::pool::deallocate;
using ::ramet::pool::deallocate_slow;
using ::ramet::pool::fail_allocation_after;
using ::ramet::pool::failures_enabled;
using ::ramet::pool::kLargeMax;
using ::ramet::pool::kPassThrough;
using ::ramet::pool::kSlabBytes;
using ::ramet::pool::kSmallClasses;
using ::ramet::pool::kSmallMax;
using ::ramet::pool::kStep;
}  // namespace torch::pool

namespace torch::serialize {
using ::ramet::serialize::Safetensors;  // Ramet's class: include the door, no forward declaration
using ::ramet::serialize::WriteFunction;
using ::ramet::serialize::load_safetensors;
using ::ramet::serialize::load_safetensors_index;
using ::ramet::serialize::map_safetensors;
using ::ramet::serialize::map_safetensors_index;
using ::ramet::serialize::save_safetensors;
using ::ramet::serialize::save_safetensors_index;
}  // namespace torch::serialize
