// Ops that draw from the generator.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {

void addRandom(Catalogue& c) {
  c.add("dropout.default feature_dropout.default alpha_dropout.default", [](Draft& d, const std::string& op) {
    const auto x = d.pick({Want::real, op.find("feature") != std::string::npos ? 2 : 0, 4});
    return x >= 0 && d.call(op, {Arg::value(x), Arg::number(d.random.chance(0.15) ? 0.0 : 0.25),
                                 Arg::boolean(d.random.chance(0.85))});
  });
  c.add("native_dropout.default", "r #0.5 T");
  c.add("dropout_.default", "wr #0.25 T");
  c.entries.back().writes = true;
  c.add("rand_like.default randn_like.default", "r");
  c.add("randint_like.default", "r #4");
  c.add("bernoulli.default", "o");
  c.add("bernoulli.p", "r #0.5");
  c.add("rand.default randn.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::ints(d.sizes(d.random.between(0, 2))), Arg::dtype(d.main)});
  });
  c.add("randint.low", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::number(std::int64_t{0}), Arg::number(d.random.between(1, 4)), Arg::ints(d.sizes(1))});
  });
  c.add("randperm.default",
        [](Draft& d, const std::string& op) { return d.call(op, {Arg::number(d.random.between(1, 4))}); });
  c.add("normal.float_Tensor", "#0.5 p");
  c.add("normal.Tensor_float", "r #0.5");
  c.add("multinomial.default", [](Draft& d, const std::string& op) {
    const auto p = d.inRange('p', {Want::real, 1, 2});
    return p >= 0 && d.call(op, {Arg::value(p), Arg::number(std::int64_t{3}), Arg::boolean(true)});
  });
  c.add("rrelu.default", "r #0.125 #0.25 T");
  c.add("poisson.default", "p");
  c.add("exponential.default uniform.default", "r");
  c.add("bernoulli_.float uniform_.default normal_.default exponential_.default", "wr");
  for (auto i = c.entries.size() - 4; i < c.entries.size(); ++i) c.entries[i].writes = true;
  c.add("random_.to", "wa #5");
  c.entries.back().writes = true;
}

}  // namespace retrograd::fuzz
