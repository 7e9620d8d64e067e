package org.example.spanset;

import java.util.HashSet;
import java.util.Set;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs test classes and prints a line per test, in the style of Gradle's console. */
public final class ConsoleRunner extends RunListener {
    private final Set<Description> failed = new HashSet<>();

    public static void main(String[] names) throws ClassNotFoundException {
        JUnitCore core = new JUnitCore();
        core.addListener(new ConsoleRunner());
        Class<?>[] classes = new Class<?>[names.length];
        for (int i = 0; i < names.length; i++) {
            classes[i] = Class.forName(names[i]);
        }
        Result result = core.run(classes);
        System.out.println(result.getRunCount() + " tests, " + result.getFailureCount() + " not as they should");
        System.exit(result.wasSuccessful() ? 0 : 1);
    }

    @Override
    public void testFailure(Failure failure) {
        failed.add(failure.getDescription());
    }

    @Override
    public void testFinished(Description test) {
        String name = test.getTestClass().getSimpleName() + " > " + test.getMethodName();
        System.out.println(name + (failed.contains(test) ? " FAILED" : " PASSED"));
    }

    @Override
    public void testRunFinished(Result result) {
        for (Failure failure : result.getFailures()) {
            System.out.println();
            System.out.println(failure.getTestHeader());
            System.out.println(failure.getTrimmedTrace());
        }
    }
}
