#include "sidecar/source/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sidecar/decode/tar_member.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"
#include "tests/sidecar/tars.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// The files of each sample, "key: field=content field=content".
std::vector<std::string> SamplesOf(const FileRecords& all) {
  std::vector<std::string> samples;
  for (const std::string& record : all.records) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(record.data()), record.size());
    TarMember member;
    std::string& sample = samples.emplace_back();
    for (size_t at = 0; at < bytes.size(); at = member.end()) {
      const auto found = member.Read(bytes, at);
      if (!found.ok() || *found != TarMember::Found::kMember) {
        ADD_FAILURE() << "a record holds something else than members";
        break;
      }
      const SampleName name = SampleNameOf(member.path());
      if (!member.is_file() || name.key.empty()) continue;
      if (sample.empty()) sample = std::string(name.key) + ":";
      sample += " " + std::string(name.field) + "=" + record.substr(member.begin(), member.size());
    }
  }
  return samples;
}

class TarArchive : public testing::Test {
 protected:
  FileRecords Read(const std::string& archive, size_t block = 7) const {
    return ReadFile(FileFormat::kWebDataset, folder_.Write("a.tar", archive), Compression::kAuto, block);
  }
  std::vector<std::string> Samples(const std::string& archive) const {
    const FileRecords all = Read(archive);
    EXPECT_TRUE(all.status.ok()) << all.status.message();
    return SamplesOf(all);
  }
  Folder folder_;
};

TEST_F(TarArchive, GroupsFilesThatFollowOneAnotherByKey) {
  EXPECT_THAT(Samples(TarFile("a.jpg", "1") + TarFile("a.cls", "2") + TarFile("b.jpg", "3") +
                      TarFile("b.seg.png", "4") + TarFile("b/b.jpg", "5") + TarFile("a.jpg", "6") + TarEnd()),
              ElementsAre("a: jpg=1 cls=2", "b: jpg=3 seg.png=4", "b/b: jpg=5", "a: jpg=6"));
}

TEST_F(TarArchive, PassesOverWhatBelongsToNoSample) {
  const std::string folder = TarFile("./", "", {.type = '5'});
  const std::string meta = TarFile("__meta__", "x") + TarFile("README", "y") + TarFile("__x__/a.jpg", "z");
  EXPECT_THAT(Samples(folder + meta + TarFile("a.jpg", "1") + meta + TarFile("a.cls", "2") + folder +
                      TarFile("a.lnk", "", {.type = '2'}) + TarFile("b.jpg", "3") + meta + TarEnd()),
              ElementsAre("a: jpg=1 cls=2", "b: jpg=3"));
  EXPECT_THAT(Samples(folder + meta + TarEnd()), IsEmpty());
}

TEST_F(TarArchive, EndsWithItsFileOrWithZeros) {
  const std::string files = TarFile("a.x", "1") + TarFile("b.x", "2");
  for (const std::string& end :
       {std::string(), TarEnd(), std::string(512, '\0'), std::string(10240, '\0'), std::string(700, '\0'),
        TarEnd() + "what a tape held before", TarEnd() + std::string(512, 'x') + files}) {
    EXPECT_THAT(Samples(files + end), ElementsAre("a: x=1", "b: x=2")) << end.size();
  }
  EXPECT_THAT(Samples(""), IsEmpty());
  EXPECT_THAT(Samples(TarEnd()), IsEmpty());
}

TEST_F(TarArchive, GoesOnInAnArchiveThatFollows) {
  EXPECT_THAT(Samples(TarFile("a.x", "1") + TarEnd() + TarFile("a.x", "2") + TarFile("b.x", "3") +
                      std::string(9728, '\0') + TarFile("c.x", "4")),
              ElementsAre("a: x=1", "a: x=2", "b: x=3", "c: x=4"));
}

TEST_F(TarArchive, HoldsSamplesOfEverySize) {
  std::string archive;
  std::vector<std::string> expected;
  for (int i = 0; i < 60; ++i) {
    const auto digit = static_cast<char>('0' + i % 10);
    // Small ones, many of which are in a block, and some that take several.
    const std::string content(static_cast<size_t>(i % 20 == 19 ? 700000 + i : i * i * 11), digit);
    archive += TarFile(std::to_string(i) + ".a", content) + TarFile(std::to_string(i) + ".b", "+");
    expected.push_back(std::to_string(i) + ": a=" + content + " b=+");
  }
  for (const size_t block : {1, 1000}) {
    const FileRecords all = Read(archive + TarEnd(), block);
    ASSERT_TRUE(all.status.ok()) << all.status.message();
    EXPECT_TRUE(SamplesOf(all) == expected);
  }
}

TEST_F(TarArchive, IsReadCompressed) {
  const std::string path = folder_.Write("a.tar.gz", GzipOf(TarFile("a.x", "1") + TarEnd()));
  EXPECT_THAT(SamplesOf(ReadFile(FileFormat::kWebDataset, path)), ElementsAre("a: x=1"));
}

// GNU tar itself, in all the formats that it writes.
TEST_F(TarArchive, IsReadHoweverTarWritesIt) {
  const std::string deep = std::string(60, 'd') + "/" + std::string(70, 'e');
  const std::string name = deep + "/" + std::string(60, 'n');
  std::filesystem::create_directories(folder_.path() + "/in/" + deep);
  folder_.Write("in/" + name + ".x", "far");
  folder_.Write("in/near.x", "near");
  for (const std::string format : {"v7", "ustar", "gnu", "posix", "oldgnu"}) {
    // The old format has no room for the long name.
    const std::string files = format == "v7" ? "near.x" : "near.x " + deep + " near.x";
    const std::string command =
        "tar -C " + folder_.path() + "/in --format=" + format + " -cf " + folder_.path() + "/out.tar " + files;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const FileRecords all = ReadFile(FileFormat::kWebDataset, folder_.path() + "/out.tar");
    ASSERT_TRUE(all.status.ok()) << format << ": " << all.status.message();
    if (format == "v7") {
      EXPECT_THAT(SamplesOf(all), ElementsAre("near: x=near"));
    } else {
      // The third is a hard link to the first, which is no file of its own.
      EXPECT_THAT(SamplesOf(all), ElementsAre("near: x=near", name + ": x=far")) << format;
    }
  }
}

TEST_F(TarArchive, NamesFileAndOffsetWhereverItIsCut) {
  const std::string first = TarFile("a.x", "1") + TarFile("a.y", "2");
  const std::string archive = first + TarFile("b.x", "3") + TarFile("b.y", "4");
  for (size_t size = 1; size < archive.size(); size += size % 512 < 2 ? 1 : 73) {
    if (size % 1024 == 0) continue;  // a member's end may be the archive's
    const FileRecords all = Read(archive.substr(0, size));
    EXPECT_EQ(all.status.code(), Code::kCorrupt) << size;
    // What a sample that is cut off held is not known.
    const size_t begin = size < first.size() + 512 ? 0 : first.size();
    EXPECT_THAT(all.status.message(), HasSubstr("/a.tar: at byte " + std::to_string(begin) + ": ")) << size;
    EXPECT_THAT(all.status.message(), HasSubstr("truncated"));
    EXPECT_EQ(all.records.size(), begin == 0 ? 0u : 1u);
  }
}

TEST_F(TarArchive, NamesTheMemberWhoseHeaderIsDamaged) {
  const std::string good = TarFile("a.x", "1") + TarFile("a.y", "2");
  std::string header = TarHeader("b.x", 1);
  header[3] = 'y';
  FileRecords all = Read(good + header + TarContent("3"));
  EXPECT_EQ(all.status.code(), Code::kCorrupt);
  EXPECT_THAT(all.status.message(),
              HasSubstr("/a.tar: at byte 0: in the sample that begins here, at byte 2048: the checksum of a tar header "
                        "does not match: the archive is damaged, or not a tar file; "));
  all = Read(good + TarFile("c.x", "") + header);
  EXPECT_EQ(all.records.size(), 1u);
  EXPECT_THAT(all.status.message(),
              HasSubstr("at byte 2048: in the sample that begins here, at byte 2560: the checksum"));
  EXPECT_THAT(
      Read(std::string(2000, 'x')).status.message(),
      EndsWith("/a.tar: at byte 0: the checksum of a tar header does not match: the archive is damaged, or not a "
               "tar file; write it again or take it out of spec.source.files.paths"));
}

}  // namespace
}  // namespace headrace::side
