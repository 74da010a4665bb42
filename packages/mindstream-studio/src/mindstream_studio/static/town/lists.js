// Access to lists by numbers from the recording, which are always valid.

/**
 * @template T
 * @param {ArrayLike<T>} list
 * @param {number} i
 */
export const at = (list, i) => /** @type {T} */ (list[i]);
