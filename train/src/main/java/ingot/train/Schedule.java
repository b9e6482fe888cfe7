package ingot.train;

import ingot.ir.IngotException;

/// The learning rate as a pure function of the step (counted from 0): nothing to save, nothing to drift on resume.
public sealed interface Schedule {
    double at(long step);

    /// The same rate for all steps after the warm-up.
    static Schedule constant(double rate, long warmup) {
        return new Constant(rate, warmup);
    }

    /// Falls in a straight line from `rate` after the warm-up to `floor` at the last step.
    static Schedule linear(double rate, long warmup, long steps, double floor) {
        return new Linear(rate, warmup, steps, floor);
    }

    /// Falls along half a cosine from `rate` after the warm-up to `floor` at the last step (Loshchilov & Hutter 2017,
    /// SGDR, without restarts).
    static Schedule cosine(double rate, long warmup, long steps, double floor) {
        return new Cosine(rate, warmup, steps, floor);
    }

    /// The rate after `warmup` steps that rise in a straight line: step s < warmup has rate · (s + 1) / warmup.
    record Constant(double rate, long warmup) implements Schedule {
        public Constant {
            check(rate, warmup, Long.MAX_VALUE, 0);
        }

        @Override
        public double at(long step) {
            return rate * rise(step, warmup);
        }
    }

    record Linear(double rate, long warmup, long steps, double floor) implements Schedule {
        public Linear {
            check(rate, warmup, steps, floor);
        }

        @Override
        public double at(long step) {
            return step < warmup
                    ? rate * rise(step, warmup)
                    : floor + (rate - floor) * (1 - progress(step, warmup, steps));
        }
    }

    record Cosine(double rate, long warmup, long steps, double floor) implements Schedule {
        public Cosine {
            check(rate, warmup, steps, floor);
        }

        @Override
        public double at(long step) {
            return step < warmup
                    ? rate * rise(step, warmup)
                    : floor + (rate - floor) * 0.5 * (1 + StrictMath.cos(Math.PI * progress(step, warmup, steps)));
        }
    }

    private static double rise(long step, long warmup) {
        return step < warmup ? (step + 1) / (double) warmup : 1;
    }

    private static double progress(long step, long warmup, long steps) {
        return Math.min(1, (step - warmup) / (double) Math.max(1, steps - warmup));
    }

    private static void check(double rate, long warmup, long steps, double floor) {
        if (!(rate >= 0) || rate == Double.POSITIVE_INFINITY) {
            throw new IngotException("learning rate: expected a number of at least 0, got " + rate);
        }
        if (warmup < 0 || warmup > steps) {
            throw new IngotException("warm-up: expected 0 to " + steps + " steps, got " + warmup);
        }
        if (!(floor >= 0) || floor > rate) {
            throw new IngotException("learning rate floor: expected 0 to " + rate + ", got " + floor);
        }
    }
}
