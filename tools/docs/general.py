"""What means the same wherever it stands: members of modules, options. Contracts of names that have none of their own."""

# What every module has.
MODULE = {
    "forward": "Computes what its class's contract says.",
    "options": "What it was made with.",
    "reset": "Makes its parameters and buffers anew: called by the constructor, and by `clone` for the copy.",
    "reset_parameters": "Draws its parameters anew, as the constructor does.",
    "_reset_parameters": "Draws its parameters anew, as the constructor does.",
    "reset_running_stats": "Sets the running statistics to 0 and 1, and their count to 0.",
    "pretty_print": "Prints the class and its options in one line, as LibTorch does.",
    "forward_with_packed_input": "`forward` of sequences of several lengths: as `pack_padded_sequence` makes them.",
}  # yapf: disable

# Options, by name; where one name means several things, by the beginning of the declaration ("bool bias").
OPTIONS = {
    "inplace": "The input is overwritten with the result, and its history goes on.",
    "kernel_size": "Extents of the window; one number stands for all dimensions.",
    "stride": "Steps of the window; one number stands for all dimensions.",
    "padding": "How much is added on both sides of each spatial dimension; one number stands for all.",
    "dilation": "Distance of the window's taps from each other; one number stands for all dimensions.",
    "ceil_mode": "Whether windows that stick out at the end count: extents are rounded up instead of down.",
    "count_include_pad": "Whether elements of the padding count in the average.",
    "divisor_override": "What sums are divided by, instead of the window's number of elements.",
    "output_size": "Spatial extents of the result.",
    "in_channels": "Channels of the input.",
    "out_channels": "Channels of the output.",
    "in_features": "Numbers in a row of the input.",
    "out_features": "Numbers in a row of the output.",
    "groups": "In how many groups channels are cut, which do not mix.",
    "bool bias": "Whether there is a bias to learn.",
    "bool affine": "Whether there are a weight and a bias to learn, one each for a channel.",
    "bool elementwise_affine": "Whether there are a weight (and a bias) to learn, of the normalised shape.",
    "bool track_running_stats": "Whether running statistics are kept, which eval mode then uses.",
    "num_features": "Channels of the input.",
    "num_groups": "In how many groups the channels are cut.",
    "normalized_shape": "The last extents of the input: what is normalised together.",
    "eps": "Added to what is divided by, so that it is not 0.",
    "momentum": "Share of the new statistics in the running ones.",
    "Tensor weight": "Multiplied with the normalised values; undefined: 1.",
    "Tensor bias": "Added to the result; undefined: nothing.",
    "training": "Whether this is a step of training; else nothing is random, and running statistics are used.",
    "use_input_stats": "Whether the statistics are the input's own; else the running ones.",
    "running_mean": "Running means, one a channel; undefined: none are kept.",
    "running_var": "Running variances, one a channel; undefined: none are kept.",
    "reduction": "What is made of the losses: kMean, kSum, or kNone for all of them.",
    "ignore_index": "A class whose samples count nothing.",
    "label_smoothing": "In [0, 1]: share of the target that is spread over all classes.",
    "padding_idx": "The row that gets no gradient (and, of bags, is left out); negative: counted from the end.",
    "max_norm": "Rows that are looked up are first scaled, in place, to this norm at most.",
    "norm_type": "The p of max_norm's norm.",
    "scale_grad_by_freq": "Whether a row's gradient is divided by how often it was looked up.",
    "sparse": "Sparse gradients are not implemented: true is an Error.",
    "freeze": "Whether the weight is no parameter to train.",
    "include_last_offset": "Whether the last offset is the end of the last bag.",
    "keepdim": "Whether the reduced dimension stays, with extent 1.",
    "dim": "The dimension that it works along; negative: counted from the end.",
    "dtype": "The input is cast to it first.",
    "in2_features": "Features of the second input.",
    "num_heads": "Heads of the attention; it divides embed_dim.",
    "num_encoder_layers": "Layers of the encoder.",
    "num_decoder_layers": "Layers of the decoder.",
    "custom_decoder": "As custom_encoder, instead of a TransformerDecoder.",
    "norm": "Of the last layer's result: one tensor in, one out. The module has a clone of it.",
    "num_layers": "Layers, one upon the other.",
    "batch_first": "Whether the input is [batch, time, features] instead of [time, batch, features].",
    "bidirectional": "Whether a second set of layers reads each sequence backwards.",
    "dropout": "Probability of an element to be dropped, in training.",
    "p": "Probability of an element to be dropped, in training.",
    "input_size": "Features of an input.",
    "hidden_size": "Features of a state.",
    "proj_size": "Features that the state h is projected to; 0: no projection.",
    "nonlinearity": "kTanh or kReLU.",
    "d_model": "Features of a token.",
    "nhead": "Heads of the attention; it divides d_model.",
    "dim_feedforward": "Features inside the feed-forward part.",
    "activation": "Between the two linear layers: kReLU, kGELU or a function of a tensor.",
    "norm_first": "Whether layers are normalised before their parts instead of behind them.",
    "margin": "How far apart two values shall be at least.",
    # Optimizers.
    "lr": "The learning rate.",
    "betas": "beta1 and beta2 of the formula.",
    "weight_decay": "How much of a parameter is added to its gradient (or, decoupled, taken off the parameter).",
    "decoupled_weight_decay": "Whether weight decay shrinks the parameter itself and does not enter the gradient.",
    "maximize": "Whether steps go up: the gradient counts negated.",
    "amsgrad": "Whether the largest second moment so far is divided by.",
    # What an optimizer keeps for a parameter.
    "step": "How many steps were taken.",
    "exp_avg": "The running mean of gradients (m).",
    "exp_avg_sq": "The running mean of squared gradients (v).",
    "max_exp_avg_sq": "The largest `exp_avg_sq` so far; undefined without amsgrad.",
    "square_avg": "The running mean of squared gradients.",
    "momentum_buffer": "The velocity; undefined without momentum.",
}  # yapf: disable


# Of these, what means this and nothing else, so that it stands before a reference to a class's contract that names it.
ANYWHERE = """inplace kernel_size stride dilation ceil_mode groups in_channels out_channels in_features out_features num_features
    affine track_running_stats lr betas maximize amsgrad batch_first bidirectional input_size hidden_size num_layers""".split()


def option(name, declaration):
    """The contract of an option that is declared so, or ""."""
    kind = declaration.split()[0]
    return OPTIONS.get("%s %s" % (kind, name)) or OPTIONS.get(name, "")


# Types that classes name.
TYPES = {
    "Iterator": "Over its items, in order.",
    "ConstIterator": "Over its items, in order, for reading.",
    "Item": "One item: its key and its value.",
    "SelfType": "The class that derives from this one.",
    "BatchType": "What a batch is.",
    "BatchRequestType": "What a batch is asked for with.",
    "ExampleType": "What `get` returns.",
    "DataType": "What an example's data is.",
    "TargetType": "What an example's target is.",
    "InputType": "What is transformed.",
    "OutputType": "What it becomes.",
    "InputBatchType": "What is transformed.",
    "OutputBatchType": "What it becomes.",
    "DatasetType": "The dataset under it.",
    "TransformType": "What is applied.",
    "FunctionType": "The function that it calls.",
    "super": "Its base.",
    "betas_t": "beta1 and beta2 of the formula.",
    **dict.fromkeys(("value_type", "difference_type", "pointer", "reference", "iterator_category"), "As an iterator's of the standard."),
}  # yapf: disable
