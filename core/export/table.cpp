// The ops of a trace as a table: CSV (RFC 4180) and JSON (docs/ops.schema.json).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/export/export.h"
#include "core/questions/memory_timeline.h"
#include "core/questions/op_facts.h"
#include "core/trace/print/json.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 17> columns{
    "trace", "number", "id",        "op",          "module", "outputs",    "dtypes",       "shapes",    "bytes",
    "role",  "origin", "origin_id", "gradient_of", "saved",  "recomputed", "milliseconds", "live_bytes"};

/// Rows of all traces shown, an op a row; ops of bodies are after the op that has them.
class Table {
 public:
  Table(const ExportRequest& request, const Progress& progress)
      : request_(request),
        analysis_(request.analysis),
        document_(*analysis_.document),
        facts_(analysis_),
        progress_(progress) {
    if (analysis_.derived()) timeline_ = memoryTimeline(analysis_);
  }

  template <class Write>
  void forEachRow(Write&& write) {
    for (const auto* trace : request_.traces) {
      std::size_t number = 0;
      for (auto op : trace->ops) rows(*trace, op, number, write);
    }
  }

 private:
  template <class Write>
  void rows(const Trace& trace, BoundSymbolId op, std::size_t& number, Write&& write) {
    progress_.check();
    write(row(trace, op, number++));
    forEachBody(document_, op, [&](SubgraphId body) {
      for (auto inner : document_.subgraph(body).ops) rows(trace, inner, number, write);
    });
  }

  Json row(const Trace& trace, BoundSymbolId op, std::size_t number) const {
    const auto& bound = document_.boundSymbol(op);
    const auto& origin = bound.origin;
    Json json{{"trace", name(trace.kind)}, {"number", number}, {"id", op.index}};
    json["op"] = document_.symbol(bound.symbol).name;
    json["module"] = facts_.module(op);
    Json names = Json::array(), dtypes = Json::array(), shapes = Json::array();
    for (auto output : document_.outputs(op)) {
      if (!output) continue;
      const auto* meta = document_.isTensor(output) ? &document_.meta(output) : nullptr;
      names.push_back(document_.displayName(output));
      dtypes.push_back(meta ? Json(torchName(meta->dtype)) : Json());
      shapes.push_back(meta ? Json(meta->sizes) : Json());
    }
    json["outputs"] = std::move(names);
    json["dtypes"] = std::move(dtypes);
    json["shapes"] = std::move(shapes);
    json["bytes"] = facts_.newBytes(op);
    json["role"] = facts_.role(op);
    json["origin"] = origin.op ? Json(document_.symbol(origin.op).name) : Json();
    json["origin_id"] = origin.op ? Json(origin.op.index) : Json();
    json["gradient_of"] =
        origin.role == Role::gradient && origin.value ? Json(document_.displayName(origin.value)) : Json();
    json["saved"] = facts_.savesOutput(op);
    json["recomputed"] = bound.recomputed;
    const auto position = facts_.position(op);
    const bool isMeasured = position && *position < request_.measures.size();
    json["milliseconds"] = isMeasured ? Json(request_.measures[*position].seconds * 1e3) : Json();
    json["live_bytes"] = position && *position < timeline_.liveBytes.size() ? Json(timeline_.total(*position)) : Json();
    return json;
  }

  const ExportRequest& request_;
  const Analysis& analysis_;
  const Document& document_;
  OpFacts facts_;
  MemoryTimeline timeline_;
  const Progress& progress_;
};

/// A field of a CSV file, in quotes where it needs them.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

/// A list's items are set apart by "; ", a shape is in brackets, what is not there is empty.
std::string cell(const Json& value, bool isItem = false) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "" : isItem ? ", " : "; ") + cell(value[i], true);
  return isItem ? "[" + text + "]" : text;
}

void writeCsv(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  sink.write(fmt::format("{}\r\n", fmt::join(columns, ",")));
  Table(request, progress).forEachRow([&](const Json& row) {
    std::string line;
    for (const auto* column : columns)
      line += fmt::format("{}{}", line.empty() ? "" : ",", field(cell(row.at(column))));
    sink.write(line + "\r\n");
  });
}

void writeJson(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  const auto& analysis = request.analysis;
  sink.write("{\"file\": " + dumpJson(Json(analysis.file.path)) + ",\n\"ops\": [");
  bool isFirst = true;
  Table(request, progress).forEachRow([&](const Json& row) {
    sink.write((isFirst ? "\n" : ",\n") + dumpJson(row));
    isFirst = false;
  });
  sink.write("\n]}\n");
}

const ExportRegistration csv(
    {.name = "csv",
     .description = "ops as a table: module, dtype, shape, bytes, role, origin, time, live bytes",
     .suffix = ".csv",
     .traces = {TraceKind::joint},
     .run = ExportFormat::Run::wanted,
     .write = writeCsv});
const ExportRegistration json({.name = "json",
                               .description = "the same as JSON (docs/ops.schema.json)",
                               .suffix = ".json",
                               .traces = {TraceKind::joint},
                               .run = ExportFormat::Run::wanted,
                               .write = writeJson});

}  // namespace
}  // namespace retrograd
