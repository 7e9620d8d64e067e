package org.example.spanset;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;

import java.math.BigInteger;
import org.junit.Test;

public class SpanSetTest {
    private static SpanSet set(String text) {
        return SpanSet.parse(text);
    }

    @Test
    public void touchingSpansAreMerged() {
        assertEquals("1-6", new SpanSet().add(1, 3).add(5, 6).add(4).toString());
    }

    @Test
    public void overlappingSpansAreMerged() {
        assertEquals("1-20", set("1-5,10-12,18-20").add(3, 19).toString());
    }

    @Test
    public void addingInsideChangesNothing() {
        assertEquals("1-10", set("1-10").add(4, 5).toString());
    }

    @Test
    public void removingMakesAHole() {
        assertEquals("1-4,8-10", set("1-10").remove(5, 7).toString());
    }

    @Test
    public void removingAcrossSpans() {
        assertEquals("1-2,9-12", set("1-3,5,7-12").remove(3, 8).toString());
        assertTrue(set("1-3,5").remove(0, 9).isEmpty());
    }

    @Test
    public void membership() {
        SpanSet set = set("1-3,7");
        assertTrue(set.contains(1) && set.contains(3) && set.contains(7));
        assertFalse(set.contains(0) || set.contains(4) || set.contains(8));
        assertTrue(set.containsAll(Span.of(2, 3)));
        assertFalse(set.containsAll(Span.of(3, 7)));
    }

    @Test
    public void complementHasTheGaps() {
        assertEquals("(-0),4-6,8-", set("1-3,7").complement().toString());
        assertEquals("(all)", new SpanSet().complement().toString());
    }

    @Test
    public void intersection() {
        assertEquals("3,5-6", set("1-3,5-8").intersection(set("3-6")).toString());
    }

    @Test
    public void sizeMayExceedALong() {
        assertEquals(BigInteger.valueOf(4), set("1-3,7").size());
        assertEquals(BigInteger.ONE.shiftLeft(63), set("0-").size());
    }

    @Test
    public void equalityIsByContents() {
        assertEquals(set("5,1-4"), set("1-5"));
        assertNotEquals(set("1-4"), set("1-5"));
    }
}
