// Unpack the data of a saved page.

/**
 * Decode base64, decompress (deflate) and parse JSON.
 * @param {string} text
 */
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
