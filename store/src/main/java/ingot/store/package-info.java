/// Weight stores, safetensors, checksums, generations.
@NullMarked
package ingot.store;

import org.jspecify.annotations.NullMarked;
