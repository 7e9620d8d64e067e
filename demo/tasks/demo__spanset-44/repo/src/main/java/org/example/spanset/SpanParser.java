package org.example.spanset;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads lists of spans such as {@code 1-10,15,20-}. */
final class SpanParser {
    private static final Pattern NUMBER = Pattern.compile("-?\\d+");
    private static final Pattern SPAN = Pattern.compile("(-?\\d+)?\\s*-\\s*(-?\\d+)?");

    private SpanParser() {}

    static List<Span> parse(String text) {
        List<Span> spans = new ArrayList<>();
        if (text.trim().isEmpty()) {
            return spans;
        }
        for (String part : text.split(",", -1)) {
            spans.add(parseSpan(part.trim()));
        }
        return spans;
    }

    private static Span parseSpan(String part) {
        if (part.equals("(all)")) {
            return Span.of(Long.MIN_VALUE, Long.MAX_VALUE);
        }
        // "-5" is the number; a span without a lower end needs brackets: "(-5)" is up to five.
        if (part.startsWith("(-") && part.endsWith(")")) {
            return Span.of(Long.MIN_VALUE, number(part.substring(2, part.length() - 1), part));
        }
        if (NUMBER.matcher(part).matches()) {
            long number = number(part, part);
            return Span.of(number, number);
        }
        Matcher span = SPAN.matcher(part);
        if (!span.matches() || span.group(1) == null) {
            throw new IllegalArgumentException("not a span: \"" + part + "\"");
        }
        long from = number(span.group(1), part);
        long to = span.group(2) == null ? Long.MAX_VALUE : number(span.group(2), part);
        return Span.of(from, to);
    }

    private static long number(String digits, String part) {
        try {
            return Long.parseLong(digits.trim());
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("not a number in \"" + part + "\": " + digits, e);
        }
    }
}
