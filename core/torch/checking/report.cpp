#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/enum_array.h"
#include "core/torch/checking/check.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr EnumArray<CheckStatus, std::string_view, 4> statusNames{"pass", "fail", "error", "skip"};

Json textOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
std::string textOf(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }
Json numberOrNull(double number) { return std::isfinite(number) ? Json(number) : Json(); }
double numberOf(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}
bool hasRun(CheckStatus status) { return status == CheckStatus::pass || status == CheckStatus::fail; }

}  // namespace

std::string_view name(CheckStatus status) { return statusNames[status]; }

std::string reportLine(const CheckReport& report) {
  auto line = fmt::format("{:<5}  {:<30}", name(report.status), report.name);
  if (hasRun(report.status)) {
    if (report.worst.empty()) line += "  equal";
    else if (std::isfinite(report.error))
      line += fmt::format("  worst {}: off by {:.1e}, tolerance {:.1e}, largest element {:.1e}", report.worst,
                          report.error, report.tolerance, report.scale);
    else line += fmt::format("  {} cannot be compared", report.worst);
    if (!report.tooNoisy.empty()) line += fmt::format(", {} too noisy", report.tooNoisy.size());
    if (!report.leftOut.empty()) line += fmt::format(", {} left out", report.leftOut.size());
    if (!report.notCompared.empty()) line += fmt::format(", {} not compared", report.notCompared.size());
    line += fmt::format(", {} + {} ops, {:.2f} s", report.ops.forward, report.ops.backward, report.seconds);
  }
  if (!report.reason.empty()) line += (hasRun(report.status) ? "; " : "  ") + report.reason;
  for (const auto& note : report.notes) line += "; " + note;
  return line;
}

Json toJson(const CheckReport& report) {
  const bool compared = hasRun(report.status);
  Json json = Json::object();
  json["name"] = report.name;
  json["status"] = name(report.status);
  json["worst"] = textOrNull(report.worst);
  json["error"] = compared ? numberOrNull(report.error) : Json();
  json["tolerance"] = compared ? Json(report.tolerance) : Json();
  json["scale"] = compared ? Json(report.scale) : Json();
  json["reason"] = textOrNull(report.reason);
  json["unknown_ops"] = report.unknownOps;
  json["ops"] = {{"computation", report.ops.computation},
                 {"joint", report.ops.joint},
                 {"forward", report.ops.forward},
                 {"backward", report.ops.backward}};
  json["origins_missing"] = report.originsMissing;
  json["seconds"] = report.seconds;
  json["notes"] = report.notes;
  json["too_noisy"] = report.tooNoisy;
  json["not_compared"] = report.notCompared;
  json["left_out"] = report.leftOut;
  json["tensors"] = Json::array();
  for (const auto& tensor : report.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"deviation", numberOrNull(tensor.deviation)},
                               {"tolerance", tensor.tolerance},
                               {"scale", tensor.scale},
                               {"failure", textOrNull(tensor.failure)}});
  return json;
}

CheckReport reportFromJson(const Json& json) {
  CheckReport report;
  report.name = json.at("name").get<std::string>();
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
  return report;
}

}  // namespace retrograd
