package org.example.spanset;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import org.junit.Test;

public class SpanParserTest {
    private static String read(String text) {
        return SpanParser.parse(text).toString();
    }

    @Test
    public void numbersAndSpans() {
        assertEquals("[1, 3-5]", read("1, 3 - 5"));
        assertEquals("[]", read("  "));
    }

    @Test
    public void negativeNumbers() {
        assertEquals("[-5, -3--1]", read("-5,-3--1"));
    }

    @Test
    public void openEnds() {
        assertEquals("[(-5), 7-]", read("(-5),7-"));
        assertEquals(Long.MAX_VALUE, SpanParser.parse("7-").get(0).to());
    }

    @Test
    public void nonsenseIsRefused() {
        for (String text : new String[] {"x", "1,,2", "5-1", "-", "99999999999999999999"}) {
            assertThrows(text, IllegalArgumentException.class, () -> SpanParser.parse(text));
        }
    }
}
