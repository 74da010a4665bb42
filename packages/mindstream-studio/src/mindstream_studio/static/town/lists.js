// Lists whose numbers stand in the recording, which names nothing that it has not.

/**
 * @template T
 * @param {ArrayLike<T>} list
 * @param {number} i
 */
export const at = (list, i) => /** @type {T} */ (list[i]);
