#include "core/export/export.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/core/export/sample.h"

namespace fs = std::filesystem;

namespace retrograd::test {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

TEST(Export, FormatsAreFoundByNameAndBySuffix) {
  for (const char* name : {"chrome", "csv", "dot", "json", "python", "text"})
    EXPECT_NE(findExportFormat(name), nullptr) << name;
  EXPECT_EQ(findExportFormat("pdf "), nullptr);
  ASSERT_NE(exportFormatOf("a.b/c.csv"), nullptr);
  EXPECT_EQ(exportFormatOf("a.b/c.csv")->name, "csv");
  EXPECT_EQ(exportFormatOf("csv"), nullptr);
}

TEST(Export, WritesTheFileWholeOrNotAtAll) {
  const auto analysis = sampleAnalysis();
  const auto folder = fs::temp_directory_path() / ("retrograd_export_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto path = (folder / "out.csv").string();
  const auto* csv = findExportFormat("csv");
  exportFile(*csv, {analysis, tracesOf(analysis, csv->traces), {}, path});
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, exported(analysis, "csv", {}, false));

  const auto* chrome = findExportFormat("chrome");  // needs a run
  EXPECT_THROW(exportFile(*chrome, {analysis, tracesOf(analysis, chrome->traces), {}, (folder / "run.json").string()}),
               Error);
  EXPECT_FALSE(fs::exists(folder / "run.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);  // no temporary file stays
  fs::remove_all(folder);
}

TEST(Export, AFullDiskIsAnErrorThatSaysSo) {
  const auto analysis = sampleAnalysis();
  const auto* text = findExportFormat("text");
  try {
    exportFile(*text, {analysis, tracesOf(analysis, text->traces), {}, "/proc/nowhere/out.txt"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(error.place(), "/proc/nowhere/out.txt");
  }
}

TEST(Export, WhereNothingWasDerivedOnlyTheComputationIsThere) {
  auto analysis = sampleAnalysis();
  analysis.joint = analysis.forward = analysis.backward = {};
  EXPECT_EQ(tracesOf(analysis, {TraceKind::computation, TraceKind::backward}).size(), 1u);
  EXPECT_THROW(tracesOf(analysis, {TraceKind::backward}), Error);
}

TEST(Export, PicturesOfTheGraphNeedARendererAndOneTrace) {
  const auto a = sampleAnalysis();
  const auto* svg = findExportFormat("svg");
  ASSERT_NE(svg, nullptr);
  EXPECT_EQ(exportFormatOf("graph.pdf"), findExportFormat("pdf"));
  const auto message = [&](std::vector<const Trace*> traces) {
    TextSink out;
    try {
      exportTo(out, *svg, {a, std::move(traces), {}, {}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::badUse);
      return error.message();
    }
    return out.text;
  };
  EXPECT_NE(message({&a.joint}).find("built with its window"), std::string::npos);
  setGraphRenderer([](const ExportRequest& request, DrawingFormat format, ExportSink& sink, const Progress&) {
    sink.write(format == DrawingFormat::svg && request.drawing.scale == 1 ? "drawn" : "otherwise");
  });
  EXPECT_EQ(message({&a.joint}), "drawn");
  EXPECT_NE(message({&a.forward, &a.backward}).find("one trace"), std::string::npos);
  setGraphRenderer(nullptr);
}

TEST(DotExport, DrawsModulesAsClustersAndOriginsAsDashedEdges) {
  const auto analysis = sampleAnalysis();
  const auto text = exported(analysis, "dot", {});
  EXPECT_EQ(count(text, "subgraph cluster_"), 3u);  // layers, layers.0, layers.<1> ...
  EXPECT_NE(text.find("label=\"<1> & \\\"so\\\"\""), std::string::npos);
  EXPECT_EQ(count(text, "style=dashed"), 3u);
  const auto edge =
      "op" + std::to_string(analysis.joint.ops[1].index) + " -> op" + std::to_string(analysis.joint.ops[2].index);
  EXPECT_NE(text.find(edge + ";"), std::string::npos);
  EXPECT_NE(text.find(edge + " [style=dashed"), std::string::npos);
  EXPECT_EQ(count(text, "{"), count(text, "}"));
}

TEST(TableExport, JsonAndCsvSayTheSame) {
  const auto analysis = sampleAnalysis();
  const auto json = nlohmann::json::parse(exported(analysis, "json", {}));
  ASSERT_EQ(json.at("ops").size(), 5u);
  const auto& relu = json["ops"][1];
  EXPECT_EQ(relu["op"], "aten.relu.default");
  EXPECT_EQ(relu["module"], "layers.<1> & \"so\"");
  EXPECT_EQ(relu["role"], "forward");
  EXPECT_EQ(relu["saved"], true);
  EXPECT_EQ(relu["bytes"], 8);
  EXPECT_EQ(relu["milliseconds"], 1.0);
  EXPECT_EQ(relu["shapes"], nlohmann::json::parse("[[2]]"));
  EXPECT_EQ(json["ops"][2]["origin"], "aten.relu.default");
  EXPECT_EQ(json["ops"][3]["gradient_of"], "w");
  EXPECT_GT(relu["live_bytes"], 0);
  const auto csv = exported(analysis, "csv", {});
  EXPECT_EQ(count(csv, "\r\n"), 6u);
  EXPECT_NE(csv.find("aten.relu.default,\"layers.<1> & \"\"so\"\"\","), std::string::npos) << csv;
  EXPECT_NE(csv.find(",[2],8,forward,aten.relu.default,"), std::string::npos) << csv;
  // Without a run the times are empty and the memory, which is computed, is there.
  const auto still = nlohmann::json::parse(exported(analysis, "json", {}, false));
  EXPECT_TRUE(still["ops"][1]["milliseconds"].is_null());
  EXPECT_EQ(still["ops"][1]["live_bytes"], relu["live_bytes"]);
}

TEST(ChromeExport, IsASliceAnOpWithArrowsFromForwardToBackward) {
  const auto analysis = sampleAnalysis();
  const auto json = nlohmann::json::parse(exported(analysis, "chrome", {}));
  std::map<std::string, std::vector<nlohmann::json>> events;
  for (const auto& event : json.at("traceEvents")) events[event.at("ph").get<std::string>()].push_back(event);
  ASSERT_EQ(events["X"].size(), 5u);
  double end = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto& slice = events["X"][i];
    EXPECT_GE(slice["ts"].get<double>(), end);  // slices of one run do not overlap
    end = slice["ts"].get<double>() + slice["dur"].get<double>();
    EXPECT_EQ(slice["tid"], i < 2 ? 1 : 2);
    EXPECT_NEAR(slice["dur"].get<double>(), 1000, 1e-6);  // microseconds
  }
  EXPECT_EQ(events["C"].size(), 5u);
  EXPECT_EQ(events["C"][1]["args"]["saved"], 8);
  ASSERT_EQ(events["s"].size(), 3u);
  ASSERT_EQ(events["f"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto &start = events["s"][i], &finish = events["f"][i];
    EXPECT_EQ(start["id"], finish["id"]);
    EXPECT_EQ(start["cat"], finish["cat"]);
    EXPECT_EQ(start["tid"], 1);
    EXPECT_EQ(finish["tid"], 2);
    EXPECT_EQ(finish["bp"], "e");
    EXPECT_LT(start["ts"].get<double>(), finish["ts"].get<double>());
  }
  EXPECT_EQ(events["M"].size(), 5u);
}

}  // namespace
}  // namespace retrograd::test
