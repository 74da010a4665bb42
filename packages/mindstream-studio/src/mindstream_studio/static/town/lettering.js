// Text on a canvas: measured once, broken into lines, and cut if it is too long.

const MOST = 4000; // maximum cached measurements

export class Lettering {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    /** @type {Map<string, number>} */
    this.widths = new Map();
    /** @type {Map<string, string[]>} */
    this.broken = new Map();
  }

  /**
   * @param {string} text
   * @param {string} font
   */
  width(text, font) {
    const key = font + text, known = this.widths.get(key);
    if (known !== undefined) return known;
    if (this.widths.size > MOST) this.widths.clear();
    this.context.font = font;
    const width = this.context.measureText(text).width;
    this.widths.set(key, width);
    return width;
  }

  /**
   * Break a text into lines no wider than `widest` pixels; text that exceeds the last line is cut.
   * @param {string} text
   * @param {string} font
   * @param {number} widest
   * @param {number} most  lines
   */
  lines(text, font, widest, most) {
    const short = [...text.trim()].slice(0, 400).join(""), key = `${font} ${widest} ${most} ${short}`, known = this.broken.get(key);
    if (known) return known;
    if (this.broken.size > MOST) this.broken.clear();
    const lines = this.fill(short.split(/\s+/), font, widest, most);
    this.broken.set(key, lines);
    return lines;
  }

  /**
   * @param {string[]} words
   * @param {string} font
   * @param {number} widest
   * @param {number} most
   */
  fill(words, font, widest, most) {
    /** @type {string[]} */
    const lines = [];
    for (const [i, word] of words.entries()) {
      const last = lines.length - 1, longer = last < 0 ? word : `${lines[last]} ${word}`;
      if (last >= 0 && this.width(longer, font) <= widest) lines[last] = longer;
      else if (lines.length < most) lines.push(this.cut(word, font, widest));
      else {
        lines[last] = this.cut(`${lines[last]} ${words.slice(i).join(" ").slice(0, 60)}`, font, widest);
        break;
      }
    }
    return lines;
  }

  /**
   * @param {string} text
   * @param {string} font
   * @param {number} widest
   */
  cut(text, font, widest) {
    if (this.width(text, font) <= widest) return text;
    const letters = [...text];
    let low = 0, high = letters.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      this.context.font = font;
      if (this.context.measureText(`${letters.slice(0, middle).join("")}…`).width <= widest) low = middle;
      else high = middle - 1;
    }
    return `${letters.slice(0, low).join("").trimEnd()}…`;
  }
}
