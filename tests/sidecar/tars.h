// Writes tar archives for tests, by POSIX's description of ustar.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace headrace::side {

struct TarFields {
  char type = '0';
  std::string size;  // as it stands in its field; "": as many as there are
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
  std::string prefix;
};

inline std::string TarChecked(std::string header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, text, 7);
  return header;
}

inline std::string TarHeader(const std::string& name, uint64_t size, const TarFields& fields = {}) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char octal[13];
  std::snprintf(octal, sizeof octal, "%011llo", static_cast<unsigned long long>(size));
  if (fields.size.empty()) header.replace(124, 11, octal);
  header.replace(124, fields.size.size(), fields.size);
  header.replace(136, 11, "00000000000");
  header[156] = fields.type;
  header.replace(257, fields.magic.size(), fields.magic);
  header.replace(345, fields.prefix.size(), fields.prefix);
  return TarChecked(header);
}

inline std::string TarContent(const std::string& content) {
  return content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string TarFile(const std::string& name, const std::string& content, const TarFields& fields = {}) {
  return TarHeader(name, content.size(), fields) + TarContent(content);
}

inline std::string PaxRecord(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

}  // namespace headrace::side
