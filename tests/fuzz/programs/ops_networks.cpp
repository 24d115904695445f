// Convolutions, pools, norms, attention, recurrent cells and losses.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

Arg n(std::int64_t i) { return Arg::number(i); }

int parameter(Draft& d, const Sizes& sizes, int like) { return d.shaped(sizes, like); }

bool convolve(Draft& d, const std::string& op) {
  const bool transposed = op.find("transpose") != std::string::npos;
  const auto dims = op[op.find("d.") - 1] - '0';
  const auto channels = d.random.between(1, 2), out = d.random.between(1, 2);
  Sizes in{d.random.between(1, 2), channels}, kernel = transposed ? Sizes{channels, out} : Sizes{out, channels};
  for (int i = 0; i < dims; ++i) {
    in.push_back(dims == 3 ? 2 : d.random.between(3, 4));
    kernel.push_back(d.random.between(1, 2));
  }
  const auto x = d.shaped(in), w = x < 0 ? -1 : parameter(d, kernel, x);
  if (w < 0) return false;
  const auto bias = d.random.chance(0.6) ? parameter(d, {out}, x) : -1;
  std::vector<Arg> args{Arg::value(x), Arg::value(w), bias < 0 ? Arg::none() : Arg::value(bias)};
  args.push_back(Arg::ints(Sizes(static_cast<std::size_t>(dims), d.random.between(1, 2))));
  args.push_back(Arg::ints(Sizes(static_cast<std::size_t>(dims), transposed ? 0 : d.random.between(0, 1))));
  return d.call(op, args);
}

bool pool(Draft& d, const std::string& op) {
  const auto dims = op[op.find('d', op.find("pool")) - 1] - '0';
  Sizes in{d.random.between(1, 2), d.random.between(1, 2)};
  for (int i = 0; i < dims; ++i) in.push_back(dims == 3 ? 2 : d.random.between(2, 5));
  const auto x = d.shaped(in);
  if (x < 0) return false;
  Sizes window(static_cast<std::size_t>(dims), op.find("adaptive") != std::string::npos ? d.random.between(1, 2) : 2);
  if (op.find("lp_pool") != std::string::npos) return d.call(op, {Arg::value(x), n(2), Arg::ints(window)});
  return d.call(op, {Arg::value(x), Arg::ints(window)});
}

bool layerNorm(Draft& d, const std::string& op) {
  const auto features = d.random.between(2, 4);
  const auto x = d.shaped({d.random.between(2, 3), features});
  const auto w = x < 0 ? -1 : parameter(d, {features}, x), b = w < 0 ? -1 : parameter(d, {features}, x);
  if (b < 0) return false;
  if (op == "aten.rms_norm.default" || op == "aten._fused_rms_norm.default")
    return d.call(op, {Arg::value(x), Arg::ints({features}), Arg::value(w), Arg::number(0.01)});
  return d.call(op, {Arg::value(x), Arg::ints({features}), d.random.chance(0.7) ? Arg::value(w) : Arg::none(),
                     d.random.chance(0.7) ? Arg::value(b) : Arg::none(), Arg::number(0.01)});
}

/// Running statistics that others use too: what was computed, without its gradient. Their memory is that of a value
/// that a backward may read.
int sharedStatistics(Draft& d, std::int64_t channels) {
  const auto x = d.pick({Want::real, 1, 1, [channels](const at::Tensor& t) { return t.size(0) == channels; }});
  if (x < 0 || d.tensor(x).scalar_type() != scalarType(d.main)) return -1;
  return d.make("aten.detach.default",
                {Arg::value(d.random.chance(0.5) ? d.make("aten.abs.default", {Arg::value(x)}) : x)});
}

/// batch norm and instance norm, with running statistics that are written in training.
bool batchNorm(Draft& d, const std::string& op) {
  const auto channels = d.random.between(2, 3);
  Sizes in{d.random.between(2, 3), channels, d.random.between(2, 3)};
  if (d.random.chance(0.3)) in.push_back(2);
  const auto x = d.shaped(in);
  if (x < 0) return false;
  const auto dtype = d.main;
  if (d.tensor(x).scalar_type() != scalarType(dtype)) return false;
  // LibTorch's kernel reads and writes beyond weights and statistics that have another number of channels.
  if (!d.isFixed(x, 1)) return false;
  const bool affine = d.random.chance(0.7), instance = op == "aten.instance_norm.default";
  const auto w = affine ? parameter(d, {channels}, x) : -1, b = affine ? parameter(d, {channels}, x) : -1;
  const bool statistics = d.random.chance(0.85);
  const auto statistic = [&](std::initializer_list<int> others) {
    const auto shared = d.random.chance(0.3) ? sharedStatistics(d, channels) : -1;
    // Those in the memory of another operand are refused.
    const bool isApart = std::none_of(others.begin(), others.end(), [&](int other) {
      return shared >= 0 && other >= 0 && d.tensor(other).is_alias_of(d.tensor(shared));
    });
    return shared >= 0 && (isApart || d.random.chance(0.02)) ? shared : d.input(Input::Kind::buffer, dtype, {channels});
  };
  const auto mean = statistics ? statistic({x, w, b}) : -1, var = mean >= 0 ? statistic({x, w, b, mean}) : -1;
  if (statistics && var < 0) return false;
  const auto optional = [](int id) { return id < 0 ? Arg::none() : Arg::value(id); };
  const bool training = !statistics || d.random.chance(0.75);
  std::vector<Arg> args{Arg::value(x),     optional(w),      optional(w < 0 ? -1 : b),
                        optional(mean),    optional(var),    Arg::boolean(training),
                        Arg::number(0.25), Arg::number(0.01)};
  if (instance || op == "aten.batch_norm.default") args.push_back(Arg::boolean(false));
  if (op == "aten._native_batch_norm_legit.default" && !statistics) return false;
  return d.call(op, args);
}

bool groupNorm(Draft& d, const std::string& op) {
  const auto x = d.shaped({2, 4, d.random.between(1, 3)});
  const auto w = x < 0 ? -1 : parameter(d, {4}, x), b = w < 0 ? -1 : parameter(d, {4}, x);
  return b >= 0 && d.call(op, {Arg::value(x), n(2), d.random.chance(0.8) ? Arg::value(w) : Arg::none(),
                               d.random.chance(0.8) ? Arg::value(b) : Arg::none(), Arg::number(0.01)});
}

bool loss(Draft& d, const std::string& op) {
  const auto x = d.pick({Want::real, 1, 3, [](const at::Tensor& t) { return t.numel() > 0; }});
  const auto y = x < 0 ? -1 : d.partner(x, true);
  return y >= 0 && d.call(op, {Arg::value(x), Arg::value(y), n(d.random.between(0, 2))});
}

bool classLoss(Draft& d, const std::string& op) {
  const auto rows = d.random.between(2, 3), classes = d.random.between(2, 4);
  auto x = d.shaped({rows, classes});
  const auto target = x < 0 ? -1 : d.indices(classes, {rows});
  if (target < 0) return false;
  const bool nll = op.find("nll") != std::string::npos;
  if (nll) x = d.make("aten.log_softmax.int", {Arg::value(x), n(1)});
  if (x < 0) return false;
  if (op == "aten.multi_margin_loss.default") return d.call(op, {Arg::value(x), Arg::value(target)});
  return d.call(op, {Arg::value(x), Arg::value(target), Arg::none(), n(d.random.between(0, 2))});
}

bool signLoss(Draft& d, const std::string& op) {
  const auto x = d.pick({Want::real, 1, 2, [](const at::Tensor& t) { return t.numel() > 0; }});
  if (x < 0) return false;
  const auto y = d.make("aten.sign.default", {Arg::value(d.partner(x, true))});
  if (y < 0) return false;
  if (op == "aten.margin_ranking_loss.default") {
    const auto other = d.partner(x, true);
    return other >= 0 && d.call(op, {Arg::value(x), Arg::value(other), Arg::value(y)});
  }
  return d.call(op, {Arg::value(x), Arg::value(y)});
}

bool cell(Draft& d, const std::string& op) {
  const std::int64_t in = 2, hidden = 2,
                     gates = op.find("lstm") != std::string::npos  ? 4
                             : op.find("gru") != std::string::npos ? 3
                                                                   : 1;
  const auto x = d.shaped({2, in}), h = x < 0 ? -1 : d.shaped({2, hidden}, x);
  const auto wi = h < 0 ? -1 : parameter(d, {gates * hidden, in}, x),
             wh = wi < 0 ? -1 : parameter(d, {gates * hidden, hidden}, x);
  const auto b = wh < 0 ? -1 : parameter(d, {gates * hidden}, x);
  if (b < 0) return false;
  const auto state = gates == 4 ? Arg::values({h, d.shaped({2, hidden}, x)}) : Arg::value(h);
  if (gates == 4 && state.items[1].integer < 0) return false;
  return d.call(op, {Arg::value(x), state, Arg::value(wi), Arg::value(wh), Arg::value(b), Arg::value(b)});
}

bool recurrent(Draft& d, const std::string& op) {
  const std::int64_t hidden = 2, gates = op.find("lstm") != std::string::npos  ? 4
                                         : op.find("gru") != std::string::npos ? 3
                                                                               : 1;
  const auto x = d.shaped({2, 2, 2}), h = x < 0 ? -1 : d.shaped({1, 2, hidden}, x);
  const auto wi = h < 0 ? -1 : parameter(d, {gates * hidden, 2}, x),
             wh = wi < 0 ? -1 : parameter(d, {gates * hidden, hidden}, x);
  const auto b = wh < 0 ? -1 : parameter(d, {gates * hidden}, x);
  if (b < 0) return false;
  auto state = Arg::value(h);
  if (gates == 4) {
    const auto c = d.shaped({1, 2, hidden}, x);
    if (c < 0) return false;
    state = Arg::values({h, c});
  }
  return d.call(op, {Arg::value(x), state, Arg::values({wi, wh, b, b}), Arg::boolean(true), n(1), Arg::number(0.0),
                     Arg::boolean(true), Arg::boolean(false), Arg::boolean(d.random.chance(0.5))});
}

bool upsample(Draft& d, const std::string& op) {
  const auto dims = op[op.find("d.") - 1] - '0';
  Sizes in{1, d.random.between(1, 2)};
  Sizes out;
  for (int i = 0; i < dims; ++i) {
    in.push_back(d.random.between(2, 3));
    out.push_back(d.random.between(2, 5));
  }
  const auto x = d.shaped(in);
  if (x < 0) return false;
  if (op.find("nearest") != std::string::npos) return d.call(op, {Arg::value(x), Arg::ints(out)});
  return d.call(op, {Arg::value(x), Arg::ints(out), Arg::boolean(d.random.chance(0.5))});
}

}  // namespace

void addNetworks(Catalogue& c) {
  c.add("conv1d.default conv2d.default conv3d.default conv_transpose1d.default conv_transpose2d.input", convolve);
  c.add(
      "max_pool1d.default max_pool2d.default avg_pool1d.default avg_pool2d.default avg_pool3d.default "
      "max_pool3d.default max_pool1d_with_indices.default "
      "max_pool2d_with_indices.default "
      "adaptive_avg_pool1d.default adaptive_avg_pool2d.default adaptive_max_pool1d.default adaptive_max_pool2d.default "
      "_adaptive_avg_pool2d.default",
      pool);
  c.add("layer_norm.default native_layer_norm.default rms_norm.default", layerNorm);
  for (auto i = c.entries.size(); i-- > 0;)
    if (c.entries[i].op == "aten.native_layer_norm.default")
      c.entries[i].custom = [](Draft& d, const std::string& op) {
        const auto x = d.shaped({2, 3});
        const auto w = x < 0 ? -1 : d.shaped({3}, x), b = w < 0 ? -1 : d.shaped({3}, x);
        return b >= 0 && d.call(op, {Arg::value(x), Arg::ints({3}), Arg::value(w), Arg::value(b), Arg::number(0.01)});
      };
  c.add(
      "batch_norm.default instance_norm.default native_batch_norm.default _native_batch_norm_legit.default "
      "_native_batch_norm_legit_functional.default",
      batchNorm);
  for (auto i = c.entries.size() - 3; i < c.entries.size(); ++i) c.entries[i].writes = i + 1 < c.entries.size();
  c.entries[c.entries.size() - 5].writes = c.entries[c.entries.size() - 4].writes = true;
  c.add("group_norm.default", groupNorm);
  c.add("mse_loss.default l1_loss.default smooth_l1_loss.default huber_loss.default", loss);
  c.add("nll_loss.default nll_loss_nd.default cross_entropy_loss.default multi_margin_loss.default", classLoss);
  c.add("soft_margin_loss.default hinge_embedding_loss.default margin_ranking_loss.default", signLoss);
  c.add("binary_cross_entropy.default", "o =o");
  c.add("binary_cross_entropy_with_logits.default", "r1 =o");
  c.add("kl_div.default", "r1 =p");
  c.add("poisson_nll_loss.default", "e =p T F #0.01 I2");
  c.add("cosine_embedding_loss.default triplet_margin_loss.default", [](Draft& d, const std::string& op) {
    const auto a = d.shaped({2, 3}), b = a < 0 ? -1 : d.shaped({2, 3}, a);
    if (b < 0) return false;
    if (op.find("triplet") != std::string::npos) {
      const auto other = d.shaped({2, 3}, a);
      return other >= 0 && other != a && a != b && other != b &&
             d.call(op, {Arg::value(a), Arg::value(b), Arg::value(other)});
    }
    auto y = d.shaped({2}, a);
    y = y < 0 ? -1 : d.make("aten.sign.default", {Arg::value(y)});
    return y >= 0 && d.call(op, {Arg::value(a), Arg::value(b), Arg::value(y)});
  });
  c.add("scaled_dot_product_attention.default", [](Draft& d, const std::string& op) {
    const auto q = d.shaped({1, 2, 3, 2}), k = q < 0 ? -1 : d.shaped({1, 2, 3, 2}, q),
               v = k < 0 ? -1 : d.shaped({1, 2, 3, 2}, q);
    // LibTorch's kernel writes beyond a gradient where value is longer than key, which no check of its finds.
    return v >= 0 && d.isFixed(k, 2) && d.isFixed(v, 2) &&
           d.call(op, {Arg::value(q), Arg::value(k), Arg::value(v), Arg::none(), Arg::number(0.0),
                       Arg::boolean(d.random.chance(0.5))});
  });
  c.add("lstm_cell.default gru_cell.default rnn_tanh_cell.default rnn_relu_cell.default", cell);
  c.add("lstm.input gru.input rnn_tanh.input rnn_relu.input", recurrent);
  c.add(
      "upsample_nearest1d.default upsample_nearest2d.default upsample_linear1d.default upsample_bilinear2d.default "
      "upsample_bicubic2d.default",
      upsample);
  c.add("pixel_shuffle.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 4, 2, 2});
    return x >= 0 && d.call(op, {Arg::value(x), n(2)});
  });
  c.add("pixel_unshuffle.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 1, 4, 2});
    return x >= 0 && d.call(op, {Arg::value(x), n(2)});
  });
  c.add("channel_shuffle.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 4, 2, 1});
    return x >= 0 && d.call(op, {Arg::value(x), n(2)});
  });
  c.add("im2col.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 2, 3, 3});
    return x >= 0 &&
           d.call(op, {Arg::value(x), Arg::ints({2, 2}), Arg::ints({1, 1}), Arg::ints({0, 0}), Arg::ints({1, 1})});
  });
  c.add("col2im.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 4, 4});
    return x >= 0 && d.call(op, {Arg::value(x), Arg::ints({3, 3}), Arg::ints({2, 2}), Arg::ints({1, 1}),
                                 Arg::ints({0, 0}), Arg::ints({1, 1})});
  });
  c.add("grid_sampler_2d.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 1, 3, 3});
    auto grid = x < 0 ? -1 : d.shaped({1, 2, 2, 2}, x);
    grid = grid < 0 ? -1 : d.make("aten.tanh.default", {Arg::value(grid)});
    return grid >= 0 && d.call(op, {Arg::value(x), Arg::value(grid), n(0), n(0), Arg::boolean(false)});
  });
  c.add("affine_grid_generator.default", [](Draft& d, const std::string& op) {
    const auto theta = d.shaped({1, 2, 3});
    return theta >= 0 && d.call(op, {Arg::value(theta), Arg::ints({1, 1, 2, 2}), Arg::boolean(d.random.chance(0.5))});
  });
  c.add("glu.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({d.random.between(1, 3), 4});
    return x >= 0 && d.call(op, {Arg::value(x), Arg::number(std::int64_t{-1})});
  });
  c.add("prelu.default", [](Draft& d, const std::string& op) {
    const auto x = d.pick({Want::real, 2});
    const auto w = x < 0 ? -1 : d.shaped({1}, x);
    return w >= 0 && d.call(op, {Arg::value(x), Arg::value(w)});
  });
  c.add("max_unpool2d.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({1, 1, 4, 4});
    if (x < 0 || !d.call("aten.max_pool2d_with_indices.default", {Arg::value(x), Arg::ints({2, 2})})) return false;
    const auto pooled = d.made();
    return d.call(op, {Arg::value(pooled[0]), Arg::value(pooled[1]), Arg::ints({4, 4})});
  });
  c.add("segment_reduce.default", [](Draft& d, const std::string& op) {
    const auto x = d.shaped({4});
    const auto lengths =
        x < 0 ? -1
              : d.make("aten.full.default", {Arg::ints({2}), Arg::number(std::int64_t{2}), Arg::dtype(DType::i64)});
    return lengths >= 0 && d.call(op, {Arg::value(x), Arg::string("sum"), Arg::value(lengths)});
  });
}

}  // namespace retrograd::fuzz
