// Programs grow op by op: ops from the catalogue, writes through chains of views, regions.
#include "tests/fuzz/programs/generator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "tests/fuzz/programs/catalogue.h"
#include "tests/fuzz/programs/oracle.h"
#include "tests/fuzz/programs/regions.h"

namespace retrograd::fuzz {
namespace {

const std::vector<const Entry*>& entriesWhere(bool (*wanted)(const Entry&), std::vector<const Entry*>& kept) {
  if (kept.empty())
    for (const auto& entry : catalogue())
      if (wanted(entry)) kept.push_back(&entry);
  return kept;
}
const std::vector<const Entry*>& viewing() {
  static std::vector<const Entry*> kept;
  return entriesWhere([](const Entry& e) { return e.view; }, kept);
}

class Growth {
 public:
  explicit Growth(Draft& draft) : d_(draft) {}

  void inputs() {
    const auto count = d_.random.between(2, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto kind = i == 0 ? Input::Kind::user : d_.random.chance(0.5) ? Input::Kind::parameter : Input::Kind::user;
      auto sizes = d_.sizes(d_.random.between(i == 0 ? 1 : 0, 3));
      const bool symbolic = d_.isDynamic() && kind == Input::Kind::user && !sizes.empty();
      if (symbolic) sizes[d_.random.below(sizes.size())] = d_.program.size;
      d_.input(kind, d_.main, sizes, kind == Input::Kind::user && i > 0 && d_.random.chance(0.4), symbolic);
    }
    if (d_.random.chance(0.5)) d_.input(Input::Kind::buffer, d_.main, d_.sizes(d_.random.between(0, 2)));
    if (d_.random.chance(0.1))
      d_.input(Input::Kind::buffer, d_.random.chance(0.5) ? DType::i64 : DType::b8, d_.sizes(d_.random.between(1, 2)));
    if (d_.random.chance(0.15))
      d_.input(Input::Kind::user, d_.random.chance(0.5) ? DType::i64 : DType::i32, d_.sizes(d_.random.between(1, 2)),
               true);
    if (d_.random.chance(0.1)) d_.input(Input::Kind::user, DType::b8, d_.sizes(1), true);
    if (d_.random.chance(0.15) && !isComplex(d_.main) && d_.main != DType::bf16)
      d_.input(d_.random.chance(0.5) ? Input::Kind::user : Input::Kind::parameter,
               d_.main == DType::f32 ? DType::c64 : DType::c128, d_.sizes(d_.random.between(1, 2)));
  }

  void grow() {
    const auto goal = static_cast<std::size_t>(d_.random.between(13, 26));
    // Writes come early: later ones would often be to what the backward needs, which eager refuses.
    std::vector<int> plan;
    for (auto n = d_.random.chance(0.8) ? d_.random.between(1, 2) : 0; n > 0; --n) plan.push_back(0);
    for (int region = 1; region <= regionKinds; ++region)
      if (!d_.isDynamic() && d_.random.chance(regionChance(region))) plan.push_back(region);
    std::vector<std::size_t> when;
    for (std::size_t i = 0; i < plan.size(); ++i) when.push_back(d_.random.below(goal));
    for (std::size_t step = 0; step < 3 * goal && d_.program.main.calls.size() < goal; ++step) {
      for (std::size_t i = 0; i < plan.size(); ++i)
        if (when[i] <= d_.program.main.calls.size()) {
          const auto what = plan[i];
          plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(i));
          when.erase(when.begin() + static_cast<std::ptrdiff_t>(i));
          if (what == 0) writeThroughView();
          else addRegion(d_, what, [this] { oneOp(); });
          break;
        }
      oneOp();
    }
  }

  void oneOp() {
    const auto& all = catalogue();
    for (int tries = 0; tries < 4; ++tries) {
      const auto& entry = d_.random.chance(0.15) ? *d_.random.of(viewing()) : all[d_.random.below(all.size())];
      if (draw(d_, entry)) return;
    }
  }

  /// A chain of views on memory of the program's own, on a buffer or on an input, a write at its end, and something
  /// that reads the memory by another way.
  void writeThroughView() {
    for (int tries = 0; tries < 4; ++tries) {
      auto base = d_.random.chance(0.5)
                      ? d_.pick({Want::floating, 1, 4, [](const at::Tensor& t) { return t.numel() > 1; }})
                      : -1;
      if (base >= 0 && (!d_.writable(base) || d_.random.chance(0.6)))
        base = d_.make(d_.random.chance(0.7) ? "aten.clone.default" : "aten.mul.Scalar",
                       d_.random.chance(0.5) ? std::vector<Arg>{Arg::value(base)}
                                             : std::vector<Arg>{Arg::value(base), Arg::number(1.5)});
      if (base < 0) base = owned();
      if (base < 0) continue;
      auto view = base;
      for (auto n = d_.random.between(1, 3); n > 0; --n) view = viewOf(view);
      if (view == base) continue;
      const auto before = d_.writesThroughViews;
      for (int write = 0; write < 6 && d_.writesThroughViews == before; ++write) writeTo(view);
      if (d_.writesThroughViews == before) continue;
      if (d_.random.chance(0.5)) {
        const auto other = viewOf(base);
        d_.call("aten.sin.default", {Arg::value(other)});
      } else {
        d_.call("aten.mul.Tensor", {Arg::value(base), Arg::value(base)});
      }
      return;
    }
  }

  std::vector<Arg> results() {
    std::vector<Arg> results;
    const auto visible = d_.visible();
    std::vector<int> unused;
    for (auto id : visible) {
      const auto& t = d_.tensor(id);
      const bool floating = t.is_floating_point() || t.is_complex();
      if (id < static_cast<int>(d_.program.inputs.size())) {
        if (d_.random.chance(0.02)) unused.push_back(id);
      } else if (!d_.isUsed(id) ? d_.random.chance(floating ? 0.75 : 0.3) : d_.random.chance(0.1)) {
        unused.push_back(id);
      }
    }
    if (unused.size() > 6) unused.erase(unused.begin(), unused.end() - 6);
    for (auto id : unused) results.push_back(Arg::value(id));
    return results;
  }

 private:
  /// Memory that is there to be written: a buffer, an input without gradient.
  int owned() {
    if (d_.random.chance(0.5)) {
      const auto found = d_.pick({Want::floating, 1, 4, [](const at::Tensor& t) {
                                    return t.is_leaf() && !t.requires_grad() && t.numel() > 1;
                                  }});
      if (found >= 0 && d_.writable(found)) return found;
    }
    const auto made = d_.random.chance(0.5)
                          ? d_.input(Input::Kind::buffer, d_.main, d_.sizes(d_.random.between(1, 3)))
                          : d_.input(Input::Kind::user, d_.main, d_.sizes(d_.random.between(1, 3)), true);
    return made;
  }

  int viewOf(int id) {
    const auto& t = d_.tensor(id);
    const auto dims = t.dim();
    const auto dim = d_.dim(id);
    const auto v = Arg::value(id);
    const auto size = dims > 0 ? t.size(dim) : 1;
    const auto half = std::max<std::int64_t>(1, size / 2);
    int made = -1;
    const auto number = [](std::int64_t i) { return Arg::number(i); };
    switch (d_.random.below(t.is_complex() ? 17 : 14)) {
      case 0:
        if (dims > 0) made = d_.make("aten.select.int", {v, number(dim), number(d_.random.between(0, size - 1))});
        break;
      case 1:
        if (dims > 0)
          made = d_.make("aten.slice.Tensor", {v, number(dim), number(d_.random.between(0, size - 1)), Arg::none(),
                                               number(d_.random.between(1, 2))});
        break;
      case 2:
        if (dims > 0) made = d_.make("aten.narrow.default", {v, number(dim), number(size - half), number(half)});
        break;
      case 3:
        if (dims > 1) made = d_.make("aten.transpose.int", {v, number(dim), number((dim + 1) % dims)});
        break;
      case 4:
        made = d_.make(d_.random.chance(0.5) ? "aten.view.default" : "aten.reshape.default", {v, Arg::ints({-1})});
        break;
      case 5:
        if (dims > 1)
          made = d_.make("aten.diagonal.default",
                         {v, number(d_.random.between(-1, 1)), number(dim), number((dim + 1) % dims)});
        break;
      case 6:
        if (dims > 0) made = d_.make("aten.unfold.default", {v, number(dim), number(half), number(half)});
        break;
      case 7: made = d_.make("aten.unsqueeze.default", {v, number(d_.random.between(0, dims))}); break;
      case 8: made = d_.make("aten.squeeze.default", {v}); break;
      case 9: {  // size one to size one, and a dimension of one in front
        auto sizes = t.sizes().vec();
        sizes.insert(sizes.begin(), 1);
        made = d_.make("aten.expand.default", {v, Arg::ints(sizes)});
        break;
      }
      case 10: {
        if (t.numel() == 0) break;
        const auto n = std::max<std::int64_t>(1, t.numel() - 1);
        if (t.is_contiguous() && d_.isDense(id))
          made = d_.make("aten.as_strided.default", {v, Arg::ints({n}), Arg::ints({1}),
                                                     number(t.storage_offset() + d_.random.between(0, t.numel() - n))});
        break;
      }
      case 11: {
        if (dims == 0 || size > 6) break;
        if (d_.call("aten.unbind.int", {v, number(dim)})) made = d_.random.of(d_.made());
        break;
      }
      case 12: {
        if (dims == 0 || size > 6) break;
        if (d_.call("aten.split.Tensor", {v, number(half), number(dim)})) made = d_.random.of(d_.made());
        break;
      }
      case 13: {
        const auto& entry = *d_.random.of(viewing());
        const std::vector<std::string> plain{"aten.alias.default",      "aten.detach.default",  "aten.ravel.default",
                                             "aten.contiguous.default", "aten.numpy_T.default", "aten.mT.default",
                                             "aten.positive.default",   "aten.squeeze.default"};
        if (std::find(plain.begin(), plain.end(), entry.op) != plain.end()) made = d_.make(entry.op, {v});
        else if (t.is_floating_point() && dims > 0 && t.size(-1) == 2 && t.stride(-1) == 1)
          made = d_.make("aten.view_as_complex.default", {v});
        break;
      }
      case 14: made = d_.make("aten.real.default", {v}); break;
      case 15: made = d_.make("aten.imag.default", {v}); break;
      default: made = d_.make("aten.view_as_real.default", {v});
    }
    return made >= 0 ? made : id;
  }

  void writeTo(int view) {
    const auto v = Arg::value(view);
    const bool complex = d_.tensor(view).is_complex();
    switch (d_.random.below(9)) {
      case 0: d_.call("aten.mul_.Scalar", {v, Arg::number(d_.scalar())}); break;
      case 1: d_.call("aten.add_.Scalar", {v, Arg::number(d_.scalar())}); break;
      case 2: d_.call("aten.fill_.Scalar", {v, Arg::number(d_.scalar())}); break;
      case 3: d_.call("aten.zero_.default", {v}); break;
      case 4:
      case 5: {
        const auto other = d_.partner(view, false);
        if (other >= 0)
          d_.call(d_.random.chance(0.5)   ? "aten.copy_.default"
                  : d_.random.chance(0.5) ? "aten.add_.Tensor"
                                          : "aten.mul_.Tensor",
                  {v, Arg::value(other)});
        break;
      }
      case 6: {
        const auto m = d_.truths(view);
        if (m >= 0) d_.call("aten.masked_fill_.Scalar", {v, Arg::value(m), Arg::number(d_.scalar())});
        break;
      }
      case 7: {
        const auto a = d_.partner(view, true), b = d_.partner(view, true);
        if (a >= 0 && b >= 0) d_.call("aten.addcmul_.default", {v, Arg::value(a), Arg::value(b)});
        break;
      }
      default: {
        const std::vector<std::string> names =
            complex ? std::vector<std::string>{"neg_", "sin_", "tanh_"}
                    : std::vector<std::string>{"neg_", "sin_", "tanh_", "relu_", "sigmoid_",
                                               "exp_", "cos_", "atan_", "erf_"};
        d_.call("aten." + d_.random.of(names) + ".default", {v});
      }
    }
  }

  Draft& d_;
};

DType mainType(Random& random) {
  const auto of = random.below(100);
  return of < 72 ? DType::f64 : of < 86 ? DType::f32 : of < 92 ? DType::bf16 : DType::c128;
}

void chooseMode(Program& program, Random& random) {
  auto& mode = program.mode;
  const auto of = random.below(100);
  if (of < 15) mode.minCut = true;
  else if (of < 35) mode.recomputeAll = true;
  else if (of < 45) mode.order = 2;
  else if (of < 60 && program.size == 0) {
    const auto count = program.main.calls.size();
    for (auto n = random.between(1, 2); n > 0 && count > 2; --n) mode.cuts.push_back(1 + random.below(count - 1));
    std::sort(mode.cuts.begin(), mode.cuts.end());
    mode.cuts.erase(std::unique(mode.cuts.begin(), mode.cuts.end()), mode.cuts.end());
  }
}

}  // namespace

std::optional<Program> generate(std::uint64_t seed) {
  const at::AutoGradMode mode(true);
  Random random(seed);
  const auto main = mainType(random);
  Draft draft(random.next(), main, random.chance(0.06));
  at::manual_seed(draft.program.seed);
  draft.allowNonFinite = random.chance(0.03);
  Growth growth(draft);
  growth.inputs();
  growth.grow();
  auto& program = draft.program;
  program.main.results = growth.results();
  if (program.main.results.empty() || program.main.calls.size() < 4) return std::nullopt;
  bool unsettled = false;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    auto& input = program.inputs[i];
    const bool written = draft.wasWritten(static_cast<int>(i));
    (input.kind == Input::Kind::buffer ? program.writesBuffers : program.writesInputs) |= written;
    input.grad = input.kind != Input::Kind::buffer && !input.noGrad && isDifferentiable(input.dtype);
    // Whoever reads the text finds out by itself whether an input that is written has a gradient.
    if (input.noGrad && written && input.kind == Input::Kind::user && random.chance(0.5)) {
      input.noGrad = false;
      unsettled = true;
    }
  }
  if (unsettled && !settleInputs(program)) return std::nullopt;
  program.writesThroughViews = static_cast<int>(draft.writesThroughViews);
  chooseMode(program, random);
  return std::move(draft.program);
}

}  // namespace retrograd::fuzz
