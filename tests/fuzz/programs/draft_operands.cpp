// Operands of a draft's calls: of given sizes, within a range, indices, masks.
#include "tests/fuzz/programs/draft.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace retrograd::fuzz {
namespace {

bool allWithin(const at::Tensor& tensor, double least, double most) {
  const at::NoGradGuard none;
  const auto values = tensor.to(at::kDouble).contiguous();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    if (const auto v = static_cast<const double*>(values.const_data_ptr())[i]; !(v >= least && v <= most)) return false;
  return true;
}

}  // namespace

Sizes Draft::sizes(std::int64_t dims) {
  Sizes sizes;
  for (std::int64_t i = 0; i < dims; ++i) sizes.push_back(random.chance(0.1) ? 1 : random.between(2, dims > 2 ? 3 : 4));
  return sizes;
}

int Draft::resized(int value, const Sizes& sizes) {
  std::int64_t wanted = 1;
  for (auto s : sizes) wanted *= s;
  const auto have = tensor(value).numel();
  if (have == 0 || wanted == 0) return -1;
  if (tensor(value).sizes() == at::IntArrayRef(sizes)) return value;
  auto v = value;
  if (have != wanted) {
    v = make("aten.reshape.default", {Arg::value(v), Arg::ints({-1})});
    if (v >= 0 && have < wanted)
      v = make("aten.repeat.default", {Arg::value(v), Arg::ints({(wanted + have - 1) / have})});
    if (v >= 0 && tensor(v).numel() > wanted)
      v = make("aten.narrow.default",
               {Arg::value(v), Arg::number(std::int64_t{0}), Arg::number(random.between(0, tensor(v).numel() - wanted)),
                Arg::number(wanted)});
    if (v < 0) return -1;
  }
  return make(tensor(v).is_contiguous() && random.chance(0.5) ? "aten.view.default" : "aten.reshape.default",
              {Arg::value(v), Arg::ints(sizes)});
}

int Draft::shaped(const Sizes& sizes, int like) {
  const auto type = like >= 0 ? tensor(like).scalar_type() : scalarType(main);
  Want want{Want::floating, static_cast<std::int64_t>(sizes.size()), static_cast<std::int64_t>(sizes.size()),
            [&](const at::Tensor& t) { return t.sizes() == at::IntArrayRef(sizes) && t.scalar_type() == type; }};
  if (const auto found = pick(want); found >= 0 && random.chance(0.6)) return found;
  if (type == scalarType(main) && random.chance(0.4))
    if (const auto id = input(random.chance(0.6) ? Input::Kind::parameter : Input::Kind::user, main, sizes); id >= 0)
      return id;
  want = {Want::floating, 0, 9, [&](const at::Tensor& t) { return t.scalar_type() == type && t.numel() > 0; }};
  const auto value = pick(want);
  return value < 0 ? -1 : resized(value, sizes);
}

int Draft::inRange(char range, const Want& want) {
  const double least = range == 'p' ? 0.05 : range == 'u' ? -0.95 : range == 'g' ? 1.05 : range == 'o' ? 0.05 : -1e4;
  const double most = range == 'u' || range == 'o' ? 0.95 : range == 'e' ? 6 : 1e4;
  auto with = want;
  with.kinds = Want::real;
  if (range == 'f' || range == 'r') {
    with.kinds = range == 'f' ? Want::floating : Want::real;
    return pick(with);
  }
  with.where = [&](const at::Tensor& t) { return (!want.where || want.where(t)) && allWithin(t, least, most); };
  if (const auto found = pick(with); found >= 0) return found;
  with.where = want.where;
  auto v = pick(with);
  if (v < 0) return -1;
  switch (range) {
    case 'u': {
      v = make("aten.tanh.default", {Arg::value(v)});
      return v < 0 ? v : make("aten.mul.Tensor", {Arg::value(v), Arg::number(0.875)});
    }
    case 'o': {
      v = make("aten.sigmoid.default", {Arg::value(v)});
      return v < 0 ? v : make("aten.clamp.default", {Arg::value(v), Arg::number(0.0625), Arg::number(0.9375)});
    }
    case 'e': return make("aten.clamp.default", {Arg::value(v), Arg::none(), Arg::number(5.5)});
    default: {
      v = random.chance(0.5) ? make("aten.abs.default", {Arg::value(v)})
                             : make("aten.softplus.default", {Arg::value(v)});
      return v < 0 ? v : make("aten.add.Tensor", {Arg::value(v), Arg::number(range == 'g' ? 1.125 : 0.25)});
    }
  }
}

int Draft::indices(std::int64_t below, const Sizes& sizes) {
  std::int64_t count = 1;
  for (auto s : sizes) count *= s;
  if (below <= 0 || count == 0) return -1;
  const auto found = pick({Want::integer, static_cast<std::int64_t>(sizes.size()),
                           static_cast<std::int64_t>(sizes.size()), [&](const at::Tensor& t) {
                             return t.scalar_type() == at::kLong && t.sizes() == at::IntArrayRef(sizes) &&
                                    allWithin(t, 0, static_cast<double>(below - 1));
                           }});
  if (found >= 0 && random.chance(0.7)) return found;
  if (below >= 2 && random.chance(0.3))
    if (const auto id = input(Input::Kind::user, DType::i64, sizes, random.chance(0.5)); id >= 0) return id;
  auto v = make("aten.arange.start_step",
                {Arg::number(random.between(0, 3)), Arg::number(std::int64_t{100}), Arg::number(std::int64_t{1})});
  if (v >= 0)
    v = make("aten.narrow.default", {Arg::value(v), Arg::number(std::int64_t{0}), Arg::number(random.between(0, 5)),
                                     Arg::number(std::min<std::int64_t>(count, 90))});
  if (v < 0) return -1;
  if (count <= below && random.chance(0.5)) {
    v = make("aten.randperm.default", {Arg::number(below)});
    if (v >= 0)
      v = make("aten.slice.Tensor",
               {Arg::value(v), Arg::number(std::int64_t{0}), Arg::number(std::int64_t{0}), Arg::number(count)});
  } else {
    v = make("aten.remainder.Scalar", {Arg::value(v), Arg::number(below)});
  }
  if (v < 0 || tensor(v).numel() != count) return -1;
  return sizes.size() == 1 ? v : make("aten.view.default", {Arg::value(v), Arg::ints(sizes)});
}

int Draft::truths(int value) {
  const auto sizes = tensor(value).sizes().vec();
  const auto found =
      pick({Want::boolean, 0, 9, [&](const at::Tensor& t) { return t.sizes() == at::IntArrayRef(sizes); }});
  if (found >= 0 && random.chance(0.6)) return found;
  if (tensor(value).is_complex()) {
    const auto r = make("aten.abs.default", {Arg::value(value)});
    return r < 0 ? -1 : make("aten.gt.Scalar", {Arg::value(r), Arg::number(0.75)});
  }
  return make(random.chance(0.5) ? "aten.gt.Scalar" : "aten.le.Scalar", {Arg::value(value), Arg::number(scalar() / 4)});
}

int Draft::partner(int value, bool sameShape, char range) {
  const auto type = tensor(value).scalar_type();
  const auto sizes = tensor(value).sizes().vec();
  const auto broadcasts = [&](const at::Tensor& t) {
    if (t.scalar_type() != type) return false;
    if (t.sizes() == at::IntArrayRef(sizes)) return true;
    if (sameShape || t.dim() > static_cast<std::int64_t>(sizes.size())) return false;
    for (std::int64_t d = 1; d <= t.dim(); ++d) {
      const auto mine = t.size(-d), other = sizes[sizes.size() - static_cast<std::size_t>(d)];
      if (mine != 1 && mine != other) return false;
    }
    return true;
  };
  const Want want{Want::floating, 0, 9, broadcasts};
  auto found = -1;
  if (range == 'f') {
    found = pick(want);
    if (found == value && random.chance(0.7)) found = -1;
    if (found < 0) found = shaped(sizes, value);
    return found;
  }
  return inRange(range, want);
}

}  // namespace retrograd::fuzz
