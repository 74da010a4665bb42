// The recording: unpacked, its timelines with whole steps. A timeline's entries begin with the step from which they hold.

const byId = (id) => document.getElementById(id);

/** Make an element. Texts become text nodes: what residents wrote is never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "onclick") element.addEventListener("click", value);
    else if (name === "hue") element.style.setProperty("--hue", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A text that somebody wrote: in its own direction, without changing that of what stands around it. */
const said = (text, className) => make("bdi", className ? { class: className } : {}, text);

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const TIMELINES = ["acts", "days", "plans", "seen", "decisions", "talks", "reflections", "places", "records"];

function addUp(timeline) {
  let step = 0;
  for (const entry of timeline) entry[0] = step += entry[0];
}

/** The index of the last entry that holds at a step; -1: none does yet. */
function lastAt(timeline, step) {
  let low = 0, high = timeline.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline[middle][0] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const entryAt = (timeline, step) => timeline[lastAt(timeline, step)] ?? null;

const LETTERS = { R: [1, 0], L: [-1, 0], D: [0, 1], U: [0, -1], S: [0, 0] };
const walks = new Map();

/** The spots of a walk, one a step: `12,7:R3D12`, or `;x,y` where a step leads to no neighbour. */
function readWalk(text) {
  if (walks.has(text)) return walks.get(text);
  const [head, runs] = text.split(":");
  const spots = [head.split(",").map(Number)];
  for (const [, letter, count, x, y] of runs.matchAll(/([RLDUS])(\d{1,6})|;(-?\d{1,9}),(-?\d{1,9})/g)) {
    if (!letter) spots.push([Number(x), Number(y)]);
    for (let i = 0; letter && i < Number(count); i++) {
      const [fromX, fromY] = spots[spots.length - 1];
      spots.push([fromX + LETTERS[letter][0], fromY + LETTERS[letter][1]]);
    }
  }
  walks.set(text, spots);
  return spots;
}

/** Two letters for somebody: of the first and the last name, or the first two that tell it from who has the same. */
function initialsOf(person, people) {
  const letters = ({ name }) => name.trim().split(/\s+/).map((word) => [...word]);
  const ends = (each) => [letters(each)[0], letters(each).slice(1).pop() ?? []].map((word) => word[0] ?? "").join("");
  const first = letters(person)[0] ?? [], same = people.filter((each) => each !== person && ends(each) === ends(person));
  const at = first.findIndex((letter, i) => i > 0 && same.every((each) => letters(each)[0][i] !== letter));
  return same.length && at > 0 ? first[0] + first[at] : ends(person);
}

function prepare(recording) {
  addUp(recording.things);
  recording.people.forEach((person, number) => {
    person.number = number;
    for (const name of TIMELINES) addUp(person[name]);
    person.hue = Math.round((number * 137.5) % 360);
  });
  recording.people.forEach((person) => { person.initials = initialsOf(person, recording.people); });
  recording.children = recording.places.map(() => []);
  recording.places.forEach(([parent], number) => parent >= 0 && recording.children[parent].push(number));
  if (recording.tiles) {
    recording.cells = new Uint16Array(recording.size[0] * recording.size[1]);
    let cell = 0;
    for (let i = 0; i < recording.tiles.length; i += 2) {
      recording.cells.fill(recording.tiles[i], cell, cell += recording.tiles[i + 1]);
    }
  }
  recording.feed = happenings(recording);
  recording.feedSteps = recording.feed.map((each) => [each.step]);
  return recording;
}

/** Everything worth a headline, in order: {step, kind, who, text, detail}. A talk stands in two lives and is told once. */
function happenings({ people, things, texts, places }) {
  const feed = [];
  for (const person of people) {
    for (const [step, other, , lines] of person.talks) {
      const first = lines.length ? lines[0][0] : person.number;
      if (first === person.number || other < 0) feed.push({ step, kind: "talk", who: [person.number, other], lines });
    }
    for (const [step, , what, , why, because] of person.acts) {
      if (WHYS[why] === "react") feed.push({ step, kind: "reaction", who: [person.number], text: texts[what], because: texts[because] });
    }
    for (const [step, thoughts] of person.reflections) {
      const drawn = thoughts.map((number) => texts[person.records[number][2]]);
      if (drawn.length) feed.push({ step, kind: "reflection", who: [person.number], text: drawn[0], more: drawn.slice(1) });
    }
  }
  for (const [step, place, condition, by] of things) {
    const name = place < 0 ? "something" : places[place][1];
    const state = texts[condition] || "as it should be";
    feed.push({ step, kind: "thing", who: by < 0 ? [] : [by], place, text: `${name}: ${state}` });
  }
  return feed.sort((a, b) => a.step - b.step || a.who[0] - b.who[0]);
}

const WHYS = ["", "plan", "talk", "wait", "react"];
