#include "core/torch/tracing/recorded_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

TEST(RecordedGenerator, aSeedOfAStateBeginsAtThatState) {
  auto generator = at::detail::createCPUGenerator(11);
  static_cast<void>(at::rand({1000}, generator));  // somewhere in a training loop
  const auto state = generator.get_state();
  const auto expected = at::rand({5}, generator);
  const auto seed = seedOfState(keepTensor(state));
  EXPECT_EQ(seed, seedOfState(keepTensor(state)));
  EXPECT_TRUE(at::equal(seededState(seed), state));
  KeepGenerator keep;
  setGeneratorState(seededState(seed));
  EXPECT_TRUE(at::equal(at::rand({5}), expected));
  ASSERT_TRUE(stateAsText(seed));
  EXPECT_EQ(seedOfState(*stateAsText(seed)), seed);
  EXPECT_FALSE(stateAsText(11)) << "a seed of its own";
}

TEST(RecordedGenerator, otherBytesAreRefused) {
  for (const std::int64_t size : {0, 16, 5055, 5056, 6000}) {
    auto bytes = at::full({size}, 255, at::kByte);
    EXPECT_THROW(seedOfState(keepTensor(bytes)), Error) << size;
  }
  EXPECT_THROW(seedOfState(keepTensor(at::zeros({5056}))), Error) << "no bytes";
  EXPECT_THROW(seedOfState(std::string("0x")), Error);
}

}  // namespace
}  // namespace retrograd
