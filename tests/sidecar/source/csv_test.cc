// CSV files through the loader's pipeline. Expected records: those of Python's csv module.
#include "sidecar/source/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CsvFiles : public testing::Test {
 protected:
  PipelineRun Run(const std::string& features, const std::string& options = "{}", const std::string& paths = "*.csv") {
    return PipelineRun(R"({"source": {"files": {"format": "CSV", "paths": [")" + paths + R"("], "csv": )" + options +
                           R"(}}, "features": )" + features + R"(, "pipeline": [{"batch": {"size": 1000000}}]})",
                       {}, folder_.path());
  }
  // The column "n", or what is wrong.
  std::vector<int64_t> Numbers(const std::string& file, const std::string& options = "{}") {
    folder_.Write("a.csv", file);
    auto run = Run(R"([{"name": "n", "dtype": "int64"}])", options);
    auto values = run.Values<int64_t>();
    EXPECT_TRUE(run.status().ok()) << run.status().message();
    return values;
  }
  std::string ErrorOf(const std::string& file, const std::string& features = R"([{"name": "n", "dtype": "int64"}])",
                      const std::string& options = "{}") {
    folder_.Write("a.csv", file);
    auto run = Run(features, options);
    run.Epoch();
    const std::string message = run.status().message();
    return message.rfind(folder_.path(), 0) == 0 ? message.substr(folder_.path().size() + 1) : message;
  }

  Folder folder_;
};

TEST_F(CsvFiles, EachOrdersItsColumnsAsItLikes) {
  folder_.Write("a.csv", "a,label,b\n1,10,2\n3,11,4\n");
  folder_.Write("b.csv", "\xef\xbb\xbf\"label\",b,\"c,\",a\r\n12,6,x,5\r\n");
  auto run = Run(R"([{"name": "x", "shape": [2], "columns": ["a", "b"]}, {"name": "label", "dtype": "int32"}])");
  const auto all = run.Epoch();
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].Values<float>(0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(all[0].Values<int32_t>(1), ElementsAre(10, 11, 12));
}

TEST_F(CsvFiles, NeedNoHeaderWhereTheSpecNamesTheColumns) {
  EXPECT_THAT(Numbers("1;2\n3;4\n", R"({"header": false, "columns": ["m", "n"], "delimiter": ";"})"),
              ElementsAre(2, 4));
}

TEST_F(CsvFiles, MayBeEmptyOrHoldAHeaderAlone) {
  EXPECT_THAT(Numbers(""), IsEmpty());
  EXPECT_THAT(Numbers("n"), IsEmpty());
  EXPECT_THAT(Numbers("\r\nn\r\n\r\n"), IsEmpty());
}

TEST_F(CsvFiles, EmptyLinesArePassedOver) {
  EXPECT_THAT(Numbers("\nn\n\n1\n\r\n2\n\n"), ElementsAre(1, 2));
  // A blank one is a field, or with tabs as delimiters several that are empty.
  EXPECT_THAT(ErrorOf("n\n1\n \n"), HasSubstr("a.csv: line 3: column \"n\""));
  EXPECT_THAT(ErrorOf("n\tt\n1\tx\n\t\n", R"([{"name": "n", "dtype": "int64"}])", R"({"delimiter": "\t"})"),
              HasSubstr("a.csv: line 3: column \"n\""));
}

TEST_F(CsvFiles, QuotedLineEndsArePartOfARecord) {
  EXPECT_THAT(Numbers("\"t\nt\",n\n\"a\r\nb\n\",1\n\"\"\"\n\",2\n6\" x,3\n\"\",4"), ElementsAre(1, 2, 3, 4));
}

TEST_F(CsvFiles, AreCutAtAnyPlaceOfABlock) {
  std::string file = "text,n\n";
  std::vector<int64_t> expected;
  for (int i = 0; i < 60000; ++i) {
    const std::string text = i % 3 == 0 ? "\"a,\n\"\"b\"" : i % 3 == 1 ? "plain" : "\"\"";
    file += text + "," + std::to_string(i) + (i % 2 == 0 ? "\n" : "\r\n");
    expected.push_back(i);
  }
  EXPECT_EQ(Numbers(file), expected);
}

TEST_F(CsvFiles, QuotedFieldsMayBeLongerThanABlock) {
  const std::string text(2 * BytesBlockPool::kUsualBytes, '\n');
  EXPECT_THAT(Numbers("t,n\n\"" + text + "\",1\nx,2\n"), ElementsAre(1, 2));
}

TEST_F(CsvFiles, LinesAreCountedAsEditorsDo) {
  EXPECT_THAT(ErrorOf("\n\"t\n\",n\n\n\"a\nb\",1\n\nc,oops\n"),
              HasSubstr("a.csv: line 8: column \"n\" holds \"oops\""));
  std::string file = "t,n\n";
  for (int i = 0; i < 100000; ++i) file += "\"\n\n\",1\n";
  EXPECT_THAT(ErrorOf(file + "x,y\n"), HasSubstr("a.csv: line 300002: column \"n\""));
}

TEST_F(CsvFiles, AFieldThatIsNeverClosedIsSaidToBeSo) {
  EXPECT_EQ(ErrorOf("t,n\na,1\n\"b,2\nc,3\n"),
            "a.csv: at byte 8: line 3: a field begins with a quote, and no closing one follows; close it, or quote the "
            "field and double the quotes in it");
}

TEST_F(CsvFiles, AColumnThatIsMissingIsFoundBeforeAnyBatch) {
  folder_.Write("a.csv", "label,c0,c1\n1,2,3\n");
  auto run = Run(R"([{"name": "label"}, {"name": "x", "shape": [2], "columns": ["c0", "c2"]}])");
  EXPECT_THAT(
      run.status().message(),
      HasSubstr("a.csv: at byte 0: the header has no column \"c2\", which spec.features[1].columns[1] names; did "
                "you mean \"c0\"? It holds \"label\", \"c0\", \"c1\""));
}

TEST_F(CsvFiles, AColumnThatIsMissingInALaterFileIsFoundThere) {
  folder_.Write("a.csv", "n\n1\n");
  folder_.Write("b.csv", "m\n2\n");
  auto run = Run(R"([{"name": "n", "dtype": "int64"}])");
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  run.Epoch();
  EXPECT_THAT(run.status().message(), HasSubstr("b.csv: at byte 0: the header has no column \"n\""));
}

TEST_F(CsvFiles, AColumnThatIsThereTwiceIsRefused) {
  EXPECT_THAT(ErrorOf("n,n\n1,2\n"),
              HasSubstr("the header names column \"n\", which spec.features[0].name names, twice"));
  EXPECT_EQ(ErrorOf("n,m,m\n1,2,3\n"), "");
}

}  // namespace
}  // namespace headrace::side
