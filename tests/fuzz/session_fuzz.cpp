// Session files behind right checksums: the input is the JSON records in the order below, with a zero byte between.
#include <array>

#include "core/formats/session_file/session_file.h"
#include "core/trace/last_use.h"
#include "core/trace/links.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/core/formats/zip/zip_writer.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace retrograd;

constexpr std::array records{"session.json",
                             "model.json",
                             "document/strings.json",
                             "document/metas.json",
                             "document/symbols.json",
                             "document/patterns.json",
                             "document/sources.json",
                             "document/subgraphs.json",
                             "document/storages.json",
                             "document/values.json",
                             "document/terms.json",
                             "document/ops.json",
                             "document/sizes.json",
                             "computation.json",
                             "traces.json",
                             "analysis.json",
                             "values.json"};

std::string archiveOf(std::string_view input) {
  test::ZipContent content{{"mimetype", "application/x-retrograd-session"}};
  for (const auto* record : records) {
    const auto end = input.find('\0');
    content.emplace_back(record, input.substr(0, end));
    input.remove_prefix(end == input.npos ? input.size() : end + 1);
  }
  for (int i = 0; i < 24; ++i) content.emplace_back("tensors/" + std::to_string(i), std::string(1024, 't'));
  return test::makeZip(content);
}

/// What a window does with a session first: all of it must hold for whatever the reader let pass.
void use(const SessionFile& session) {
  const auto& document = *session.model.document;
  std::vector<const Trace*> traces{&session.model.computation.trace};
  if (session.derived()) traces.insert(traces.end(), {&session.joint, &session.forward, &session.backward});
  for (const auto* trace : traces) {
    printTrace(document, *trace);
    LastUses(document, *trace);
  }
  dumpJson(traceDocument(document, traces));
  const OriginLinks links(document, session.joint);
  for (auto op : session.joint.ops) links.forwardOf(document, op);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto zip = archiveOf({reinterpret_cast<const char*>(data), size});
  fuzz::expectReadOrRefusal(
      [&] { use(readSessionRecords(Archive::open(fuzz::regionOf(zip), "fuzz"), test::stubLookup, {})); });
  return 0;
}
