#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/judge/report.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto mostProducers = static_cast<int>(Producer::health) + 1;
constexpr auto mostSeverities = static_cast<int>(Severity::fault) + 1;

/// JSON has no infinities: null is one.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }
double numberOf(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}

template <class Enum>
Enum named(const std::string& word, int count) {
  for (int i = 0; i < count; ++i)
    if (const auto one = static_cast<Enum>(i); name(one) == word) return one;
  badInput("unknown word in a report: " + word);
}

Json toJson(const Measure& measure) {
  Json json{{"deviation", number(measure.deviation)},
            {"tolerance", number(measure.tolerance)},
            {"scale", number(measure.scale)},
            {"good", measure.good()}};
  if (!measure.failure.empty()) json["failure"] = measure.failure;
  if (measure.factor) json["factor"] = number(*measure.factor);
  return json;
}

Json toJson(const Claim& claim) {
  Json json{{"by", name(claim.by)}, {"severity", name(claim.severity)}};
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  text("kind", claim.kind);
  text("subject", claim.subject);
  text("sentence", claim.sentence);
  text("line", claim.line);
  text("remedy", claim.remedy);
  text("command", claim.command);
  if (claim.measure) json["measure"] = toJson(*claim.measure);
  if (!claim.parameters.empty()) json["parameters"] = claim.parameters;
  if (claim.op) json["op"] = claim.op.index;
  if (claim.value) json["value"] = claim.value.index;
  if (claim.also.empty()) return json;
  json["also"] = Json::array();
  for (const auto op : claim.also) json["also"].push_back(op.index);
  return json;
}

Claim claimFrom(const Json& json) {
  Claim claim;
  claim.by = named<Producer>(json.at("by"), mostProducers);
  claim.severity = named<Severity>(json.at("severity"), mostSeverities);
  claim.kind = json.value("kind", "");
  claim.subject = json.value("subject", "");
  claim.sentence = json.value("sentence", "");
  claim.line = json.value("line", "");
  claim.remedy = json.value("remedy", "");
  claim.command = json.value("command", "");
  if (json.contains("measure")) {
    const auto& from = json.at("measure");
    Measure measure{numberOf(from.at("deviation")),
                    numberOf(from.at("tolerance")),
                    numberOf(from.at("scale")),
                    from.value("failure", ""),
                    {}};
    if (from.contains("factor")) measure.factor = numberOf(from.at("factor"));
    claim.measure = measure;
  }
  claim.parameters = json.value("parameters", std::vector<std::string>());
  claim.op = BoundSymbolId(json.value("op", -1));
  claim.value = ValueId(json.value("value", -1));
  if (json.contains("also"))
    for (const auto& op : json.at("also")) claim.also.emplace_back(op.get<std::int64_t>());
  return claim;
}

}  // namespace

Json toJson(const Report& report, const Decision& decision) {
  Json json{{"file", report.subject}, {"verdict", name(decision.verdict)}};
  if (!decision.reason.empty()) json["reason"] = decision.reason;
  json["judged"] = {{"count", report.judged}, {"of", std::max(report.due, report.judged)}, {"unit", report.unit}};
  json["claims"] = Json::array();
  for (const auto& claim : report.claims) json["claims"].push_back(toJson(claim));
  json["not_judged"] = Json::array();
  for (const auto& one : report.notJudged)
    json["not_judged"].push_back({{"subject", one.subject}, {"reason", one.reason}});
  json["notes"] = report.notes;
  if (!report.details.empty()) json["details"] = report.details;
  return json;
}

Report reportFromJson(const Json& json) {
  try {
    Report report;
    report.subject = json.at("file");
    const auto& judged = json.at("judged");
    report.judged = judged.at("count");
    report.due = judged.at("of");
    report.unit = judged.at("unit");
    for (const auto& claim : json.at("claims")) report.claims.push_back(claimFrom(claim));
    for (const auto& one : json.at("not_judged")) report.notJudged.push_back({one.at("subject"), one.at("reason")});
    report.notes = json.at("notes").get<std::vector<std::string>>();
    report.details = json.value("details", std::map<std::string, double>());
    return report;
  } catch (const nlohmann::json::exception& error) {
    badInput(std::string("is not a report: ") + error.what());
  }
}

}  // namespace retrograd
