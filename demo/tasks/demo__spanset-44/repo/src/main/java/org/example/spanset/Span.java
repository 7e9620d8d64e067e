package org.example.spanset;

import java.util.Objects;

/** The numbers from one to another, both included. Immutable, never empty. */
public final class Span implements Comparable<Span> {
    private final long from;
    private final long to;

    private Span(long from, long to) {
        this.from = from;
        this.to = to;
    }

    /** @throws IllegalArgumentException if {@code from} is greater than {@code to} */
    public static Span of(long from, long to) {
        if (from > to) {
            throw new IllegalArgumentException(from + " is greater than " + to);
        }
        return new Span(from, to);
    }

    public long from() {
        return from;
    }

    public long to() {
        return to;
    }

    public boolean contains(long number) {
        return from <= number && number <= to;
    }

    public boolean overlaps(Span other) {
        return from <= other.to && other.from <= to;
    }

    /** Written as {@link SpanParser} reads it. */
    @Override
    public String toString() {
        if (from == to) {
            return Long.toString(from);
        }
        if (from == Long.MIN_VALUE) {
            return to == Long.MAX_VALUE ? "(all)" : "(-" + to + ")";
        }
        return from + "-" + (to == Long.MAX_VALUE ? "" : Long.toString(to));
    }

    @Override
    public int compareTo(Span other) {
        int byStart = Long.compare(from, other.from);
        return byStart != 0 ? byStart : Long.compare(to, other.to);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Span && ((Span) other).from == from && ((Span) other).to == to;
    }

    @Override
    public int hashCode() {
        return Objects.hash(from, to);
    }
}
