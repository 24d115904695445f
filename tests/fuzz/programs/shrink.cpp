#include "tests/fuzz/programs/shrink.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/fuzz/programs/oracle.h"

namespace retrograd::fuzz {
namespace {

std::set<int> usedValues(const Program& program) {
  std::set<int> used;
  const auto meet = [&](const Arg& arg) {
    if (arg.kind == Arg::Kind::value) used.insert(static_cast<int>(arg.integer));
  };
  forEachCall(program, [&](const Call& call) {
    for (const auto& arg : call.args) forEachArg(arg, meet);
  });
  for (const auto& body : program.bodies)
    for (const auto& result : body.results) forEachArg(result, meet);
  for (const auto& result : program.main.results) forEachArg(result, meet);
  return used;
}

void replaceValues(std::vector<Arg>& args, const std::map<int, int>& by) {
  for (auto& arg : args)
    forEachArg(arg, [&](Arg& a) {
      if (a.kind != Arg::Kind::value) return;
      if (const auto it = by.find(static_cast<int>(a.integer)); it != by.end()) a.integer = it->second;
    });
}

void replaceValues(Program& program, const std::map<int, int>& by) {
  const auto inBody = [&](Body& body) {
    for (auto& call : body.calls) replaceValues(call.args, by);
    replaceValues(body.results, by);
  };
  inBody(program.main);
  for (auto& body : program.bodies) inBody(body);
}

/// The list of calls that `path` names: -1 the program's own, else a body's.
std::vector<Call>& callsOf(Program& program, int path) {
  return path < 0 ? program.main.calls : program.bodies[static_cast<std::size_t>(path)].calls;
}

std::vector<int> paths(const Program& program) {
  std::vector<int> found{-1};
  forEachCall(program, [&](const Call& call) {
    for (const auto& arg : call.args)
      if (arg.kind == Arg::Kind::body) found.push_back(static_cast<int>(arg.integer));
  });
  return found;
}

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& fails, int tries)
      : best_(std::move(program)), fails_(fails), tries_(tries) {}

  Program run() {
    modes();
    for (bool any = true; any && tries_ > 0;) {
      any = results();
      any = calls() || any;
      any = regions() || any;
      any = inputs() || any;
    }
    return best_;
  }

 private:
  bool accept(Program candidate) {
    if (tries_-- <= 0 || !settleInputs(candidate) || candidate.main.results.empty()) return false;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  void modes() {
    auto plain = best_;
    plain.mode = {};
    if (accept(plain)) return;
    if (best_.mode.cuts.size() > 1)
      for (std::size_t i = 0; i < best_.mode.cuts.size();) {
        auto fewer = best_;
        fewer.mode.cuts.erase(fewer.mode.cuts.begin() + static_cast<std::ptrdiff_t>(i));
        if (fewer.mode.cuts.empty() || !accept(fewer)) ++i;
      }
  }

  bool results() {
    bool any = false;
    for (std::size_t i = best_.main.results.size(); i-- > 0 && best_.main.results.size() > 1;) {
      auto fewer = best_;
      fewer.main.results.erase(fewer.main.results.begin() + static_cast<std::ptrdiff_t>(i));
      any = accept(fewer) || any;
    }
    return any;
  }

  bool calls() {
    bool any = false;
    for (auto path : paths(best_))
      for (std::size_t i = callsOf(best_, path).size(); i-- > 0;) {
        if (i >= callsOf(best_, path).size()) continue;
        any = without(path, i) || any;
      }
    return any;
  }

  /// Leaves a call out: where nobody uses what it makes, or with one of its operands instead of it, or a result of the
  /// program less.
  bool without(int path, std::size_t i) {
    const auto call = callsOf(best_, path)[i];
    auto fewer = best_;
    callsOf(fewer, path).erase(callsOf(fewer, path).begin() + static_cast<std::ptrdiff_t>(i));
    if (path < 0)
      for (auto& cut : fewer.mode.cuts)
        if (cut > i && cut > 1) --cut;
    const auto used = usedValues(fewer);
    if (std::none_of(call.outputs.begin(), call.outputs.end(), [&](int id) { return used.contains(id); }))
      return accept(fewer);
    std::vector<int> operands;
    for (const auto& arg : call.args)
      forEachArg(arg, [&](const Arg& a) {
        if (a.kind == Arg::Kind::value) operands.push_back(static_cast<int>(a.integer));
      });
    for (auto operand : operands) {
      auto candidate = fewer;
      std::map<int, int> by;
      for (auto id : call.outputs) by[id] = operand;
      replaceValues(candidate, by);
      if (accept(candidate)) return true;
    }
    // Its outputs are results of the program only.
    auto candidate = fewer;
    std::erase_if(candidate.main.results, [&](const Arg& arg) {
      return arg.kind == Arg::Kind::value &&
             std::find(call.outputs.begin(), call.outputs.end(), static_cast<int>(arg.integer)) != call.outputs.end();
    });
    const auto still = usedValues(candidate);
    if (candidate.main.results.size() < fewer.main.results.size() &&
        std::none_of(call.outputs.begin(), call.outputs.end(), [&](int id) { return still.contains(id); }))
      return accept(candidate);
    return false;
  }

  /// A region's calls instead of the region.
  bool regions() {
    bool any = false;
    for (std::size_t i = best_.main.calls.size(); i-- > 0;) {
      const auto call = best_.main.calls[i];
      const bool plain =
          call.op == "higher_order.tag_activation_checkpoint" || call.op.starts_with("higher_order.wrap_with");
      if (!plain) continue;
      std::vector<int> operands;
      int body = -1;
      for (const auto& arg : call.args) {
        if (arg.kind == Arg::Kind::body) body = static_cast<int>(arg.integer);
        else if (body >= 0 && arg.kind == Arg::Kind::value) operands.push_back(static_cast<int>(arg.integer));
      }
      auto candidate = best_;
      const auto inner = candidate.bodies[static_cast<std::size_t>(body)];
      if (inner.inputs.size() != operands.size()) continue;
      auto& calls = candidate.main.calls;
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
      calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(i), inner.calls.begin(), inner.calls.end());
      std::map<int, int> by;
      for (std::size_t k = 0; k < operands.size(); ++k) by[inner.inputs[k]] = operands[k];
      for (std::size_t k = 0; k < call.outputs.size() && k < inner.results.size(); ++k)
        if (inner.results[k].kind == Arg::Kind::value) {
          auto id = static_cast<int>(inner.results[k].integer);
          by[call.outputs[k]] = by.contains(id) ? by[id] : id;
        }
      replaceValues(candidate, by);
      candidate.mode.cuts.clear();
      any = accept(candidate) || any;
    }
    return any;
  }

  bool inputs() {
    bool any = false;
    for (std::size_t i = best_.inputs.size(); i-- > 0;) {
      if (!usedValues(best_).contains(static_cast<int>(i)) && best_.inputs.size() > 1) {
        auto fewer = best_;
        fewer.inputs.erase(fewer.inputs.begin() + static_cast<std::ptrdiff_t>(i));
        std::map<int, int> by;
        for (auto k = i + 1; k < best_.inputs.size(); ++k) by[static_cast<int>(k)] = static_cast<int>(k) - 1;
        replaceValues(fewer, by);
        any = accept(fewer) || any;
        continue;
      }
      const auto& input = best_.inputs[i];
      if (input.strides != contiguousStrides(input.sizes) || input.offset != 0) {
        auto plain = best_;
        plain.inputs[i].strides = contiguousStrides(input.sizes);
        plain.inputs[i].offset = 0;
        any = accept(plain) || any;
      }
    }
    return any;
  }

  Program best_;
  const std::function<bool(const Program&)>& fails_;
  int tries_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails, int tries) {
  return Shrinker(std::move(program), fails, tries).run();
}

}  // namespace retrograd::fuzz
