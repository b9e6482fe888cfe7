package ingot.train;

import ingot.nn.CrossEntropy;
import ingot.runtime.Executor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// What is expected of examples.
sealed interface Targets {
    /// Those of some examples.
    Targets select(int[] indices);

    /// Writes what is expected of an example into a row of the input `targets`, and how much it counts into `weights`
    /// if there are any; returns how much that is in all.
    double write(int index, Executor executor, int row, int length, float @Nullable [] classWeights);

    /// One class each.
    record Classes(int[] of) implements Targets {
        @Override
        public Targets select(int[] indices) {
            return new Classes(IntStream.of(indices).map(i -> of[i]).toArray());
        }

        @Override
        public double write(int index, Executor executor, int row, int length, float @Nullable [] classWeights) {
            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, row, of[index]);
            if (classWeights == null) {
                return 1;
            }
            executor.input("weights").setAtIndex(ValueLayout.JAVA_FLOAT, row, classWeights[of[index]]);
            return classWeights[of[index]];
        }
    }

    /// One number each.
    record Numbers(float[] of) implements Targets {
        @Override
        public Targets select(int[] indices) {
            float[] selected = new float[indices.length];
            for (int i = 0; i < indices.length; i++) {
                selected[i] = of[indices[i]];
            }
            return new Numbers(selected);
        }

        @Override
        public double write(int index, Executor executor, int row, int length, float @Nullable [] classWeights) {
            executor.input("targets").setAtIndex(ValueLayout.JAVA_FLOAT, row, of[index]);
            return 1;
        }
    }

    /// A class per token, `CrossEntropy.IGNORED` for those that do not count.
    record Tags(int[][] of) implements Targets {
        @Override
        public Targets select(int[] indices) {
            return new Tags(Arrays.stream(indices).mapToObj(i -> of[i]).toArray(int[][]::new));
        }

        @Override
        public double write(int index, Executor executor, int row, int length, float @Nullable [] classWeights) {
            MemorySegment targets = executor.input("targets");
            int[] tags = of[index];
            double count = 0;
            for (int t = 0; t < length; t++) {
                int tag = t < tags.length ? tags[t] : CrossEntropy.IGNORED;
                long at = (long) row * length + t;
                float weight = tag == CrossEntropy.IGNORED ? 0 : classWeights == null ? 1 : classWeights[tag];
                targets.setAtIndex(ValueLayout.JAVA_INT, at, tag);
                if (classWeights != null) {
                    executor.input("weights").setAtIndex(ValueLayout.JAVA_FLOAT, at, weight);
                }
                count += weight;
            }
            return count;
        }
    }
}
