#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Flag kFlags[] = {{"file", "FILE", "", 'f'}, {"workers", "N", "", 'w'}, {"quiet", "", "", 'q'}};

std::string Error(const std::vector<std::string>& arguments) {
  const auto line = CommandLine::Parse(arguments, kFlags);
  return line.ok() ? "no error" : line.status().message();
}

TEST(FlagsTest, AllForms) {
  const auto line = CommandLine::Parse({"-f", "a.yaml", "--workers=3", "one", "-q", "two", "--", "-f", "x"}, kFlags);
  ASSERT_TRUE(line.ok()) << line.status().ToString();
  EXPECT_EQ(line->Text("file"), "a.yaml");
  EXPECT_EQ(*line->Integer("workers", 1), 3);
  EXPECT_TRUE(line->Has("quiet"));
  EXPECT_THAT(line->positional(), ElementsAre("one", "two"));
  EXPECT_THAT(line->rest(), ElementsAre("-f", "x"));
  EXPECT_EQ(CommandLine::Parse({"-fb.yaml"}, kFlags)->Text("file"), "b.yaml");
}

TEST(FlagsTest, ADashIsStandardInput) { EXPECT_EQ(CommandLine::Parse({"-f", "-"}, kFlags)->Text("file"), "-"); }

TEST(FlagsTest, ErrorsNameTheArgumentAndTheRemedy) {
  EXPECT_THAT(Error({"--wrokers", "2"}), HasSubstr("did you mean --workers?"));
  EXPECT_THAT(Error({"--file"}), HasSubstr("--file needs a value, FILE"));
  EXPECT_THAT(Error({"--quiet=1"}), HasSubstr("takes no value"));
  EXPECT_THAT(Error({"-z"}), HasSubstr("unknown flag -z"));
}

TEST(FlagsTest, IntegersAreChecked) {
  for (const std::string text : {"0", "-1", "two", "2x", "", "99999999999999999999"}) {
    const auto line = CommandLine::Parse({"--workers", text}, kFlags);
    ASSERT_TRUE(line.ok());
    const auto workers = line->Integer("workers", 1);
    ASSERT_FALSE(workers.ok()) << text;
    EXPECT_THAT(workers.status().message(), HasSubstr("--workers " + text));
  }
}

}  // namespace
}  // namespace headrace::cli
