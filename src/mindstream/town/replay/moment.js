// What held at a step: where somebody was, what it did and planned, what it could see. Only looked up, never worked out.

let R = null; // the recording

const minuteOf = (step) => Math.floor((((R.start + step * R.seconds) / 60) % 1440 + 1440) % 1440);
const whenOf = (step) => new Date((R.start + step * R.seconds) * 1000);
const two = (number) => String(number).padStart(2, "0");
const clockOf = (minute) => `${two(Math.floor(minute / 60) % 24)}:${two(minute % 60)}`;
const timeOf = (step) => clockOf(minuteOf(step));
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: "UTC" });
const SHORT_DATE = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const shortDayOf = (step) => SHORT_DATE.format(whenOf(step));
const dayOf = (step) => DAY.format(whenOf(step));
const momentOf = (step) => `${SHORT_DAY.format(whenOf(step))} ${timeOf(step)}`;
const textOf = (number) => R.texts[number] ?? "";

const actAt = (person, step) => entryAt(person.acts, step);

function spotAt(person, step) {
  const act = actAt(person, step);
  if (!act) return person.home;
  const walk = readWalk(textOf(act[7]));
  return walk[Math.max(0, Math.min(step - act[0], walk.length - 1))];
}

const isWalking = (act, step) => Boolean(act) && step - act[0] < readWalk(textOf(act[7])).length - 1;

/** Where a spot is on the map. */
function pointOf([x, y]) {
  if (R.cells) return [x + 0.5, y + 0.5];
  const middle = (i) => [R.boxes[i][1] + R.boxes[i][3] / 2, R.boxes[i][2] + R.boxes[i][4] / 2];
  if (y === 0) return middle(Math.min(x, R.boxes.length - 1));
  const [from, to, steps] = R.roads[y - 1];
  const [a, b] = [middle(from), middle(to)];
  return [a[0] + ((b[0] - a[0]) * x) / steps, a[1] + ((b[1] - a[1]) * x) / steps];
}

/** The number of the narrowest place at a spot; 0: none but the world. */
function placeAt([x, y]) {
  if (R.cells) return x < 0 || y < 0 || x >= R.size[0] || y >= R.size[1] ? 0 : R.cells[y * R.size[0] + x];
  return y === 0 ? R.boxes[Math.min(x, R.boxes.length - 1)][0] : 0;
}

/** The places around a place, itself the last, without the world. */
function around(place) {
  const found = [];
  for (let at = place; at > 0; at = R.places[at][0]) found.unshift(at);
  return found;
}

const arenaOf = (place) => around(place).slice(0, 2).pop() ?? 0;
const isIn = (place, outer) => around(place).includes(outer);
const nameOf = (place) => (place > 0 ? R.places[place][1] : R.town);
const wordsOf = (place) => (place > 0 ? around(place).reverse().map(nameOf).join(", ") : "");

/** In which condition a thing is, in words; "": as it should be. */
function conditionOf(place, step) {
  for (let i = lastAt(R.things, step); i >= 0; i--) if (R.things[i][1] === place) return textOf(R.things[i][2]);
  return "";
}

/** The day's plan, [start, end, what, place, asleep] in minutes. */
function planAt(person, step) {
  const entry = entryAt(person.plans, step);
  return (entry ? entry[1] : []).map((number) => R.blocks[number]).map(([start, minutes, what, place, asleep]) => (
    { start, end: start + minutes, what: textOf(what), place, asleep }
  ));
}

/** Whether somebody awake has a spot in sight: in its own arena, within its vision; without tiles: at the same place. */
function canSee(person, spot, step) {
  const act = actAt(person, step);
  if (act && act[6]) return false;
  const here = spotAt(person, step);
  if (!R.cells) return here[1] === spot[1] && (here[1] === 0 ? here[0] === spot[0] : Math.abs(here[0] - spot[0]) <= R.vision);
  const far = Math.max(Math.abs(here[0] - spot[0]), Math.abs(here[1] - spot[1]));
  return far <= R.vision && arenaOf(placeAt(here)) === arenaOf(placeAt(spot));
}

/** What somebody believes of the others: where each was when it was last noticed, {number: {step, what}}. */
function lastNoticed(person, step) {
  const noticed = new Map();
  for (let i = lastAt(person.seen, step); i >= 0; i--) {
    const [at, who, , what] = person.seen[i];
    if (who >= 0 && !noticed.has(who)) noticed.set(who, { step: at, what: textOf(what) });
  }
  return noticed;
}

const knownPlaces = (person, step) => {
  const known = new Set([0]);
  for (const [at, places] of person.places) if (at <= step) places.forEach((place) => around(place).forEach((each) => known.add(each)));
  return known;
};

const GLYPHS = [
  ["sleep", "😴"], ["talk", "💬"], ["chat", "💬"], ["breakfast", "🍳"], ["lunch", "🥪"], ["dinner", "🍲"], ["eat", "🍽️"], ["cook", "🍳"],
  ["shower", "🚿"], ["brush", "🪥"], ["coffee", "☕"], ["tea", "☕"], ["drink", "🥤"], ["paint", "🎨"], ["draw", "✏️"], ["music", "🎵"],
  ["piano", "🎹"], ["guitar", "🎸"], ["compos", "🎼"], ["writ", "✍️"], ["read", "📖"], ["study", "📚"], ["class", "🎓"], ["teach", "🎓"],
  ["research", "🔬"], ["garden", "🌱"], ["plant", "🌱"], ["walk", "🚶"], ["shop", "🛒"], ["customer", "🛎️"], ["clean", "🧹"], ["repair", "🔧"],
  ["fix", "🔧"], ["tool", "🔧"], ["film", "🎬"], ["photo", "📷"], ["computer", "💻"], ["code", "💻"], ["relax", "🛋️"], ["party", "🎉"],
  ["decorat", "🎈"], ["plan", "🗒️"], ["work", "💼"], ["wait", "⏳"], ["dress", "👕"], ["get ready", "👕"],
];

function glyphOf(act, step) {
  if (!act) return "";
  const what = textOf(act[2]).toLowerCase();
  if (!act[6] && isWalking(act, step)) return "🚶";
  const found = GLYPHS.map(([word, glyph]) => [what.lastIndexOf(word), glyph]).filter(([at]) => at >= 0).sort((a, b) => b[0] - a[0]);
  return found.length ? found[0][1] : "";
}

/** What is done in a word or two. */
const shortOf = (act) => [...textOf(act[2]).split("(")[0].trim()].slice(0, 40).join("");
