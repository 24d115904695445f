// Regions: bodies of higher-order ops, run on real values as they grow.
#include "tests/fuzz/programs/regions.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

std::vector<int> operands(Draft& d, std::size_t most) {
  std::vector<int> found;
  for (std::size_t i = 0; i < most; ++i) {
    const auto id = d.pick({Want::floating});
    if (id >= 0 && std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
  }
  return found;
}

std::vector<c10::IValue> valuesOf(Draft& d, const std::vector<int>& ids) {
  std::vector<c10::IValue> values;
  for (auto id : ids) values.push_back(d.interpreter().value(id));
  return values;
}

/// A few ops that keep shape and dtype, from `start` on; the last value.
int chain(Draft& d, int start, std::int64_t length) {
  static std::vector<const Entry*> keeping;
  if (keeping.empty())
    for (const auto& entry : catalogue())
      if (entry.keeps && !entry.custom && (entry.tokens[0] == "f" || entry.tokens[0] == "r")) keeping.push_back(&entry);
  auto value = start;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto& entry = *d.random.of(keeping);
    const bool unary = entry.tokens.size() == 1;
    auto next = -1;
    if (unary) {
      next = d.make(entry.op, {Arg::value(value)});
    } else {
      std::vector<int> fitting;
      for (auto id : d.visible())
        if (d.tensor(id).sizes() == d.tensor(value).sizes() &&
            d.tensor(id).scalar_type() == d.tensor(value).scalar_type())
          fitting.push_back(id);
      const std::vector<std::string> binary{"aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor",
                                            "aten.maximum.default"};
      next = d.make(d.random.of(binary), {Arg::value(value), Arg::value(d.random.of(fitting))});
    }
    if (next >= 0 && d.tensor(next).sizes() == d.tensor(value).sizes() &&
        d.tensor(next).scalar_type() == d.tensor(value).scalar_type())
      value = next;
  }
  return value;
}

/// Results of a body: some of what it made.
std::vector<int> resultsOf(Draft& d, const Body& body, const std::vector<int>& visible) {
  std::vector<int> results;
  for (auto id : visible)
    if (std::find(body.inputs.begin(), body.inputs.end(), id) == body.inputs.end() &&
        (!d.isUsed(id) || d.random.chance(0.2)))
      results.push_back(id);
  if (results.size() > 3) results.erase(results.begin(), results.end() - 3);
  return results;
}

std::vector<Arg> argsOf(const std::vector<int>& ids) {
  std::vector<Arg> args;
  for (auto id : ids) args.push_back(Arg::value(id));
  return args;
}

/// no_grad, autocast, checkpointed: ops of any kind.
bool plainRegion(Draft& d, int region, const std::function<void()>& oneOp) {
  const auto outer = operands(d, 3);
  if (outer.empty()) return false;
  Draft::Scope scope(d, valuesOf(d, outer));
  std::vector<int> results;
  {
    const at::AutoGradMode mode(region != 1);
    const bool before = at::autocast::is_autocast_enabled(at::kCPU);
    const auto type = at::autocast::get_autocast_dtype(at::kCPU);
    if (region == 2) {
      at::autocast::set_autocast_enabled(at::kCPU, true);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
      at::autocast::increment_nesting();
    }
    for (auto n = d.random.between(1, 5); n > 0; --n) oneOp();
    if (region == 2) {
      const auto x = d.shaped({2, 3}), w = x < 0 ? -1 : d.shaped({2, 3}, x);
      if (w >= 0) d.call("aten.linear.default", {Arg::value(x), Arg::value(w)});
      if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, before);
      at::autocast::set_autocast_dtype(at::kCPU, type);
    }
    results = resultsOf(d, scope.body, d.visible());
  }
  if (results.empty()) {
    scope.finish({});
    return false;
  }
  const auto contents = valuesOf(d, results);
  scope.finish(argsOf(results));
  const auto body = d.addBody(std::move(scope.body));
  std::vector<Arg> args;
  const char* op = "higher_order.tag_activation_checkpoint";
  if (region == 1) {
    op = "higher_order.wrap_with_set_grad_enabled";
    args = {Arg::boolean(false)};
  } else if (region == 2) {
    op = "higher_order.wrap_with_autocast";
    args = {Arg::string("cpu"), Arg::dtype(DType::bf16), Arg::boolean(true), Arg::boolean(true)};
  }
  args.push_back(Arg::body(body));
  for (auto id : outer) args.push_back(Arg::value(id));
  d.bindCall(op, args, contents);
  return true;
}

bool cond(Draft& d) {
  const auto outer = operands(d, 3);
  if (outer.empty()) return false;
  // On data or on a buffer of truth.
  auto predicate = d.pick({Want::boolean, 0, 0});
  if (predicate < 0 || d.random.chance(0.5)) {
    const auto v = d.pick({Want::real});
    const auto sum = v < 0 ? -1 : d.make("aten.sum.default", {Arg::value(v)});
    predicate = sum < 0 ? -1 : d.make("aten.gt.Scalar", {Arg::value(sum), Arg::number(d.scalar())});
  }
  if (predicate < 0) return false;
  const bool taken = d.tensor(predicate).item().toBool();
  std::vector<c10::IValue> contents;
  int bodies[2];
  const auto count = d.random.between(1, static_cast<std::int64_t>(outer.size()));
  for (int branch = 0; branch < 2; ++branch) {
    Draft::Scope scope(d, valuesOf(d, outer));
    d.inBranch = true;
    std::vector<int> results;
    for (std::int64_t i = 0; i < count; ++i) {
      auto value = chain(d, scope.body.inputs[static_cast<std::size_t>(i)], d.random.between(1, 3));
      if (value == scope.body.inputs[static_cast<std::size_t>(i)])
        value = d.make("aten.sin.default", {Arg::value(value)});
      results.push_back(value);
    }
    d.inBranch = false;
    if (std::find(results.begin(), results.end(), -1) != results.end()) return false;
    if ((branch == 0) == taken) contents = valuesOf(d, results);
    scope.finish(argsOf(results));
    bodies[branch] = d.addBody(std::move(scope.body));
  }
  d.bindCall("higher_order.cond",
             {Arg::value(predicate), Arg::body(bodies[0]), Arg::body(bodies[1]), Arg::values(outer)}, contents);
  return true;
}

/// scan and map: a body over slices, run once to see what it makes, then as a whole.
bool loop(Draft& d, bool carries) {
  const auto xs = d.pick({Want::floating, 1, 3, [](const at::Tensor& t) { return t.size(0) >= 1 && t.numel() > 0; }});
  if (xs < 0) return false;
  const auto slice = d.tensor(xs).select(0, 0);
  std::vector<int> carry, additional;
  if (carries) {
    carry.push_back(d.shaped(slice.sizes().vec(), xs));
    if (carry[0] < 0) return false;
  }
  if (d.random.chance(0.6)) {
    const auto extra = d.pick({Want::floating, 0, 3, [&](const at::Tensor& t) {
                                 return t.scalar_type() == slice.scalar_type() && t.sizes() == slice.sizes();
                               }});
    if (extra >= 0) additional.push_back(extra);
  }
  std::vector<c10::IValue> arguments = valuesOf(d, carry);
  arguments.emplace_back(slice);
  for (const auto& value : valuesOf(d, additional)) arguments.push_back(value);
  Draft::Scope scope(d, arguments);
  d.inBranch = true;
  std::vector<int> results;
  bool fits = true;
  if (carries) {
    auto next = chain(d, scope.body.inputs[0], d.random.between(1, 2));
    next = d.make("aten.add.Tensor", {Arg::value(next), Arg::value(scope.body.inputs[1])});
    if (next >= 0) next = d.make("aten.tanh.default", {Arg::value(next)});
    fits = next >= 0;
    results.push_back(next);
  }
  if (fits) {
    auto out = chain(d, scope.body.inputs[carries ? 1 : 0], d.random.between(1, 3));
    out = d.make("aten.mul.Tensor", {Arg::value(out), Arg::value(d.random.of(scope.body.inputs))});
    fits = out >= 0;
    results.push_back(out);
  }
  d.inBranch = false;
  if (!fits) return false;
  scope.finish(argsOf(results));
  const auto body = d.addBody(std::move(scope.body));
  Call call;
  call.op = carries ? "higher_order.scan" : "higher_order.map_impl";
  call.args = {Arg::body(body)};
  if (carries) call.args.push_back(Arg::values(carry));
  call.args.push_back(Arg::values({xs}));
  call.args.push_back(Arg::values(additional));
  std::vector<std::int32_t> returns;
  try {
    const auto contents = d.interpreter().results(call, returns);
    d.bindCall(call.op, call.args, contents);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

bool whileLoop(Draft& d) {
  const auto x = d.pick({Want::floating});
  if (x < 0) return false;
  const auto counter = d.make("aten.zeros.default", {Arg::ints({}), Arg::dtype(DType::i64)});
  if (counter < 0) return false;
  const auto limit = d.random.between(1, 3);
  int bodies[2];
  {
    Draft::Scope scope(d, valuesOf(d, {counter, x}));
    const auto more = d.make("aten.lt.Scalar", {Arg::value(scope.body.inputs[0]), Arg::number(limit)});
    if (more < 0) return false;
    scope.finish({Arg::value(more)});
    bodies[0] = d.addBody(std::move(scope.body));
  }
  {
    Draft::Scope scope(d, valuesOf(d, {counter, x}));
    d.inBranch = true;
    const auto next = d.make("aten.add.Scalar", {Arg::value(scope.body.inputs[0]), Arg::number(std::int64_t{1})});
    auto value = chain(d, scope.body.inputs[1], d.random.between(1, 2));
    value = next < 0 ? -1 : d.make("aten.sin.default", {Arg::value(value)});
    d.inBranch = false;
    if (value < 0) return false;
    scope.finish({Arg::value(next), Arg::value(value)});
    bodies[1] = d.addBody(std::move(scope.body));
  }
  Call call{"higher_order.while_loop",
            {Arg::body(bodies[0]), Arg::body(bodies[1]), Arg::values({counter, x}), Arg::list({})},
            {},
            {}};
  std::vector<std::int32_t> returns;
  try {
    const auto contents = d.interpreter().results(call, returns);
    d.bindCall(call.op, call.args, contents);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace

double regionChance(int region) {
  constexpr double chances[] = {0, 0.12, 0.05, 0.09, 0.07, 0.04, 0.04, 0.04};
  return chances[region];
}

bool addRegion(Draft& draft, int region, const std::function<void()>& oneOp) try {
  switch (region) {
    case 1:
    case 2:
    case 3: return plainRegion(draft, region, oneOp);
    case 4: return cond(draft);
    case 5: return loop(draft, true);
    case 6: return loop(draft, false);
    default: return whileLoop(draft);
  }
} catch (const c10::Error&) {  // an operand is one of several views of a base that was written since: eager refuses
                               // every use
  draft.inBranch = false;
  return false;
}

}  // namespace retrograd::fuzz
