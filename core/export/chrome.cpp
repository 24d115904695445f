// Times and memory of a run in the Trace Event Format, as chrome://tracing and Perfetto read it: a slice an op, forward
// and backward on tracks of their own, live bytes by use as a counter, an arrow from each forward op to the backward
// ops that come from it.

#include <nlohmann/json.hpp>

#include "core/export/export.h"
#include "core/questions/memory_timeline.h"
#include "core/questions/op_facts.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

class EventWriter {
 public:
  EventWriter(const ExportRequest& request, ExportSink& sink, const Progress& progress)
      : request_(request),
        analysis_(request.analysis),
        document_(*analysis_.document),
        facts_(analysis_),
        timeline_(memoryTimeline(analysis_)),
        sink_(sink),
        progress_(progress) {
    double at = 0;
    for (const auto& measure : request_.measures) {
      starts_.push_back(at);
      at += measure.seconds * 1e6;
    }
    ends_ = starts_;
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i] += request_.measures[i].seconds * 1e6;
  }

  void write() {
    sink_.write("{\"displayTimeUnit\": \"ms\", \"otherData\": " +
                dumpJson(Json{{"file", analysis_.file.path}, {"program", "retrograd"}}) + ", \"traceEvents\": [\n");
    metadata("process_name", forwardTrack, "name", analysis_.file.path);
    metadata("thread_name", forwardTrack, "name", "forward");
    metadata("thread_name", backwardTrack, "name", "backward");
    metadata("thread_sort_index", forwardTrack, "sort_index", forwardTrack);
    metadata("thread_sort_index", backwardTrack, "sort_index", backwardTrack);
    const auto& ops = analysis_.joint.ops;
    for (std::size_t position = 0; position < ops.size() && position < starts_.size(); ++position) {
      progress_.check();
      slice(ops[position], position);
      counter(position);
      if (const auto forward = facts_.forwardOf(ops[position])) arrow(forward, position);
    }
    sink_.write("\n]}\n");
  }

 private:
  static constexpr int process = 1, forwardTrack = 1, backwardTrack = 2;

  void event(const Json& json) {
    sink_.write((isFirst_ ? "" : ",\n") + dumpJson(json));
    isFirst_ = false;
  }

  void metadata(const char* what, int track, const char* key, const Json& value) {
    event({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{key, value}}}});
  }

  int track(std::size_t position) const {
    return position < analysis_.joint.forwardCount ? forwardTrack : backwardTrack;
  }

  void slice(BoundSymbolId op, std::size_t position) {
    Json arguments{
        {"id", op.index}, {"call", printCall(document_, op)}, {"module", facts_.module(op)}, {"role", facts_.role(op)}};
    Json types = Json::array();
    for (auto output : document_.outputs(op)) types.push_back(shortType(document_, output));
    arguments["outputs"] = std::move(types);
    arguments["bytes"] = facts_.newBytes(op);
    arguments["saved"] = facts_.savesOutput(op);
    const auto& origin = document_.boundSymbol(op).origin;
    if (origin.op) arguments["origin"] = document_.symbol(origin.op).name;
    event({{"ph", "X"},
           {"name", shortOpName(document_.symbol(op).name)},
           {"cat", std::string(facts_.role(op))},
           {"pid", process},
           {"tid", track(position)},
           {"ts", starts_[position]},
           {"dur", ends_[position] - starts_[position]},
           {"args", std::move(arguments)}});
  }

  void counter(std::size_t position) {
    if (position >= timeline_.liveBytes.size()) return;
    Json bytes = Json::object();
    for (std::size_t use = 0; use < memoryUseCount; ++use)
      bytes[std::string(name(static_cast<MemoryUse>(use)))] = timeline_.liveBytes[position][use];
    event({{"ph", "C"}, {"name", "live bytes"}, {"pid", process}, {"ts", ends_[position]}, {"args", std::move(bytes)}});
  }

  /// Bound to the slices that enclose its ends, so it begins and ends where these start.
  void arrow(BoundSymbolId forward, std::size_t position) {
    const auto from = facts_.position(forward);
    if (!from || *from >= position) return;
    const Json common{{"name", "origin"}, {"cat", "origin"}, {"id", position}, {"pid", process}};
    Json start = common, finish = common;
    start.update({{"ph", "s"}, {"tid", track(*from)}, {"ts", starts_[*from]}});
    finish.update({{"ph", "f"}, {"bp", "e"}, {"tid", track(position)}, {"ts", starts_[position]}});
    event(start);
    event(finish);
  }

  const ExportRequest& request_;
  const Analysis& analysis_;
  const Document& document_;
  OpFacts facts_;
  MemoryTimeline timeline_;
  ExportSink& sink_;
  const Progress& progress_;
  std::vector<double> starts_, ends_;  ///< microseconds, ops end to end
  bool isFirst_ = true;
};

void writeChrome(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  EventWriter(request, sink, progress).write();
}

const ExportRegistration registrationChrome(
    {.name = "chrome",
     .description = "times and memory of a run, for Perfetto and chrome://tracing",
     .traces = {TraceKind::joint},
     .run = ExportFormat::Run::needed,
     .write = writeChrome});

}  // namespace
}  // namespace retrograd
