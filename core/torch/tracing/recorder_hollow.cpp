// Hollow mode of the recorder: what an op gives is found on tensors without data where that is possible.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include <map>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "core/torch/tracing/claimed_cuda.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/interceptor.h"
#include "core/torch/tracing/recorder_call.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd {
namespace {

using Stack = torch::jit::Stack;

at::Tensor like(const at::Tensor& tensor) { return at::empty_like(tensor, at::MemoryFormat::Contiguous); }
at::Tensor sized(const at::Tensor& tensor, at::IntArrayRef sizes) { return at::empty(sizes, tensor.options()); }
bool given(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

constexpr std::int64_t gruWorkspace = 5,
                       gruGates =
                           3;  // tensors of the hidden size that the fused GRU cell keeps, and that it is made of

/// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
Stack lstmCell(const Stack& arguments) {
  const auto cell = arguments[2].toTensor();
  return {like(cell), like(cell), like(arguments[0].toTensor())};
}

/// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
Stack lstmCellBackward(const Stack& arguments) {
  if (!given(arguments[0]) && !given(arguments[1])) return {at::Tensor(), at::Tensor(), at::Tensor()};
  const auto workspace = arguments[4].toTensor();
  return {like(workspace), like(arguments[2].toTensor()),
          arguments[5].toBool() ? sized(workspace, {workspace.size(1)}) : at::Tensor()};
}

/// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace)
Stack gruCell(const Stack& arguments) {
  const auto hidden = arguments[2].toTensor();
  return {like(hidden), sized(hidden, {hidden.size(0), hidden.size(1) * gruWorkspace})};
}

/// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
Stack gruCellBackward(const Stack& arguments) {
  const auto gradient = arguments[0].toTensor(), workspace = arguments[1].toTensor();
  const auto width = workspace.size(1) / gruWorkspace * gruGates;
  const auto gates = [&] { return sized(workspace, {workspace.size(0), width}); };
  const auto bias = [&] { return arguments[2].toBool() ? sized(workspace, {width}) : at::Tensor(); };
  return {gates(), gates(), like(gradient), bias(), bias()};
}

/// Memory laid out as (batch, length, heads, width), seen as (batch, heads, length, width).
at::Tensor byHeads(const at::Tensor& like, std::int64_t length, std::int64_t width) {
  return at::empty({like.size(0), length, like.size(1), width}, like.options()).transpose(1, 2);
}

constexpr std::int64_t logsumexpBlock = 32, biasAlignment = 16;

std::int64_t roundedUp(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// (query, key, value, attn_bias?, compute_log_sumexp, dropout_p, is_causal, *, scale) -> (output, log_sumexp,
/// philox_seed, philox_offset)
Stack efficientAttention(const Stack& arguments) {
  const auto query = arguments[0].toTensor(), value = arguments[2].toTensor();
  const auto rows = arguments[4].toBool() ? roundedUp(query.size(2), logsumexpBlock) : 0;
  const auto seed = query.options().dtype(at::kLong);
  return {byHeads(query, query.size(2), value.size(3)),
          at::empty({query.size(0), query.size(1), rows}, query.options().dtype(at::kFloat)), at::empty({}, seed),
          at::empty({}, seed)};
}

/// (grad_out, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, grad_input_mask, ...) -> (query,
/// key, value, bias)
Stack efficientAttentionBackward(const Stack& arguments) {
  const auto query = arguments[1].toTensor(), key = arguments[2].toTensor(), value = arguments[3].toTensor();
  const auto wanted = arguments[10].toBoolList();
  at::Tensor bias;
  if (wanted.get(3) && given(arguments[4])) {
    const auto given = arguments[4].toTensor();
    auto sizes = given.sizes().vec();
    sizes.back() = roundedUp(sizes.back(), biasAlignment);
    bias = at::empty(sizes, given.options()).narrow(-1, 0, given.size(-1));
  }
  return {byHeads(query, query.size(2), query.size(3)), byHeads(key, key.size(2), key.size(3)),
          byHeads(value, value.size(2), value.size(3)), bias};
}

/// Without a kernel for shapes it would run on zeros, which integers refuse to be divided by.
Stack floorDivide(const Stack& arguments) {
  return {at::div(arguments[0].toTensor(), arguments[1].toTensor(), "floor")};
}

/// cuDNN takes a CTC loss only with targets on the CPU; a model that was moved has them next to its weights.
Stack noCudnn(const Stack&) { return {false}; }

const std::map<std::string_view, std::function<Stack(const Stack&)>>& rules() {
  static const std::map<std::string_view, std::function<Stack(const Stack&)>> table{
      {"aten::_thnn_fused_lstm_cell", lstmCell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", lstmCellBackward},
      {"aten::_thnn_fused_gru_cell", gruCell},
      {"aten::_thnn_fused_gru_cell_backward", gruCellBackward},
      {"aten::_scaled_dot_product_efficient_attention", efficientAttention},
      {"aten::_scaled_dot_product_efficient_attention_backward", efficientAttentionBackward},
      {"aten::floor_divide", floorDivide},
      {"aten::_use_cudnn_ctc_loss", noCudnn},
      {"aten::_use_cudnn_ctc_loss.Tensor", noCudnn},
  };
  return table;
}

/// Results on meta tensors of ops that have no meta kernel in C++, most of them with kernels for a GPU alone: the fused
/// cells of LSTM and GRU and memory-efficient attention with their backward, the question whether cuDNN computes a CTC
/// loss, and floor_divide. `name` as LibTorch prints it
/// ("aten::_thnn_fused_lstm_cell"), `arguments` the call's, on meta tensors. nullopt for any other op.
std::optional<Stack> resultsByRule(std::string_view name, const Stack& arguments) {
  const auto rule = rules().find(name);
  if (rule == rules().end()) return std::nullopt;
  BelowInterception below;
  return rule->second(arguments);
}

/// A convolution that reads as much as this takes half a millisecond on one core. To wake sleeping threads for less
/// takes longer than they save.
constexpr std::size_t bytesWorthThreads = std::size_t{1} << 20;

std::size_t bytesOf(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

/// What may decide whether an op's meta kernel takes a call: dtypes, layouts and numbers of dimensions, and literals
/// other than sizes and floats.
std::string callKind(const torch::jit::Stack& arguments) {
  std::ostringstream text;
  for (const auto& value : arguments) {
    bool hasTensors = false;
    forEachTensor(value, [&](const at::Tensor& tensor) {
      hasTensors = true;
      text << tensor.scalar_type() << ' ' << tensor.layout() << ' ' << tensor.dim() << ',';
    });
    if (value.isInt() || value.isBool() || value.isString()) text << value;
    else if (!hasTensors) text << value.tagKind();
    text << ';';
  }
  return text.str();
}

bool boolean(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
}

/// Whether data decide the result's shape or value. Indexing carries the tag always, but only boolean indices matter.
bool dependsOnData(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  if (!op.hasTag(at::Tag::data_dependent_output) && !op.hasTag(at::Tag::dynamic_output_shape)) return false;
  bool indexed = false, masked = false;
  for (const auto& argument : arguments)
    if (argument.isOptionalTensorList()) {
      indexed = true;
      forEachTensor(argument, [&](const at::Tensor& index) { masked |= boolean(index); });
    }
  return !indexed || masked;
}

c10::IValue defaultCpu(const c10::OperatorHandle& op, std::size_t i, const c10::IValue& value) {
  const auto type = op.schema().arguments()[i].real_type();
  const bool deviceArgument =
      type->kind() == c10::TypeKind::OptionalType &&
      type->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::DeviceObjType;
  return deviceArgument && value.isNone() ? c10::IValue(c10::Device(c10::kCPU)) : value;
}

/// Results of a run on real tensors, as meta tensors: what is written or aliased is the argument's twin.
torch::jit::Stack toMetaResults(const torch::jit::Stack& results, const std::vector<at::Tensor>& ran,
                                const std::vector<at::Tensor>& twins) {
  torch::jit::Stack metas;
  for (const auto& value : results)
    metas.push_back(mapTensors(value, [&](const at::Tensor& tensor) {
      if (tensor.layout() != at::kStrided) throw NeedsData("a result is sparse");
      BelowInterception below;
      for (std::size_t i = 0; i < ran.size(); ++i) {
        if (ran[i].is_same(tensor)) return twins[i];
        if (ran[i].numel() && ran[i].is_alias_of(tensor) && ran[i].scalar_type() == tensor.scalar_type())
          return twins[i].as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
      }
      return makeMetaLike(tensor);
    }));
  return metas;
}

}  // namespace

void Recorder::runHollow(Call& call) {
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const auto value = defaultCpu(call.op, i, call.arguments[i]);
    if (value.isDevice()) call.twins.emplace_back(c10::Device(c10::kMeta));
    else
      call.twins.push_back(mapTensors(value, [&](const at::Tensor& tensor) {
        auto* tag = tagOf(tensor, serial_);
        return tag && tag->twin.defined() ? tag->twin : makeMetaLike(tensor);  // literals were not tagged
      }));
  }
  if (dependsOnData(call.op, call.arguments)) runOnData(call);
  else runOnMeta(call);
  adoptResults(call);
}

void Recorder::runOnMeta(Call& call) {
  // A thrown c10::Error is slow: ask once for each kind of call. Not once for each op: many refuse a dtype and take all
  // others.
  static thread_local std::unordered_map<std::string, std::unordered_set<std::string>> refused;
  call.results = call.twins;
  const std::string name = toString(call.op.operator_name());
  const auto known = refused.find(name);
  const bool isRefused = known != refused.end() && known->second.contains(callKind(call.twins));
  if (!isRefused && call.op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    try {
      BelowInterception below;
      call.op.callBoxed(call.results);
      return;
    } catch (const c10::NotImplementedError&) {
      refused[name].insert(callKind(call.twins));
      call.results = call.twins;
    }
  }
  if (auto shapes = resultsByRule(name, call.twins)) {
    call.results = std::move(*shapes);
    return;
  }
  runOnZeros(call);
}

void Recorder::runOnZeros(Call& call) {
  // An op of the GPU alone has a kernel there, if anywhere.
  const auto device = call.device.is_cuda() && runsOn(call.device) ? call.device : c10::Device(c10::kCPU);
  std::vector<at::Tensor> zeros, twins;
  torch::jit::Stack stack;
  for (const auto& value : call.twins) {
    if (value.isDevice()) {
      stack.emplace_back(device);
      continue;
    }
    stack.push_back(mapTensors(value, [&](const at::Tensor& twin) {
      BelowInterception below;
      auto zero = at::empty_strided(twin.sizes(), twin.strides(), twin.options().device(device)).zero_();
      zeros.push_back(zero);
      twins.push_back(twin);
      return zero;
    }));
  }
  try {
    KeepGenerator keep;  // the op may draw for real; the run must not notice
    BelowInterception below;
    const ThreadScope threads(bytesOf(zeros) < bytesWorthThreads ? RunThreads::forSmallWork()
                                                                 : RunThreads::forLargeWork());
    call.op.callBoxed(stack);
  } catch (const c10::Error&) {
    runOnData(call);
    return;
  }
  call.results = toMetaResults(stack, zeros, twins);
}

c10::IValue Recorder::realOperand(const RecordedOp& op, std::size_t hole) {
  const auto local = op.operands.at(hole);
  if (auto it = real_.find(local); it != real_.end()) return it->second;
  if (auto it = constants_.find(local); it != constants_.end() && !it->second.is_meta()) return it->second;
  throw NeedsData("a value that " + symbolName(op.op) + " reads is not at hand");
}

void Recorder::replayUpTo(std::size_t end) {
  for (; replayed_ < end; ++replayed_) {
    const auto& op = ops_[replayed_];
    auto stack = PreparedCall(op.op, op.pattern)
                     .arguments([&](std::size_t hole) { return realOperand(op, hole); }, literalDevice());
    at::AutoDispatchBelowADInplaceOrView belowAutograd;
    op.op.callBoxed(stack);
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < results.size() && i < op.outputs.size(); ++i)
      if (op.outputs[i] >= 0) real_[op.outputs[i]] = results[i];
  }
}

void Recorder::runOnData(Call& call) {
  if (real_.empty()) throw NeedsData(symbolName(call.op) + " depends on data");
  KeepGenerator keep;
  BelowInterception below;
  replayUpTo(ops_.size());
  auto stack = PreparedCall(call.op, call.record.pattern)
                   .arguments([&](std::size_t hole) { return realOperand(call.record, hole); }, literalDevice());
  std::vector<at::Tensor> ran, twins;
  for (std::size_t hole = 0; hole < call.record.operands.size(); ++hole) {
    ran.push_back(realOperand(call.record, hole).toTensor());
    for (const auto& input : call.inputs)
      if (auto* tag = tagOf(input, serial_); tag && tag->id == call.record.operands[hole]) twins.push_back(tag->twin);
  }
  {
    at::AutoDispatchBelowADInplaceOrView belowAutograd;
    call.op.callBoxed(stack);
  }
  call.record.needsData = true;
  dataDependent_.push_back(symbolName(call.op));
  call.results = toMetaResults(stack, ran, twins);
}

void Recorder::adoptResults(Call& call) {
  for (auto& value : call.results)
    value = mapTensors(value, [&](const at::Tensor& tensor) { return adopt(call, tensor); });
}

/// The hollow tensor that represents a meta result: the argument itself when it was written, one over the argument's
/// storage for a view, else a new one.
at::Tensor Recorder::adopt(Call& call, const at::Tensor& result) {
  const at::Tensor twin = result.is_meta() ? result : makeMetaLike(result);
  for (const auto& input : call.inputs) {
    auto* tag = tagOf(input, serial_);
    if (!tag || !tag->twin.is_same(twin)) continue;
    auto* impl = input.unsafeGetTensorImpl();
    if (input.sizes() != twin.sizes() || input.strides() != twin.strides() ||
        input.storage_offset() != twin.storage_offset()) {
      impl->set_storage_offset(twin.storage_offset());  // transpose_, squeeze_: geometry changes in place
      impl->set_sizes_and_strides(twin.sizes(), twin.strides());
    }
    return input;
  }
  const at::Tensor* base = nullptr;
  for (const auto& input : call.inputs) {
    auto* tag = tagOf(input, serial_);
    if (tag && tag->twin.defined() && tag->twin.is_alias_of(twin)) base = &input;
  }
  auto hollow = makeHollow(twin, call.device.is_meta() ? claimed_.value_or(c10::kCPU) : call.device, base);
  auto tag = c10::make_intrusive<ValueTag>(-1, serial_);
  tag->twin = twin;
  hollow.unsafeGetTensorImpl()->set_backend_meta(tag);
  return hollow;
}

}  // namespace retrograd
