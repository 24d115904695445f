#include "core/questions/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/base/module_path.h"
#include "core/derivation/gradient_of.h"
#include "core/questions/why.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

/// "h.*.weight", which equal layers share; empty for what is in no list.
std::string layerPattern(const std::string& path) {
  std::string pattern;
  bool isMember = false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('.', begin), path.size());
    const auto part = path.substr(begin, end - begin);
    const bool isNumber = isListIndex(part);
    isMember |= isNumber;
    pattern += (begin > 0 ? "." : "") + (isNumber ? "*" : part);
    begin = end + 1;
  }
  return isMember ? pattern : std::string();
}

/// What an op of the computation became in the forward, where it has become anything.
BoundSymbolId inForward(const Analysis& analysis, BoundSymbolId op) {
  if (op)
    for (auto derived : analysis.links.derived(op))
      if (analysis.document->boundSymbol(derived).origin.role == Role::forward) return derived;
  return op;
}

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + numbers.size() / 2;
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

std::vector<Claim> missingGradients(const Analysis& analysis, std::size_t most, const Progress& progress) {
  std::vector<Claim> claims;
  if (!analysis.derived()) return claims;
  const auto& document = *analysis.document;
  const auto& inputs = analysis.computation().inputs;
  const auto gradients = gradientsOfInputs(analysis);
  std::size_t frozen = 0, more = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    progress.check();
    if (inputs[i].kind != InputKind::parameter || !inputs[i].value || gradients[i]) continue;
    if (!inputs[i].requiresGrad) {
      ++frozen;
      continue;
    }
    if (claims.size() == most) {
      ++more;
      continue;
    }
    const auto why = whyNoGradient(analysis, inputs[i].value);
    Claim claim{.severity = Severity::suspicion,
                .kind = "gradient-none",
                .subject = inputs[i].target,
                .sentence = fmt::format("the gradient of {} is None", inputs[i].target),
                .value = inputs[i].value,
                .command = "why"};
    if (!why.stops.empty()) {
      const auto& stop = why.stops.front();
      claim.sentence += ": " + describe(document, stop);
      claim.op = inForward(analysis, stop.op || stop.path.empty() ? stop.op : stop.path.front());
    }
    claims.push_back(std::move(claim));
  }
  const auto count = [&](std::size_t parameters, Severity severity, const char* what) {
    if (parameters == 0) return;
    claims.push_back(
        {.severity = severity,
         .kind = "gradients-none",
         .sentence = fmt::format("{} {}{}", parameters, parameters == 1 ? "parameter " : "parameters ", what)});
  };
  count(more, Severity::suspicion, "more without a gradient");
  count(frozen, Severity::note, "frozen: no gradient is asked for");
  return claims;
}

std::vector<Claim> layersThatDiffer(const Analysis& analysis,
                                    const std::function<std::optional<double>(ValueId)>& normOf) {
  constexpr double far = 100;
  struct Member {
    std::size_t input;
    ValueId gradient;
    double norm;
  };
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::vector<Member>> layers;
  const auto& document = *analysis.document;
  const auto& inputs = analysis.computation().inputs;
  const auto gradients = gradientsOfInputs(analysis);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& input = inputs[i];
    if (input.kind != InputKind::parameter || !gradients[i] || !document.isTensor(input.value)) continue;
    const auto pattern = layerPattern(input.target);
    const auto norm = pattern.empty() ? std::nullopt : normOf(gradients[i]);
    if (norm && std::isfinite(*norm))
      layers[{pattern, document.meta(input.value).sizes}].push_back({i, gradients[i], *norm});
  }
  std::vector<Claim> claims;
  for (const auto& [layer, members] : layers) {
    if (members.size() < 3) continue;
    std::vector<double> norms;
    for (const auto& member : members) norms.push_back(member.norm);
    const double usual = median(norms);
    if (usual <= 0) continue;
    for (const auto& member : members) {
      if (member.norm <= usual * far && member.norm >= usual / far) continue;
      const auto& name = inputs[member.input].target;
      claims.push_back(
          {.severity = Severity::suspicion,
           .kind = "unlike-its-layers",
           .subject = name,
           .sentence = fmt::format("the gradient of {} is unlike that of its equal layers: norm {:.3g}, median of {}: "
                                   "{:.3g}",
                                   name, member.norm, members.size(), usual),
           .op = document.value(member.gradient).producer,
           .value = member.gradient});
    }
  }
  return claims;
}

}  // namespace retrograd
