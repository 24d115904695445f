#include "core/serve/serve.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <string>

#include "core/base/error.h"

namespace retrograd::test {
namespace {

using Json = Method::Json;

std::string linesOf(const std::string& input) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  EXPECT_EQ(::write(pipe[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(pipe[1]);
  MessageReader reader(pipe[0]);
  std::string lines;
  try {
    while (const auto line = reader.next()) lines += "[" + *line + "]";
  } catch (const Error& error) {
    lines += error.message();
  }
  ::close(pipe[0]);
  return lines;
}

TEST(Messages, AreLinesAndAHalfOneIsAnError) {
  EXPECT_EQ(linesOf("{}\n{\"a\": 1}\r\n"), "[{}][{\"a\": 1}]");
  EXPECT_EQ(linesOf("{}\n{\"a\""), "[{}]ends in the middle of a message");
  EXPECT_EQ(linesOf(""), "");
}

TEST(Messages, GarbageAndDeepNestingAreNoMessages) {
  EXPECT_THROW(parseMessage("\x80\x02garbage"), Error);
  EXPECT_THROW(parseMessage(std::string(100000, '[')), Error);
  EXPECT_EQ(parseMessage("{\"a\": \"[[[\"}")["a"], "[[[");
}

TEST(Answers, AreBoundedAndSayWhatIsLeftOut) {
  Json answer{{"list", Json::array()}, {"text", std::string(5000, 'x')}};
  for (int i = 0; i < 3000; ++i) answer["list"].push_back(i);
  const auto cut = bounded(answer, 4000);
  EXPECT_LE(cut.dump(1).size(), 4000u);
  const auto& last = cut["list"].back().get_ref<const std::string&>();
  EXPECT_EQ(last, "... and " + std::to_string(3000 - (cut["list"].size() - 1)) + " more");
  EXPECT_EQ(bounded(Json{{"a", 1}}, 4000), (Json{{"a", 1}}));
  EXPECT_TRUE(bounded(answer, 30).is_string());
}

TEST(Methods, HaveASchema) {
  const Method method{"open", "Open it.", {{"path", "string", "a file", true}, {"count", "integer", "how many"}}, {}};
  EXPECT_EQ(method.schema()["required"], Json::array({"path"}));
  EXPECT_EQ(method.schema()["properties"]["count"]["type"], "integer");
  EXPECT_EQ(method.schema()["additionalProperties"], false);
}

}  // namespace
}  // namespace retrograd::test
