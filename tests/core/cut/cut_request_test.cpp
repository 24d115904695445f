#include "core/cut/cut_request.h"

#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

constexpr const char* marked = R"(
def computation(x):
    # x: "f32[4]"
    # module: first
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    # module: second
    b = aten.cos(a)  # b: "f32[4]"
    c = aten.tanh(b)  # c: "f32[4]"
    return c
)";

Cuts cutsOf(const ModelFile& model, const CutRequest& request) { return pointCuts(model, request); }

TEST(CutRequest, PointsAddToMarkers) {
  const auto model = modelOf(marked);
  CutRequest request;
  EXPECT_EQ(cutsOf(model, request), Cuts{1});
  request.at = {"#c"};
  EXPECT_EQ(cutsOf(model, request), (Cuts{1, 3}));
}

TEST(CutRequest, MarkersAreLeftOutWhereAsked) {
  const auto model = modelOf(marked);
  CutRequest request;
  request.useMarkers = false;
  EXPECT_TRUE(cutsOf(model, request).empty());
  request.stages = 2;
  EXPECT_NO_THROW(cutsOf(model, request)) << "nothing is in the policy's way";
}

TEST(CutRequest, APolicyExcludesMarkersAndPoints) {
  const auto model = modelOf(marked);
  CutRequest request;
  request.stages = 2;
  EXPECT_NE(errorOf([&] {
              cutsOf(model, request);
            }).find("the file has 1 stage marker of its own, and a policy is asked for"),
            std::string::npos);
  request.at = {"#c"};
  request.useMarkers = false;
  EXPECT_NE(errorOf([&] { requireOneWay(request); }).find("Cannot specify both points to cut at and a policy"),
            std::string::npos);
}

TEST(CutRequest, NotesNameWhatIsNotUsed) {
  auto model = modelOf(
      "def computation(x, y):\n    # x: \"f32[4]\"\n    # y: \"f32[4]\"\n    a = aten.sin(x)  # a: \"f32[4]\"\n    "
      "return a\n");
  const CutRequest request;
  const auto notes = cutNotes(model, request, {}, splitOf(model, {}));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], "no cut is asked for and the file has no stage marker: it is one stage");
  EXPECT_EQ(notes[1], "input y is used by no op: at export it may have been one tensor with another input");  // P57
}

TEST(CutRequest, APlaceHasAPointThatLeadsToIt) {
  const auto model = modelOf(marked);
  const PointNames names(*model.document, model.computation);
  for (std::size_t position : {1u, 2u, 3u})
    EXPECT_EQ(cutsAt(*model.document, model.computation, {names.at(position)}), Cuts{position}) << names.at(position);
  EXPECT_EQ(names.at(3), "#c");
  EXPECT_EQ(names.at(1), "#a:after") << "a marker has no name that tells it from another";
  EXPECT_NE(errorOf([&] { PointNames().at(1); }).find("no names of their own"), std::string::npos);
}

TEST(CutRequest, ARefusalLeadsToItsOp) {
  const auto model = modelOf(marked);
  const auto& ops = model.computation.trace.ops;
  EXPECT_EQ(refusedOp(*model.document, model.computation,
                      Error(ErrorCode::badUse, "it writes", "#b (aten.cos.default) in stage 1")),
            ops[2]);
  EXPECT_EQ(refusedOp(*model.document, model.computation,
                      Error(ErrorCode::badUse, "cut before or behind #c", "cut at first")),
            ops[3]);
  EXPECT_FALSE(refusedOp(*model.document, model.computation, Error(ErrorCode::badUse, "no op", "cut at #nothing")));
}

}  // namespace
}  // namespace retrograd
