// What a recording holds. A timeline is a list of entries in the order of their steps; the first number is the step.

/** @typedef {[number, number]} Spot  a tile; without tiles: see `ground_of` in town/replay.py */
/** @typedef {[number, number]} Point  on the map, in tiles */
/** @typedef {[number, number, number, number, number, number, number, number]} Act  step, length, what, place, why, because, asleep, walk */
/** @typedef {[number, number, number[]]} Day  step, these days, broad strokes */
/** @typedef {[number, number[]]} Plan  step, blocks */
/** @typedef {[number, number, number, number]} Seen  step, who, place, what */
/** @typedef {[number, number, number, number, number, [number, number][], number?]} Decision  step, about, other, p, yes, recalled (record, score), draw */
/** @typedef {[number, number, number, [number, number][]]} Talk  step, other, length, lines (by, text) */
/** @typedef {[number, number[]]} Reflection  step, records */
/** @typedef {[number, number[]]} Known  step, places */
/** @typedef {[number, string, number, number, number]} Memory  step, kind, text, importance, by */
/** @typedef {[number, number, number, number]} Change  step, place, condition, by */
/** @typedef {[number, string, string]} Relation  who (or -1), name, what */

/**
 * @typedef {object} Person
 * @property {string} name
 * @property {number} age
 * @property {string} innate
 * @property {string} learned
 * @property {string} currently
 * @property {string} lifestyle
 * @property {string} routine
 * @property {Relation[]} relations
 * @property {number} lives
 * @property {Spot} home
 * @property {Act[]} acts
 * @property {Day[]} days
 * @property {Plan[]} plans
 * @property {Seen[]} seen
 * @property {Decision[]} decisions
 * @property {Talk[]} talks
 * @property {Reflection[]} reflections
 * @property {Known[]} places
 * @property {Memory[]} records
 * @property {[number, number][]} lived  step, by which person (a text; "": by itself)
 * @property {boolean} [visits]  a visitor: in the town only while a person controls it
 * @property {number} number
 * @property {number} hue
 * @property {string} initials
 */

/**
 * @typedef {object} Picture
 * @property {[string, string][]} grounds  kind, path data
 * @property {string[]} shapes
 * @property {[number, string, string, number, number[]][]} things  place, stuff, outline, shape, middles
 * @property {[number, number, number, string[]][]} names  x, y, size, lines
 */

/**
 * @typedef {object} Happening
 * @property {number} step
 * @property {"talk" | "reaction" | "reflection" | "thing"} kind
 * @property {number[]} who
 * @property {string} text
 * @property {string} because
 * @property {string[]} more
 * @property {[number, number][]} lines
 * @property {number} place
 */

/**
 * @typedef {object} Recording
 * @property {string} town
 * @property {number} start
 * @property {number} seconds
 * @property {number} first
 * @property {number} last
 * @property {number} vision
 * @property {[number, string][]} places  the place around it, its name
 * @property {Person[]} people
 * @property {Change[]} things
 * @property {string[]} texts
 * @property {[number, number, number, number, number][]} blocks  start, minutes, what, place, asleep
 * @property {[number, number]} size
 * @property {Picture} map
 * @property {number[]} [tiles]
 * @property {[number, number, number, number, number][]} [boxes]  place, x, y, width, height
 * @property {[number, number, number][]} [roads]
 * @property {Uint16Array | null} cells
 * @property {number[][]} children
 * @property {Happening[]} feed
 * @property {Map<number, Int32Array>} walks
 * @property {Map<number, Point>} middles
 */

/**
 * @typedef {object} View  a part of the panel
 * @property {HTMLElement} node
 * @property {(step: number) => void} update
 * @property {() => void} [close]
 */

export {};
