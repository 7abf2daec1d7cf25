// Text of kernels, and failed assertions.
#include <cstdio>
#include <cstring>

#include "block.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// One conversion of a format: from '%' to its letter, without length modifiers.
struct Conversion {
  std::string flags;
  char letter = 0;
  size_t end = 0;        // of the format, after the letter
};

Conversion conversion_at(const char* format, size_t at) {
  Conversion c;
  c.flags = "%";
  size_t i = at + 1;
  for (; format[i] && std::strchr("-+ #0123456789.", format[i]); ++i) c.flags += format[i];
  while (format[i] && std::strchr("hlqjzt", format[i])) ++i;
  c.letter = format[i];
  c.end = format[i] ? i + 1 : i;
  return c;
}

std::string formatted(const Conversion& c, char kind, uint64_t value) {
  char text[512];
  double real;
  std::memcpy(&real, &value, sizeof real);
  if (std::strchr("diouxXc", c.letter)) {
    if (kind == 'f') value = uint64_t(int64_t(real));
    const char* length = c.letter == 'c' ? "" : "ll";
    const std::string full = c.flags + length + c.letter;
    if (c.letter == 'c') snprintf(text, sizeof text, full.c_str(), int(value));
    else snprintf(text, sizeof text, full.c_str(), (long long)value);
  } else if (c.letter == 's') {
    const std::string full = c.flags + "s";
    const char* string = kind == 's' ? reinterpret_cast<const char*>(uintptr_t(value)) : "?";
    snprintf(text, sizeof text, full.c_str(), string);
  } else if (c.letter == 'p') {
    snprintf(text, sizeof text, "%p", reinterpret_cast<void*>(uintptr_t(value)));
  } else {
    if (kind == 'd') real = double(int64_t(value));
    if (kind == 'u') real = double(value);
    const std::string full = c.flags + c.letter;
    snprintf(text, sizeof text, full.c_str(), real);
  }
  return text;
}

}  // namespace

extern "C" {

void tsim_print(const char* pattern, const char* kinds, const unsigned long long* values,
                unsigned) {
  std::string text;
  size_t used = 0;
  for (size_t i = 0; pattern[i];) {
    if (pattern[i] != '%') {
      text += pattern[i++];
      continue;
    }
    if (pattern[i + 1] == '%') {
      text += '%';
      i += 2;
      continue;
    }
    const Conversion c = conversion_at(pattern, i);
    if (kinds[used] && c.letter) {
      text += formatted(c, kinds[used], values[used]);
      ++used;
    }
    i = c.end;
  }
  current_block->output += text;
}

void tsim_assertion_failed(const char* text, unsigned line) {
  Finding finding;
  finding.kind = TSIM_ASSERTION;
  finding.line = line;
  report_and_abandon(finding, text);
}

void tsim_undefined(const char* text, unsigned line) {
  Finding finding;
  finding.kind = TSIM_UNDEFINED;
  finding.line = line;
  report_and_abandon(finding, text);
}

}  // extern "C"
