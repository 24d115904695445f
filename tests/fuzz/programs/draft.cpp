#include "tests/fuzz/programs/draft.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <ATen/core/function_schema.h>

#include "tests/fuzz/programs/schema.h"

namespace retrograd::fuzz {
namespace {

constexpr std::int64_t mostElements = 256;
constexpr double mostMagnitude = 1e4;
constexpr std::size_t mostInputs = 12;

unsigned kindOf(const at::Tensor& tensor) {
  return tensor.is_complex()                 ? Want::complex
         : tensor.is_floating_point()        ? Want::real
         : tensor.scalar_type() == at::kBool ? Want::boolean
                                             : Want::integer;
}

template <class T>
bool allModerate(const at::Tensor& contiguous) {
  const auto* data = static_cast<const T*>(contiguous.const_data_ptr());
  for (std::int64_t i = 0; i < contiguous.numel(); ++i) {
    const auto v = static_cast<double>(data[i]);
    if (!(std::abs(v) < mostMagnitude)) return false;
  }
  return true;
}

/// All elements finite and none too large.
bool isModerate(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() && !tensor.is_complex()) return true;
  const at::NoGradGuard none;
  auto real = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  real = real.contiguous().resolve_neg();
  switch (real.scalar_type()) {
    case at::kDouble: return allModerate<double>(real);
    case at::kFloat: return allModerate<float>(real);
    default: return allModerate<double>(real.to(at::kDouble));
  }
}

/// Whether two indices lie in the same place.
bool overlapsItself(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return false;
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t place = 0, rest = i;
    for (auto d = tensor.dim(); d-- > 0; rest /= tensor.size(d)) place += rest % tensor.size(d) * tensor.stride(d);
    if (!places.insert(place).second) return true;
  }
  return false;
}

}  // namespace

Draft::Draft(std::uint64_t seed, DType mainType, bool dynamic)
    : random(seed), main(mainType), run_(program), draw_(0), otherDraw_(0), calls_(&program.main.calls) {
  program.seed = random.below(1000);
  draw_ = InputDraw(program.seed);
  otherDraw_ = InputDraw(program.seed);
  if (dynamic) {
    program.size = random.between(3, 5);
    program.mode.otherSize = program.size + random.between(1, 3);
    other_ = std::make_unique<Interpreter>(program, false, *program.mode.otherSize);
    run_ = Interpreter(program, false, program.size);
  }
  // A program's inputs come first among the value ids: ids are given out behind as many as there may be.
  program.values = static_cast<int>(mostInputs);
}

int Draft::newValue(c10::IValue content) {
  const auto id = program.values++;
  run_.bind(id, std::move(content));
  return id;
}

bool Draft::fits(const at::Tensor& tensor) const {
  if (!tensor.defined()) return true;
  if (tensor.numel() > mostElements || tensor.dim() > 6 || tensor.layout() != at::kStrided) return false;
  return allowNonFinite || isModerate(tensor);
}

/// Integers that stand for sizes become expressions over s0 where an operand's size of that number depends on it.
void Draft::inTermsOfSize(Call& call) const {
  const auto& arguments = schemaOf(call.op).schema().arguments();
  const auto by = *program.mode.otherSize - program.size;
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // here, there
  for (const auto& arg : call.args)
    forEachArg(arg, [&](const Arg& a) {
      if (a.kind != Arg::Kind::value) return;
      const auto& here = tensor(static_cast<int>(a.integer));
      const auto& there = other_->value(static_cast<int>(a.integer)).toTensor();
      for (std::int64_t d = 0; d < here.dim() && d < there.dim(); ++d)
        if (here.size(d) != there.size(d)) sizes.emplace_back(here.size(d), there.size(d));
      if (here.numel() != there.numel()) sizes.emplace_back(here.numel(), there.numel());
    });
  if (sizes.empty()) return;
  for (std::size_t i = 0; i < call.args.size() && i < arguments.size(); ++i) {
    if (arguments[i].real_type()->str().find("SymInt") == std::string::npos) continue;
    forEachArg(call.args[i], [&](Arg& a) {
      if (a.kind != Arg::Kind::integer) return;
      for (const auto& [here, there] : sizes) {
        if (a.integer != here || (there - here) % by != 0) continue;
        a.perSize = (there - here) / by;
        a.integer = here - a.perSize * program.size;
        return;
      }
    });
  }
}

bool Draft::call(const std::string& op, std::vector<Arg> args) {
  Call call{op, std::move(args), {}, {}};
  bool complete = true;  // an operand that did not come about is -1
  for (const auto& arg : call.args)
    forEachArg(arg, [&](const Arg& a) { complete &= a.kind != Arg::Kind::value || a.integer >= 0; });
  if (!complete) return false;
  const auto& schema = schemaOf(op);
  if (call.args.size() > schema.schema().arguments().size())
    throw std::runtime_error("the table of ops gives " + op + " too many arguments");
  std::vector<c10::IValue> found;
  bool throughView = false, writing = false;
  for (std::size_t i = 0; i < call.args.size(); ++i)
    if (schema.writes(i) && call.args[i].kind == Arg::Kind::value) {
      const auto id = static_cast<int>(call.args[i].integer);
      if (inBranch || !writable(id) || (schema.isInplaceView() && isReadAsOtherNumbers(id))) return false;
      writing = true;
      throughView |= isViewed(id);
    }
  std::vector<c10::IValue> others;
  try {
    if (other_) {
      inTermsOfSize(call);
      std::vector<std::int32_t> returns;
      others = other_->results(call, returns);
    }
    found = run_.results(call, call.returns);
  } catch (const std::exception&) {
    return false;
  }
  if (other_ && others.size() != found.size()) return false;
  for (const auto& value : found)
    if (!value.isTensor() || !fits(value.toTensor())) {
      if (!writing || !value.isTensor()) return false;
    }
  made_.clear();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto id = found[i].toTensor().defined() ? newValue(found[i]) : -1;
    if (other_) other_->bind(id, others[i]);
    call.outputs.push_back(id);
    made_.push_back(id);
    if (id >= 0) visible_.push_back(id);
  }
  if (std::all_of(call.returns.begin(), call.returns.end(), [](auto n) { return n < 0; })) call.returns.clear();
  for (const auto& arg : call.args)
    forEachArg(arg, [&](const Arg& a) {
      if (a.kind == Arg::Kind::value) used_.insert(static_cast<int>(a.integer));
    });
  if (op.starts_with("aten.unsafe_") || op == "aten._unsafe_view.default")
    unsafeViews_.insert(unsafeViews_.end(), made_.begin(), made_.end());
  writes += writing;
  writesThroughViews += throughView;
  calls_->push_back(std::move(call));
  return true;
}

int Draft::make(const std::string& op, std::vector<Arg> args) {
  if (!call(op, std::move(args))) return -1;
  for (auto id : made_)
    if (id >= 0) return id;
  return -1;
}

bool Draft::fits(const Want& want, const at::Tensor& tensor) const try {
  return want.where(tensor);
} catch (const c10::Error&) {
  return false;  // as in writable()
}

int Draft::pick(const Want& want) {
  std::vector<int> found;
  for (auto id : visible_) {
    const auto& value = run_.value(id);
    if (!value.isTensor()) continue;
    const auto& t = value.toTensor();
    if ((kindOf(t) & want.kinds) && t.dim() >= want.least && t.dim() <= want.most) found.push_back(id);
  }
  for (int tries = 0; tries < 8 && !found.empty(); ++tries) {
    // What nobody has used yet, and what is new, rather than the rest.
    auto at = std::max(random.below(found.size()), random.below(found.size()));
    if (used_.contains(found[at]) && random.chance(0.5)) at = random.below(found.size());
    if (!want.where || fits(want, tensor(found[at]))) return found[at];
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return -1;
}

bool Draft::writable(int id) try {
  const auto& t = tensor(id);
  if (t.is_leaf() && t.requires_grad()) return false;
  if (t.is_inference() || t.numel() == 0) return false;
  if (std::any_of(unsafeViews_.begin(), unsafeViews_.end(), [&](int view) { return tensor(view).is_alias_of(t); }))
    return false;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto& input = program.inputs[i];
    const bool isGiven = input.kind == Input::Kind::parameter ||
                         (input.kind == Input::Kind::user && !input.noGrad && isDifferentiable(input.dtype));
    if (isGiven && run_.value(static_cast<int>(i)).toTensor().is_alias_of(t)) return false;
  }
  for (std::int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1 && t.stride(d) == 0) return false;
  // Few ops of eager's write where elements overlap; each goes over them in an order of its own.
  return !overlapsItself(t) || random.chance(0.1);
} catch (const c10::Error&) {
  return false;  // one of several views of a base that was written since: eager lets nobody ask for its history
}

/// Whether a conjugate of it, or its complex numbers as real ones, is in use. Where the strides of a base change in
/// place, eager repeats such views on the new strides for their gradient, though their values are those of the old
/// ones: gradcheck refuses what it then says.
bool Draft::isReadAsOtherNumbers(int id) const {
  const auto& t = tensor(id);
  return std::any_of(visible_.begin(), visible_.end(), [&](int other) {
    if (!run_.value(other).isTensor()) return false;
    const auto& o = run_.value(other).toTensor();
    return o.defined() && o.is_alias_of(t) && (o.is_conj() != t.is_conj() || o.is_complex() != t.is_complex());
  });
}

bool Draft::isDense(int id) const {
  const auto dense = [](const at::Tensor& t) { return t.numel() > 0 && t.is_non_overlapping_and_dense(); };
  const auto& here = tensor(id);
  if (!dense(here) || !other_) return dense(here);
  const auto& there = other_->value(id).toTensor();
  return dense(there) && there.storage_offset() == here.storage_offset() && there.numel() >= here.numel();
}

bool Draft::isDistinct(int id) const {
  const auto distinct = [](const at::Tensor& t) { return std::get<0>(at::_unique(t.detach())).numel() == t.numel(); };
  return distinct(tensor(id)) && (!other_ || distinct(other_->value(id).toTensor()));
}

bool Draft::isVaried(int id) const {
  const auto varied = [](const at::Tensor& t) {
    if (t.size(1) < 2) return false;
    const auto rows = t.detach().to(t.is_complex() ? at::kComplexDouble : at::kDouble);
    const auto apart = rows.sub(rows.narrow(1, 0, 1)).abs().amax(1), largest = rows.abs().amax(1);
    return apart.gt(largest.mul(1e-3)).all().item().toBool();
  };
  return varied(tensor(id)) && (!other_ || varied(other_->value(id).toTensor()));
}

bool Draft::isViewed(int id) const {
  const auto& t = tensor(id);
  return std::any_of(visible_.begin(), visible_.end(), [&](int other) {
    if (other >= id || !run_.value(other).isTensor()) return false;
    const auto& o = run_.value(other).toTensor();
    return o.is_alias_of(t) && (o.sizes() != t.sizes() || o.strides() != t.strides() ||
                                o.storage_offset() != t.storage_offset() || o.scalar_type() != t.scalar_type());
  });
}

bool Draft::wasWritten(int input) const {
  return run_.value(input).toTensor()._version() != versions_[static_cast<std::size_t>(input)];
}

int Draft::input(Input::Kind kind, DType dtype, const Sizes& sizes, bool noGrad, bool symbolic) {
  if (program.inputs.size() >= mostInputs || depth_ > 0) return -1;
  Input input;
  input.kind = kind;
  const auto id = static_cast<int>(program.inputs.size());
  input.name = (kind == Input::Kind::user ? "x" : kind == Input::Kind::parameter ? "p" : "b") + std::to_string(id);
  input.dtype = dtype;
  input.sizes = sizes;
  input.strides = contiguousStrides(sizes);
  input.noGrad = noGrad && kind != Input::Kind::buffer;
  if (symbolic && isDynamic()) {
    for (auto size : sizes) input.perSize.push_back(size == program.size);
  } else if (random.chance(0.25) && sizes.size() >= 2) {  // another layout: dimensions swapped, or gaps and an offset
    if (random.chance(0.5)) {
      auto swapped = sizes;
      const auto a = random.below(sizes.size()), b = random.below(sizes.size());
      std::swap(swapped[a], swapped[b]);
      input.strides = contiguousStrides(swapped);
      std::swap(input.strides[a], input.strides[b]);
    } else {
      for (auto& stride : input.strides) stride *= 2;
      // Not for complex numbers: behind a view that as_strided cannot be, eager's gradient of a write counts the base's
      // offset twice and reads what lies there.
      input.offset = isComplex(dtype) ? 0 : kind == Input::Kind::user ? 1 : 3;
    }
  }
  auto content = draw_.draw(input, sizes);
  const bool differentiated = kind != Input::Kind::buffer && !input.noGrad && isDifferentiable(dtype);
  content = content.detach();
  if (differentiated) content.requires_grad_(true);
  if (other_) {
    auto there = sizes;
    for (std::size_t d = 0; d < input.perSize.size(); ++d)
      there[d] += input.perSize[d] * (*program.mode.otherSize - program.size);
    auto otherContent = otherDraw_.draw(input, there).detach();
    if (differentiated) otherContent.requires_grad_(true);
    other_->bind(id, otherContent);
  }
  program.inputs.push_back(input);
  run_.bind(id, content);
  versions_.push_back(static_cast<std::uint32_t>(content._version()));
  visible_.push_back(id);
  return id;
}

Draft::Scope::Scope(Draft& draft, const std::vector<c10::IValue>& arguments) : draft_(draft) {
  ++draft.depth_;
  calls_.swap(*draft.calls_);
  visible_.swap(draft.visible_);
  for (const auto& argument : arguments) {
    const auto id = draft.newValue(argument);
    body.inputs.push_back(id);
    draft.visible_.push_back(id);
  }
}

void Draft::Scope::finish(std::vector<Arg> results) {
  body.calls.swap(*draft_.calls_);
  body.results = std::move(results);
  draft_.calls_->swap(calls_);
  draft_.visible_.swap(visible_);
  --draft_.depth_;
  finished_ = true;
}

Draft::Scope::~Scope() {
  if (!finished_) finish({});
}

void Draft::bindCall(const std::string& op, std::vector<Arg> args, const std::vector<c10::IValue>& results) {
  Call call{op, std::move(args), {}, {}};
  made_.clear();
  for (const auto& result : results) {
    const auto id = newValue(result);
    call.outputs.push_back(id);
    made_.push_back(id);
    if (result.isTensor()) visible_.push_back(id);
  }
  for (const auto& arg : call.args)
    forEachArg(arg, [&](const Arg& a) {
      if (a.kind == Arg::Kind::value) used_.insert(static_cast<int>(a.integer));
    });
  calls_->push_back(std::move(call));
}

}  // namespace retrograd::fuzz
