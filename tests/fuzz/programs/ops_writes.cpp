// Writes in place that have no counterpart among the elementwise ops.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

int target(Draft& d, const Want& want) {
  for (int tries = 0; tries < 5; ++tries)
    if (const auto v = d.pick(want); v >= 0 && d.writable(v) && (tries > 2 || d.isViewed(v))) return v;
  return -1;
}

}  // namespace

void addWrites(Catalogue& c) {
  const Catalogue::Flags writes{false, true, false};
  c.add(
      "copy_.default",
      [](Draft& d, const std::string& op) {
        const auto v = target(d, {Want::floating});
        if (v < 0) return false;
        const auto source = d.random.chance(0.2) ? d.pick({Want::real | Want::integer, 0, 0}) : d.partner(v, false);
        return source >= 0 && d.call(op, {Arg::value(v), Arg::value(source)});
      },
      writes);
  c.add("fill_.Scalar", "wa S");
  c.entries.back().writes = true;
  c.add("zero_.default", "wa");
  c.entries.back().writes = true;
  c.add(
      "fill_.Tensor",
      [](Draft& d, const std::string& op) {
        const auto v = target(d, {Want::floating});
        const auto number = v < 0 ? -1 : d.pick({Want::real, 0, 0});
        return number >= 0 && d.call(op, {Arg::value(v), Arg::value(number)});
      },
      writes);
  c.add("fill_diagonal_.default", "wr2 S");
  c.entries.back().writes = true;
  c.add(
      "transpose_.default swapaxes_.default",
      [](Draft& d, const std::string& op) {
        const auto v = target(d, {Want::floating, 1});
        return v >= 0 && d.call(op, {Arg::value(v), Arg::number(d.dim(v)), Arg::number(d.dim(v))});
      },
      writes);
  c.add("t_.default", "wf=2");
  c.entries.back().writes = true;
  c.add("unsqueeze_.default", "wf #0");
  c.entries.back().writes = true;
  c.add("squeeze_.default", "wf");
  c.entries.back().writes = true;
  c.add("copy.default", "f ~f");
  c.add("fill.Scalar", "f S");
  c.add("logical_not_.default", "wb");
  c.entries.back().writes = true;
  c.add("eq_.Scalar lt_.Scalar", "wr S");
  c.entries.back().writes = c.entries[c.entries.size() - 2].writes = true;
  c.add("masked_fill_.Scalar", "wi m S");
  c.entries.back().writes = true;
  c.add("mul_.Scalar add_.Scalar", "wn I2");
  c.entries.back().writes = c.entries[c.entries.size() - 2].writes = true;
}

}  // namespace retrograd::fuzz
