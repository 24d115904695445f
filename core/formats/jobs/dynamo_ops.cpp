#include "core/formats/jobs/dynamo_ops.h"

#include <map>
#include <string_view>

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

/// "linear" of "torch._C._nn.linear".
std::string_view lastPart(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string nameOf(const Expression& call) {
  if (call.is(Kind::call) && call.items[0].is(Kind::path)) return std::string(lastPart(call.items[0].text));
  if (call.is(Kind::call) && call.items[0].is(Kind::attribute)) return call.items[0].text;
  if (call.is(Kind::binary) || call.is(Kind::unary) || call.is(Kind::inPlace)) return operatorName(call.text);
  if (call.is(Kind::item)) return "getitem";
  if (call.is(Kind::attribute)) return call.text;
  return {};
}

/// "add_", "__setitem__" and their kin; "__add__" writes nothing.
bool isInPlace(const Expression& call, std::string_view name) {
  if (call.is(Kind::inPlace)) return true;
  if (call.keyword("out") != nullptr) return true;
  return name.ends_with('_') && !name.ends_with("__") && name != "requires_grad_";
}

class Flattener {
 public:
  explicit Flattener(const fx::Graph& root) : root_(root) {}

  std::vector<DynamoOp> flatten() {
    add(root_, false, 0);
    return std::move(ops_);
  }

 private:
  static constexpr int maxDepth = 60;
  static constexpr std::size_t none = SIZE_MAX;

  void add(const fx::Graph& graph, bool hasOwnBackward, int depth) {
    if (depth > maxDepth) return;
    std::vector<std::size_t> made(graph.valueCount(), none);  // by value: its op
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const auto& node = graph.nodes[n];
      const auto& call = node.call;
      if (switchesGradMode(call) || switchesNesting(call)) continue;
      DynamoOp op;
      op.name = nameOf(call);
      if (op.name.empty()) continue;
      op.source = node.source == fx::noIndex ? nullptr : &graph.sources[node.source];
      op.recorded = recorded_ && !isInnerGradientWithoutGraph(call);
      op.detaches = op.name == "detach" || op.name == "detach_" || op.name == "_get_data_attr" || op.name == "data";
      op.writes = isInPlace(call, op.name) && op.name != "detach_";
      op.hasOwnBackward = hasOwnBackward || op.name == "autograd_function_apply" || op.name == "register_hook";
      op.makesTensor = node.type != fx::noIndex && graph.types[node.type].kind == fx::Type::Kind::tensor;
      const bool isApply = op.name == "autograd_function_apply", isHook = op.name == "register_hook";
      op.isInner = isApply && nesting_ > 0;
      if (op.name == "detach_") detachInPlace(graph, n, made);
      if (call.isCallOf("torch.autograd.grad")) findInner(graph, n, made);
      made[graph.inputs.size() + n] = ops_.size();
      ops_.push_back(std::move(op));
      if (!isHook) addBodies(graph, call, isApply, hasOwnBackward, depth);
    }
  }

  /// Autograd lets go of what made the value: no node of the ATen graphs shows that.
  void detachInPlace(const fx::Graph& graph, std::size_t n, const std::vector<std::size_t>& made) {
    const auto& receiver = graph.nodes[n].call.items[0];
    if (!receiver.is(Kind::attribute) || !receiver.items[0].is(Kind::value)) return;
    const auto base = receiver.items[0].valueIndex();
    if (made[base] == none) return;  // an input
    bool isRead = false;
    for (std::size_t k = 0; k < n; ++k)
      fx::forEachValue(graph.nodes[k].call, [&](std::size_t value) { isRead |= value == base; });
    if (isRead) ops_[made[base]].detachedLater = true;
    else ops_[made[base]].recorded = false;
  }

  /// The own backwards that the gradient at node `n` passes.
  void findInner(const fx::Graph& graph, std::size_t n, const std::vector<std::size_t>& made) {
    std::vector<char> leads(graph.valueCount(), 0);
    leads[graph.inputs.size() + n] = 1;
    for (auto k = n + 1; k-- > 0;) {
      const auto value = graph.inputs.size() + k;
      if (!leads[value]) continue;
      if (made[value] != none && ops_[made[value]].name == "autograd_function_apply") ops_[made[value]].isInner = true;
      fx::forEachValue(graph.nodes[k].call, [&](std::size_t operand) { leads[operand] = 1; });
    }
  }

  /// Follows torch.func.grad and its kin.
  bool switchesNesting(const Expression& call) {
    const auto name = nameOf(call);
    if (name == "_grad_increment_nesting") ++nesting_;
    else if (name == "_grad_decrement_nesting") --nesting_;
    else return false;
    return true;
  }

  /// The bodies that a higher-order op is given. Of an autograd.Function the first, which is its forward.
  void addBodies(const fx::Graph& graph, const Expression& call, bool isApply, bool hasOwnBackward, int depth) {
    if (!call.is(Kind::call)) return;
    for (std::size_t i = 1; i < call.items.size(); ++i) {
      if (!call.items[i].is(Kind::value)) continue;
      const auto value = call.items[i].valueIndex();
      if (value < graph.inputs.size()) continue;
      const auto attribute = fx::ownAttribute(graph.nodes[value - graph.inputs.size()].call);
      const auto* body = attribute ? graph.body(*attribute) : nullptr;
      if (body == nullptr && attribute) body = root_.body(*attribute);
      if (body == nullptr) continue;
      const auto before = recorded_;
      add(*body, hasOwnBackward || isApply, depth + 1);
      recorded_ = before;
      if (isApply) return;
    }
  }

  /// Follows torch.no_grad, enable_grad and inference_mode.
  bool switchesGradMode(const Expression& call) {
    if (!call.is(Kind::call) || !call.items[0].is(Kind::path)) return false;
    const auto name = lastPart(call.items[0].text);
    if (name == "_set_grad_enabled" || name == "set_grad_enabled") {
      recorded_ = call.items.size() > 1 && call.items[1].is(Kind::boolean) && call.items[1].integer != 0;
      return true;
    }
    if (name == "_enter_inference_mode") {
      inference_.push_back(recorded_);
      recorded_ = !(call.items.size() > 1 && call.items[1].is(Kind::boolean) && call.items[1].integer != 0);
      return true;
    }
    if (name != "_exit_inference_mode") return false;
    if (!inference_.empty()) {
      recorded_ = inference_.back();
      inference_.pop_back();
    }
    return true;
  }

  static bool isInnerGradientWithoutGraph(const Expression& call) {
    if (!call.isCallOf("torch.autograd.grad")) return false;
    const auto* creates = call.keyword("create_graph");
    return creates == nullptr || !creates->is(Kind::boolean) || creates->integer == 0;
  }

  const fx::Graph& root_;
  std::vector<DynamoOp> ops_;
  bool recorded_ = true;
  int nesting_ = 0;  ///< of torch.func.grad
  std::vector<bool> inference_;
};

}  // namespace

std::string operatorName(const std::string& sign) {
  static const std::map<std::string, std::string, std::less<>> names{
      {"+", "add"},   {"-", "sub"},   {"*", "mul"},       {"/", "truediv"},   {"//", "floordiv"}, {"@", "matmul"},
      {"%", "mod"},   {"**", "pow"},  {"==", "eq"},       {"!=", "ne"},       {"<", "lt"},        {"<=", "le"},
      {">", "gt"},    {">=", "ge"},   {"&", "and_"},      {"|", "or_"},       {"^", "xor"},       {"+=", "iadd"},
      {"-=", "isub"}, {"*=", "imul"}, {"/=", "itruediv"}, {"[]=", "setitem"}, {"~", "invert"}};
  const auto found = names.find(sign);
  return found == names.end() ? "operator" : found->second;
}

std::vector<DynamoOp> dynamoOps(const fx::Graph& dynamo) { return Flattener(dynamo).flatten(); }

}  // namespace retrograd::jobs
