#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/enum_array.h"
#include "core/torch/checking/check.h"

namespace retrograd {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr EnumArray<CheckStatus, std::string_view, 4> statusNames{"pass", "fail", "error", "skip"};

OrderedJson textOrNull(const std::string& text) { return text.empty() ? OrderedJson() : OrderedJson(text); }
std::string textOf(const OrderedJson& json) { return json.is_string() ? json.get<std::string>() : std::string(); }
OrderedJson numberOrNull(double number) { return std::isfinite(number) ? OrderedJson(number) : OrderedJson(); }
double numberOf(const OrderedJson& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}

/// Also where it is not a verdict because something was not compared.
bool hasRun(const CheckReport& report) {
  return report.status == CheckStatus::pass || report.status == CheckStatus::fail || !report.tensors.empty();
}

bool agrees(const CheckReport& report) {
  return std::ranges::all_of(report.tensors, [](const TensorVerdict& verdict) { return verdict.good(); });
}

/// Fails for its health alone.
bool failsAgreeing(const CheckReport& report) {
  return report.status == CheckStatus::fail && report.health && !report.health->sound() && agrees(report) &&
         report.reason.starts_with(describe(report.health->bad.front()));
}

OrderedJson partsJson(const std::optional<PartsAt>& at) {
  if (!at) return {};
  return {{"index", at->index},
          {"op", at->op},
          {"module", at->module},
          {"line", textOrNull(at->line)},
          {"kind", textOrNull(at->kind)},
          {"name", textOrNull(at->name)},
          {"headline", textOrNull(at->headline)},
          {"text", at->text}};
}

std::optional<Health> healthFrom(const OrderedJson& json) {
  if (!json.is_object()) return std::nullopt;
  Health health;
  for (const auto& one : json.at("not_finite"))
    health.bad.push_back({one.at("name"), one.at("nan"), one.at("infinite"), one.at("elements")});
  health.roots = json.at("roots").get<std::vector<std::string>>();
  return health;
}

std::optional<PartsAt> partsFrom(const OrderedJson& json) {
  if (!json.is_object()) return std::nullopt;
  return PartsAt{json.at("index"),        json.at("op"),           json.at("module"),           textOf(json.at("line")),
                 textOf(json.at("kind")), textOf(json.at("name")), textOf(json.at("headline")), json.at("text")};
}

/// Its text without the headline, which the verdict's line has.
std::string placeWhereTheyPart(const PartsAt& at) {
  const auto headline = at.headline + ": ";
  return at.text.starts_with(headline) ? at.text.substr(headline.size()) : at.text;
}

}  // namespace

std::string_view name(CheckStatus status) { return statusNames[status]; }

OpCounts opCounts(const Analysis& analysis) {
  return {analysis.computation().trace.ops.size(), analysis.joint.ops.size(), analysis.forward.ops.size(),
          analysis.backward.ops.size()};
}

OrderedJson toJson(const OpCounts& ops) {
  return {{"computation", ops.computation}, {"joint", ops.joint}, {"forward", ops.forward}, {"backward", ops.backward}};
}

std::string reportLine(const CheckReport& report) {
  auto line = fmt::format("{:<5}  {:<30}", name(report.status), report.name);
  const bool ran = hasRun(report);
  const bool isLed = report.partsAt && !report.partsAt->headline.empty();
  if (isLed) line += "  " + report.partsAt->headline;
  if (ran) {
    line += isLed ? "; " : "  ";
    if (report.worst.empty()) line += "equal";
    else if (std::isfinite(report.error))
      line += fmt::format("worst {}: off by {:.1e}, tolerance {:.1e}, largest element {:.1e}", report.worst,
                          report.error, report.tolerance, report.scale);
    else line += report.worst + " cannot be compared";
    if (!report.tooNoisy.empty()) line += fmt::format(", {} too noisy", report.tooNoisy.size());
    if (!report.leftOut.empty()) line += fmt::format(", {} left out", report.leftOut.size());
    if (!report.notCompared.empty()) line += fmt::format(", {} not compared", report.notCompared.size());
    line += fmt::format(", {} + {} ops, {:.2f} s", report.ops.forward, report.ops.backward, report.seconds);
  }
  if (failsAgreeing(report)) line += "; agrees";
  else if (!report.reason.empty()) line += (ran ? "; " : "  ") + report.reason;
  for (const auto& note : report.notes) line += "; " + note;
  return line;
}

std::vector<std::string> reportDetails(const CheckReport& report, bool brief) {
  std::vector<std::string> lines;
  if (report.health && !report.health->sound()) lines.push_back(healthText(*report.health));
  else if (report.health && !brief && report.status != CheckStatus::skip)
    lines.emplace_back("healthy: no NaN or infinity in loss, gradients, parameters and buffers");
  if (report.partsAt) lines.push_back(placeWhereTheyPart(*report.partsAt));
  for (const auto& warning : report.warnings) lines.push_back("warning: " + warning);
  return lines;
}

OrderedJson toJson(const CheckReport& report) {
  const bool compared = hasRun(report);
  OrderedJson json = OrderedJson::object();
  json["name"] = report.name;
  json["status"] = name(report.status);
  json["worst"] = textOrNull(report.worst);
  json["error"] = compared ? numberOrNull(report.error) : OrderedJson();
  json["tolerance"] = compared ? OrderedJson(report.tolerance) : OrderedJson();
  json["scale"] = compared ? OrderedJson(report.scale) : OrderedJson();
  json["reason"] = textOrNull(report.reason);
  json["agreement"] = report.tensors.empty() ? OrderedJson() : OrderedJson(agrees(report) ? "agrees" : "differs");
  json["health"] = report.health ? toJson(*report.health) : OrderedJson();
  json["parts_at"] = partsJson(report.partsAt);
  json["warnings"] = report.warnings;
  json["unknown_ops"] = report.unknownOps;
  json["ops"] = toJson(report.ops);
  json["origins_missing"] = report.originsMissing;
  json["seconds"] = report.seconds;
  json["notes"] = report.notes;
  json["too_noisy"] = report.tooNoisy;
  json["not_compared"] = report.notCompared;
  json["reference_not_compared"] = report.uncomparedReference;
  json["left_out"] = report.leftOut;
  json["tensors"] = OrderedJson::array();
  for (const auto& tensor : report.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"deviation", numberOrNull(tensor.deviation)},
                               {"tolerance", tensor.tolerance},
                               {"scale", tensor.scale},
                               {"failure", textOrNull(tensor.failure)}});
  return json;
}

CheckReport checkReportFromJson(const OrderedJson& json) {
  CheckReport report{.name = json.at("name").get<std::string>()};
  const auto status = json.at("status").get<std::string>();
  for (std::size_t i = 0; i < statusNames.size(); ++i)
    if (const auto one = static_cast<CheckStatus>(i); statusNames[one] == status) report.status = one;
  report.error = numberOf(json.at("error"));
  report.worst = textOf(json.at("worst"));
  report.reason = textOf(json.at("reason"));
  const auto& ops = json.at("ops");
  report.ops = {ops.at("computation"), ops.at("joint"), ops.at("forward"), ops.at("backward")};
  report.originsMissing = json.at("origins_missing");
  report.seconds = json.at("seconds");
  report.tolerance = json.at("tolerance").is_number() ? json.at("tolerance").get<double>() : 0;
  report.scale = json.at("scale").is_number() ? json.at("scale").get<double>() : 0;
  report.unknownOps = json.at("unknown_ops");
  report.leftOut = json.at("left_out").get<std::vector<std::string>>();
  report.tooNoisy = json.at("too_noisy").get<std::vector<std::string>>();
  report.notCompared = json.at("not_compared").get<std::vector<std::string>>();
  for (const auto& one : json.at("tensors"))
    report.tensors.push_back({one.at("name"), numberOf(one.at("deviation")), one.at("tolerance"), one.at("scale"),
                              textOf(one.at("failure"))});
  report.notes = json.at("notes").get<std::vector<std::string>>();
  report.warnings = json.at("warnings").get<std::vector<std::string>>();
  report.uncomparedReference = json.at("reference_not_compared").get<std::vector<std::string>>();
  report.health = healthFrom(json.at("health"));
  report.partsAt = partsFrom(json.at("parts_at"));
  return report;
}

}  // namespace retrograd
