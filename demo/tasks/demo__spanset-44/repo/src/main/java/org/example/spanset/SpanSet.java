package org.example.spanset;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** A set of whole numbers as spans that neither overlap nor touch. Not safe for concurrent changes. */
public final class SpanSet implements Iterable<Span> {
    /** Start of each span to its end. */
    private final TreeMap<Long, Long> spans = new TreeMap<>();

    public static SpanSet of(Span... initial) {
        SpanSet set = new SpanSet();
        for (Span span : initial) {
            set.add(span.from(), span.to());
        }
        return set;
    }

    /** Reads what {@link #toString} writes; the order does not matter. */
    public static SpanSet parse(String text) {
        return of(SpanParser.parse(text).toArray(new Span[0]));
    }

    public SpanSet copy() {
        SpanSet copy = new SpanSet();
        copy.spans.putAll(spans);
        return copy;
    }

    public boolean isEmpty() {
        return spans.isEmpty();
    }

    public boolean contains(long number) {
        Map.Entry<Long, Long> below = spans.floorEntry(number);
        return below != null && number <= below.getValue();
    }

    /** Whether every number of a span is in the set. */
    public boolean containsAll(Span span) {
        Map.Entry<Long, Long> below = spans.floorEntry(span.from());
        return below != null && span.to() <= below.getValue();
    }

    public SpanSet add(long number) {
        return add(number, number);
    }

    /** Adds the numbers from one to another, both included. */
    public SpanSet add(long from, long to) {
        Span.of(from, to);
        long start = from;
        long end = to;
        Map.Entry<Long, Long> below = spans.floorEntry(from);
        if (below != null && below.getValue() + 1 >= from) {
            start = below.getKey();
            end = Math.max(end, below.getValue());
        }
        Map.Entry<Long, Long> next = spans.ceilingEntry(start);
        while (next != null && next.getKey() <= end + 1) {
            end = Math.max(end, next.getValue());
            spans.remove(next.getKey());
            next = spans.higherEntry(next.getKey());
        }
        spans.put(start, end);
        return this;
    }

    public SpanSet addAll(SpanSet other) {
        for (Span span : other.toList()) {
            add(span.from(), span.to());
        }
        return this;
    }

    /** Removes the numbers from one to another, both included. */
    public SpanSet remove(long from, long to) {
        Span.of(from, to);
        Map.Entry<Long, Long> below = spans.lowerEntry(from);
        if (below != null && below.getValue() >= from) {
            spans.put(below.getKey(), from - 1);
            if (below.getValue() > to) {
                spans.put(to + 1, below.getValue());
                return this;
            }
        }
        Map.Entry<Long, Long> next = spans.ceilingEntry(from);
        while (next != null && next.getKey() <= to) {
            spans.remove(next.getKey());
            if (next.getValue() > to) {
                spans.put(to + 1, next.getValue());
            }
            next = spans.higherEntry(next.getKey());
        }
        return this;
    }

    public SpanSet removeAll(SpanSet other) {
        for (Span span : other.toList()) {
            remove(span.from(), span.to());
        }
        return this;
    }

    /** Every number that is not in this set. */
    public SpanSet complement() {
        SpanSet rest = new SpanSet();
        long start = Long.MIN_VALUE;
        for (Map.Entry<Long, Long> span : spans.entrySet()) {
            if (span.getKey() > start) {
                rest.spans.put(start, span.getKey() - 1);
            }
            start = span.getValue() + 1;
        }
        rest.spans.put(start, Long.MAX_VALUE);
        return rest;
    }

    public SpanSet intersection(SpanSet other) {
        return copy().removeAll(other.complement());
    }

    /** How many numbers there are; more than a long can say if the set is large. */
    public BigInteger size() {
        BigInteger size = BigInteger.ZERO;
        for (Span span : this) {
            BigInteger length = BigInteger.valueOf(span.to()).subtract(BigInteger.valueOf(span.from()));
            size = size.add(length).add(BigInteger.ONE);
        }
        return size;
    }

    public List<Span> toList() {
        List<Span> list = new ArrayList<>();
        spans.forEach((from, to) -> list.add(Span.of(from, to)));
        return list;
    }

    @Override
    public Iterator<Span> iterator() {
        return toList().iterator();
    }

    @Override
    public String toString() {
        return toList().stream().map(Span::toString).collect(Collectors.joining(","));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SpanSet && ((SpanSet) other).spans.equals(spans);
    }

    @Override
    public int hashCode() {
        return spans.hashCode();
    }
}
