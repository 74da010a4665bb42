// What stands in a saved page, read.

/**
 * Unpack JSON, deflated, in base64.
 * @param {string} text
 */
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
