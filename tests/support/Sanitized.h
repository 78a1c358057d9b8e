// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Whether this is a build under the address or thread sanitizer: ten times as slow, with an allocator of its own. GCC and
// clang say so in different ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDSCOPE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDSCOPE_SANITIZED 1
#endif
#endif
