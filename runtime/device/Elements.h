// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace shardscope::engine {

enum class ElementType : std::uint8_t { Float32, BFloat16 };

constexpr std::int64_t elementBytes(ElementType type) {
    return type == ElementType::Float32 ? 4 : 2;
}
/// The type that takes `bytes` bytes per element in a preset.
constexpr ElementType elementType(std::int64_t bytes) {
    return bytes == 2 ? ElementType::BFloat16 : ElementType::Float32;
}

/// Where numbers lie in the memory of a device, and of what type they are. Sums are in elements. The memory is the
/// host's only where Device::isHostMemory() says so.
template<typename Byte> struct BasicElements {
    Byte* at = nullptr;
    ElementType type = ElementType::Float32;

    constexpr explicit operator bool() const { return at != nullptr; }
    constexpr BasicElements operator+(std::int64_t elements) const {
        return {at + elements * elementBytes(type), type};
    }
    constexpr operator BasicElements<const std::byte>() const requires(!std::is_const_v<Byte>) { return {at, type}; }
    /// For float32 numbers in host memory.
    auto* floats() const {
        using Float = std::conditional_t<std::is_const_v<Byte>, const float, float>;
        return reinterpret_cast<Float*>(at);
    }
};
using Elements = BasicElements<std::byte>;
using ConstElements = BasicElements<const std::byte>;

/// float32 numbers in memory.
inline Elements floatsAt(float* memory) {
    return {reinterpret_cast<std::byte*>(memory), ElementType::Float32};
}
inline ConstElements floatsAt(const float* memory) {
    return {reinterpret_cast<const std::byte*>(memory), ElementType::Float32};
}

} // namespace shardscope::engine
