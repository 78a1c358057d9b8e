// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QPointF>

#include <cstddef>
#include <vector>

namespace shardscope::app {

/// A curve that grows at its end, kept as the smallest and the largest of every so many points: appending takes
/// constant time and memory stays bounded, however long a run is. What is lost is smaller than a pixel of any screen.
class LossCurve {
public:
    /// x must not be smaller than those before.
    void append(double x, double y);
    void clear() { *this = {}; }
    std::size_t size() const { return m_size; }
    bool isEmpty() const { return m_size == 0; }
    QPointF last() const { return m_last; }
    double lowest() const { return m_lowest; }
    double highest() const { return m_highest; }
    /// In the order of x, at most 2 x kMostBuckets.
    QList<QPointF> points() const;

    static constexpr std::size_t kMostBuckets = 8192;

private:
    struct Bucket {
        QPointF low, high;
        std::size_t count = 0;
    };
    static void merge(Bucket& into, const Bucket& other);
    std::vector<Bucket> m_buckets;
    std::size_t m_perBucket = 1; ///< doubled when there are too many
    std::size_t m_size = 0;
    QPointF m_last;
    double m_lowest = 0, m_highest = 0;
};

} // namespace shardscope::app
