// Higher-order ops as Python runs them: branches that are taken, loops turn by turn, regions under their modes.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "tests/fuzz/programs/interpreter.h"

namespace retrograd::fuzz {
namespace {

/// torch.autocast(device, dtype, enabled)
class Autocast {
 public:
  Autocast(const Arg& dtype, bool enabled, bool inDouble)
      : enabled_(at::autocast::is_autocast_enabled(at::kCPU)), dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, enabled && !inDouble);
    if (dtype.kind == Arg::Kind::dtype)
      at::autocast::set_autocast_dtype(at::kCPU, scalarType(static_cast<DType>(dtype.integer)));
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_;
  at::ScalarType dtype_;
};

bool truth(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item().toBool() : value.isBool() ? value.toBool() : value.toInt() != 0;
}

}  // namespace

std::vector<c10::IValue> Interpreter::runBody(const Body& body, const std::vector<c10::IValue>& arguments) {
  TORCH_CHECK(arguments.size() == body.inputs.size(), "a body takes ", body.inputs.size(), " values, not ",
              arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) bind(body.inputs[i], arguments[i]);
  run(body.calls);
  std::vector<c10::IValue> results;
  for (const auto& result : body.results) results.push_back(argument(result, c10::AnyType::get()));
  return results;
}

std::vector<c10::IValue> Interpreter::plain(const Arg& arg) const {
  std::vector<c10::IValue> values;
  if (arg.kind != Arg::Kind::list) return {argument(arg, c10::AnyType::get())};
  for (const auto& item : arg.items) values.push_back(argument(item, c10::AnyType::get()));
  return values;
}

std::vector<c10::IValue> Interpreter::runHigherOrder(const Call& call) {
  const auto kind = call.op.substr(call.op.find('.') + 1);
  const auto body = [&](std::size_t i) -> const Body& {
    return program_->bodies.at(static_cast<std::size_t>(call.args.at(i).integer));
  };
  const auto behind = [&](std::size_t first) {
    std::vector<c10::IValue> values;
    for (auto i = first; i < call.args.size(); ++i) values.push_back(argument(call.args[i], c10::AnyType::get()));
    return values;
  };
  if (kind == "cond")
    return runBody(truth(argument(call.args.at(0), c10::AnyType::get())) ? body(1) : body(2), plain(call.args.at(3)));
  if (kind == "scan") return loop(call, true);
  if (kind == "map_impl") return loop(call, false);
  if (kind == "while_loop") return whileLoop(call);
  if (kind == "wrap_with_set_grad_enabled") {
    const at::AutoGradMode mode(call.args.at(0).integer != 0);
    return runBody(body(1), behind(2));
  }
  if (kind == "wrap_with_autocast") {
    const Autocast autocast(call.args.at(1), call.args.at(2).integer != 0, inDouble_);
    return runBody(body(4), behind(5));
  }
  TORCH_CHECK(kind == "tag_activation_checkpoint", "the fuzzer does not know ", call.op);
  return runBody(body(0), behind(1));
}

/// scan(body, init, xs, additional) and map_impl(body, xs, additional): slice by slice along dimension 0.
std::vector<c10::IValue> Interpreter::loop(const Call& call, bool carries) {
  const auto& body = program_->bodies.at(static_cast<std::size_t>(call.args.at(0).integer));
  auto carry = carries ? plain(call.args.at(1)) : std::vector<c10::IValue>();
  const auto stacked = plain(call.args.at(carries ? 2 : 1)), additional = plain(call.args.at(carries ? 3 : 2));
  std::vector<std::vector<at::Tensor>> slices;
  for (std::int64_t i = 0, n = stacked.at(0).toTensor().size(0); i < n; ++i) {
    auto all = carry;
    for (const auto& x : stacked) all.emplace_back(x.toTensor().select(0, i));
    all.insert(all.end(), additional.begin(), additional.end());
    const auto results = runBody(body, all);
    slices.resize(results.size() - carry.size());
    for (std::size_t k = carry.size(); k < results.size(); ++k)
      slices[k - carry.size()].push_back(results[k].toTensor());
    std::copy_n(results.begin(), carry.size(), carry.begin());
  }
  for (const auto& parts : slices) carry.emplace_back(at::stack(parts));
  return carry;
}

/// while_loop(condition, body, carry, additional)
std::vector<c10::IValue> Interpreter::whileLoop(const Call& call) {
  const auto& condition = program_->bodies.at(static_cast<std::size_t>(call.args.at(0).integer));
  const auto& body = program_->bodies.at(static_cast<std::size_t>(call.args.at(1).integer));
  auto carry = plain(call.args.at(2));
  const auto additional = plain(call.args.at(3));
  for (int turn = 0;; ++turn) {
    TORCH_CHECK(turn < 100, "a loop of the fuzzer does not end");
    auto all = carry;
    all.insert(all.end(), additional.begin(), additional.end());
    if (!truth(runBody(condition, all).at(0))) return carry;
    carry = runBody(body, all);
  }
}

}  // namespace retrograd::fuzz
