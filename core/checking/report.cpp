#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/checking/check.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> statusNames{"pass", "fail", "error", "skip"};

Json textOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
std::string textOf(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }
bool hasRun(CheckStatus status) { return status == CheckStatus::pass || status == CheckStatus::fail; }

}  // namespace

std::string_view name(CheckStatus status) { return statusNames[static_cast<std::size_t>(status)]; }

std::string reportLine(const CheckReport& report) {
  auto line = fmt::format("{:<5}  {:<30}", name(report.status), report.name);
  if (hasRun(report.status)) {
    if (report.worst.empty())
      line += "  equal";
    else if (std::isfinite(report.error))
      line += fmt::format("  {:.1e} at {} (tolerance {:.1e})", report.error, report.worst, report.tolerance);
    else
      line += fmt::format("  {} cannot be compared", report.worst);
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
  json["error"] = compared && std::isfinite(report.error) ? Json(report.error) : Json();
  json["worst"] = textOrNull(report.worst);
  json["reason"] = textOrNull(report.reason);
  json["ops"] = {{"computation", report.ops.computation},
                 {"joint", report.ops.joint},
                 {"forward", report.ops.forward},
                 {"backward", report.ops.backward}};
  json["origins_missing"] = report.originsMissing;
  json["seconds"] = report.seconds;
  json["tolerance"] = compared ? Json(report.tolerance) : Json();
  json["notes"] = report.notes;
  return json;
}

CheckReport reportFromJson(const Json& json) {
  CheckReport report;
  report.name = json.at("name").get<std::string>();
  const auto status = json.at("status").get<std::string>();
  for (std::size_t i = 0; i < statusNames.size(); ++i)
    if (statusNames[i] == status) report.status = static_cast<CheckStatus>(i);
  const auto& error = json.at("error");
  report.error = error.is_number() ? error.get<double>() : std::numeric_limits<double>::infinity();
  report.worst = textOf(json.at("worst"));
  report.reason = textOf(json.at("reason"));
  const auto& ops = json.at("ops");
  report.ops = {ops.at("computation"), ops.at("joint"), ops.at("forward"), ops.at("backward")};
  report.originsMissing = json.at("origins_missing");
  report.seconds = json.at("seconds");
  report.tolerance = json.at("tolerance").is_number() ? json.at("tolerance").get<double>() : 0;
  report.notes = json.at("notes").get<std::vector<std::string>>();
  return report;
}

}  // namespace retrograd
