// The examples of FIPS 180-4 and of NIST's test vectors for it, and every length around a block's beside OpenSSL.
#include "common/spec/sha256.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string>

namespace headrace {
namespace {

std::string Hex(const std::string& text) {
  std::string hex;
  for (const uint8_t byte : Sha256(text)) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST(Sha256, GivesTheStandardsExamples) {
  EXPECT_EQ(Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsOpenSslsAtEveryLength) {
  std::string text;
  for (int length = 0; length < 300; ++length, text += static_cast<char>(length * 7)) {
    uint8_t expected[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), expected);
    EXPECT_TRUE(std::ranges::equal(Sha256(text), expected)) << length;
  }
}

}  // namespace
}  // namespace headrace
