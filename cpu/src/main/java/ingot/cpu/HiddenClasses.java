package ingot.cpu;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/// Turns class bytes into an object: a hidden class each, unloaded with its last instance.
final class HiddenClasses {
    private HiddenClasses() {}

    static <T> T instance(byte[] bytes, Class<T> type) {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup().defineHiddenClass(bytes, true);
            return type.cast(lookup.findConstructor(lookup.lookupClass(), MethodType.methodType(void.class))
                    .invoke());
        } catch (Throwable e) {
            throw new IllegalStateException("cannot define generated code for " + type.getSimpleName(), e);
        }
    }
}
