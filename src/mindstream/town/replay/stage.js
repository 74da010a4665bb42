// The map: where one looks (pan, zoom, follow), the residents on it, and what of it a resident sees.

const SVG = "http://www.w3.org/2000/svg";
const NEAREST = 14; // so many tiles are shown at least
const NEAR = 14; // pixels a tile from which on words stand over residents

const CALM = matchMedia("(prefers-reduced-motion: reduce)"); // then residents stand from step to step

const stage = {
  view: null, // {x, y, wide}: the part of the map that is shown, in tiles
  moved: false, // whether somebody has looked elsewhere; then a window that changes its size leaves it there
  dots: [],
  names: [],
};

const pixels = () => {
  const box = byId("stage").getBoundingClientRect();
  return [box.width || 1, box.height || 1];
};
const scale = () => pixels()[0] / stage.view.wide;

function buildStage() {
  const svg = byId("map").querySelector("svg");
  stage.svg = svg;
  for (const name of ["night", "fog", "odd", "way", "chosen"]) {
    stage[name] = document.createElementNS(SVG, name === "night" ? "rect" : "path");
    stage[name].setAttribute("class", name);
    svg.append(stage[name]);
  }
  for (const [name, value] of [["x", -500], ["y", -500], ["width", 5000], ["height", 5000]]) stage.night.setAttribute(name, value);
  stage.names = [...svg.querySelectorAll("text")].map((node) => ({ node, base: Number(node.getAttribute("font-size")) || 1.2 }));
  for (const { node, base } of stage.names) node.style.setProperty("--base", `${base}px`);
  stage.dots = R.people.map((person) => {
    const bubble = make("span", { class: "bubble", "aria-hidden": "true" });
    const dot = make("button", { class: "dot", type: "button", hue: person.hue, onclick: () => choose({ who: person.number }) },
      make("span", { class: "face", "aria-hidden": "true" }, said(person.initials)), bubble);
    byId("dots").append(dot);
    return { dot, bubble, at: null, label: "" };
  });
  byId("stage").style.setProperty("--tall", (R.size[1] / R.size[0]).toFixed(3));
  showWhole();
  listen();
  new ResizeObserver(() => (stage.moved ? look(stage.view) : showWhole())).observe(byId("stage"));
}

/** Look at a part of the map; never so far away that the map is lost. */
function look({ x, y, wide }) {
  const [width, height] = pixels();
  const [mapWide, mapHigh] = R.size;
  const widest = Math.max(mapWide, (mapHigh * width) / height) * 1.02;
  wide = Math.min(widest, Math.max(NEAREST, wide));
  const high = (wide * height) / width;
  const within = (start, length, all) => (length >= all ? (all - length) / 2 : Math.min(all - length, Math.max(0, start)));
  stage.view = { x: within(x, wide, mapWide), y: within(y, high, mapHigh), wide, high };
  stage.svg.setAttribute("viewBox", [stage.view.x, stage.view.y, wide, high].map((each) => each.toFixed(3)).join(" "));
  byId("stage").classList.toggle("near", scale() >= NEAR);
  byId("stage").style.setProperty("--dot", `${Math.round(Math.min(34, Math.max(pixels()[0] < 500 ? 16 : 20, scale() * 1.5)))}px`);
  fitNames();
  drawDots(true);
}

/** Names are never huge; the large ones stay readable when all is small, those of narrow houses have no room to grow. */
function fitNames() {
  for (const text of stage.names) {
    const size = text.base * scale();
    text.node.style.setProperty("--times", (size > 15 ? 15 / size : text.base < 1.2 ? 1 : Math.max(1, Math.min(1.5, 7 / size))).toFixed(3));
  }
}

function showWhole() {
  stage.moved = false;
  look({ x: 0, y: 0, wide: Infinity });
}

function zoom(times, [px, py] = pixels().map((each) => each / 2)) {
  const { x, y, wide } = stage.view;
  const [cx, cy] = [x + px / scale(), y + py / scale()];
  const to = Math.max(NEAREST, wide * times);
  stage.moved = true;
  look({ x: cx - (px / pixels()[0]) * to, y: cy - (py / pixels()[0]) * to, wide: to });
}

function lookAt([x, y], wide = stage.view.wide) {
  const [width, height] = pixels();
  stage.moved = true;
  look({ x: x - wide / 2, y: y - (wide * height) / width / 2, wide });
}

function listen() {
  const area = byId("stage"), fingers = new Map();
  let before = null, far = 0;
  const where = (event) => {
    const box = area.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  area.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.0015), where(event));
  }, { passive: false });
  area.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button")) return;
    fingers.set(event.pointerId, where(event));
    [before, far] = [where(event), 0];
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const [from, to] = [fingers.get(event.pointerId), where(event)];
    fingers.set(event.pointerId, to);
    far += Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (others.length) {
      const apart = (at) => Math.hypot(at[0] - others[0][0], at[1] - others[0][1]) || 1;
      zoom(apart(from) / apart(to), others[0]);
    } else if (far > 4) {
      if (state.follow) setFollow(false);
      stage.moved = true;
      look({ ...stage.view, x: stage.view.x - (to[0] - from[0]) / scale(), y: stage.view.y - (to[1] - from[1]) / scale() });
    }
  });
  const end = (event) => {
    if (!fingers.delete(event.pointerId) || event.type !== "pointerup" || far > 4 || !before) return;
    const spot = [stage.view.x + before[0] / scale(), stage.view.y + before[1] / scale()];
    const place = R.cells ? placeAt(spot.map(Math.floor)) : boxAt(spot);
    choose(place > 0 ? { place } : {});
  };
  area.addEventListener("pointerup", end);
  area.addEventListener("pointercancel", end);
  byId("closer").addEventListener("click", () => zoom(0.7));
  byId("farther").addEventListener("click", () => zoom(1 / 0.7));
  byId("whole").addEventListener("click", showWhole);
}

const boxAt = ([x, y]) => (R.boxes.find(([, left, top, wide, high]) => x >= left && x <= left + wide && y >= top && y <= top + high) ?? [0])[0];

/** Where somebody is drawn, between two steps between their spots; as another sees it, where that one last noticed it. */
function placesOfAll() {
  const step = Math.floor(state.t), part = CALM.matches ? 0 : state.t - step;
  const viewer = state.own && state.who !== null ? R.people[state.who] : null;
  const noticed = viewer ? lastNoticed(viewer, step) : null;
  return R.people.map((person) => {
    if (!viewer || person === viewer || canSee(viewer, spotAt(person, step), step)) {
      const [a, b] = [pointOf(spotAt(person, step)), pointOf(spotAt(person, Math.min(step + 1, R.last)))];
      return { at: [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part], spot: spotAt(person, step), how: "" };
    }
    const found = noticed.get(person.number);
    if (!found) return { at: null, how: "unknown" };
    const spot = spotAt(person, found.step);
    return { at: pointOf(spot), spot, how: "remembered", what: found.what, step: found.step };
  });
}

/** Put everybody where they are; who stand on one spot stand around it. */
function drawDots(atOnce = false) {
  if (!stage.dots.length) return;
  const crowd = new Map(), size = scale(), [wide] = pixels(), step = Math.floor(state.t);
  const apart = parseFloat(byId("stage").style.getPropertyValue("--dot")) * (R.cells ? 0.34 : 1);
  placesOfAll().forEach(({ at, spot, how, what, step: seenAt }, number) => {
    const shown = stage.dots[number], person = R.people[number];
    shown.dot.hidden = at === null;
    if (at === null) return;
    const key = spot.join(), nth = crowd.get(key) ?? 0;
    crowd.set(key, nth + 1);
    const [away, turn] = [apart * Math.sqrt(nth), nth * 2.4];
    const to = [(at[0] - stage.view.x) * size + away * Math.cos(turn), (at[1] - stage.view.y) * size + away * Math.sin(turn)];
    const soft = shown.at && !atOnce && !CALM.matches && state.playing && state.speed < 100 ? 0.35 : 1;
    shown.at = shown.at ? shown.at.map((from, axis) => from + (to[axis] - from) * soft) : to;
    label(shown, person, how, what, step, seenAt);
    shown.dot.classList.toggle("left", shown.at[0] < 110);
    shown.dot.classList.toggle("right", shown.at[0] > wide - 110);
    shown.dot.style.transform = `translate(${shown.at[0].toFixed(1)}px, ${shown.at[1].toFixed(1)}px)`;
  });
}

function label(shown, person, how, what, step, seenAt) {
  const act = actAt(person, step), walking = isWalking(act, step);
  const key = [how, what, act && act[0], walking, state.who === person.number, state.who].join("|");
  if (shown.label === key) return;
  shown.label = key;
  const doing = how ? what : act ? textOf(act[2]) : "";
  shown.dot.className = ["dot", how, act && act[6] && !how ? "asleep" : "", act && WHYS[act[4]] === "talk" && !how ? "talks" : "",
    state.who === person.number ? "chosen" : ""].join(" ");
  shown.dot.setAttribute("aria-label", `${person.name}: ${doing}`);
  shown.dot.setAttribute("title", how ? `${person.name}, last noticed ${momentOf(seenAt)}: ${doing}` : `${person.name}: ${doing}`);
  const glyph = how || !act ? "" : glyphOf(act, step);
  shown.bubble.replaceChildren(...[
    glyph && make("span", { class: "glyph" }, glyph),
    act && !how && make("span", { class: "word" }, said(state.who === person.number ? doing : shortOf(act))),
    how && make("span", { class: "word" }, `seen ${timeOf(seenAt)}`),
  ].filter(Boolean));
  shown.bubble.hidden = !shown.bubble.childNodes.length;
}

/** Draw what holds at a step beside the residents: night, the way of the chosen one, what it sees, the chosen place. */
function drawGround(step) {
  const hour = minuteOf(step) / 60;
  const dark = Math.max(0, Math.min(1, hour < 12 ? (7.5 - hour) / 2 : (hour - 18.5) / 2.5));
  stage.night.style.opacity = (dark * 0.42).toFixed(2);
  const person = state.who === null ? null : R.people[state.who];
  const act = person && actAt(person, step);
  const walk = act && isWalking(act, step) ? readWalk(textOf(act[7])).slice(step - act[0]) : [];
  stage.way.setAttribute("d", walk.length ? `M${walk.map((spot) => pointOf(spot).join(" ")).join("L")}` : "");
  stage.fog.setAttribute("d", person && state.own ? fogOf(person, step) : "");
  stage.odd.setAttribute("d", oddThings(step, state.own ? person : null).map((place) => `M${middleOf(place).join(" ")}h.01`).join(""));
  stage.chosen.setAttribute("d", state.place ? outlineOf(state.place) : "");
}

/** The things that are not as they should be; as somebody experienced it, those that it has noticed. */
function oddThings(step, viewer) {
  const now = new Map();
  for (const [at, place, condition] of R.things) if (at <= step && place > 0) now.set(place, textOf(condition));
  const noticed = new Set(viewer ? viewer.seen.filter(([at, who]) => at <= step && who < 0).map((entry) => entry[2]) : []);
  return [...now].filter(([place, condition]) => condition && (!viewer || noticed.has(place))).map(([place]) => place);
}

/** All of the map but what somebody has in sight. */
function fogOf(person, step) {
  const [x, y] = spotAt(person, step), seen = [];
  if (R.cells) {
    for (let j = y - R.vision; j <= y + R.vision; j++) {
      for (let i = x - R.vision; i <= x + R.vision; i++) {
        if (i >= 0 && j >= 0 && i < R.size[0] && j < R.size[1] && canSee(person, [i, j], step)) seen.push(`M${i} ${j}v1h1v-1z`);
      }
    }
  } else if (y === 0 && canSee(person, [x, y], step)) {
    const [, left, top, wide, high] = R.boxes[x];
    seen.push(`M${left} ${top}v${high}h${wide}v${-high}z`);
  }
  return `M-500-500h5000v5000h-5000z${seen.join("")}`;
}

function outlineOf(place) {
  if (!R.cells) {
    return R.boxes.filter(([number]) => isIn(number, place)).map(([, x, y, wide, high]) => `M${x} ${y}h${wide}v${high}h${-wide}z`).join("");
  }
  const [wide, high] = R.size, inside = (x, y) => x >= 0 && y >= 0 && x < wide && y < high && isIn(R.cells[y * wide + x], place);
  let path = "";
  for (let y = 0; y < high; y++) {
    for (let x = 0; x < wide; x++) {
      if (!inside(x, y)) continue;
      if (!inside(x, y - 1)) path += `M${x} ${y}h1`;
      if (!inside(x, y + 1)) path += `M${x} ${y + 1}h1`;
      if (!inside(x - 1, y)) path += `M${x} ${y}v1`;
      if (!inside(x + 1, y)) path += `M${x + 1} ${y}v1`;
    }
  }
  return path;
}

const middles = new Map();

/** The middle of a place on the map. */
function middleOf(place) {
  if (!middles.has(place)) middles.set(place, findMiddle(place));
  return middles.get(place);
}

function findMiddle(place) {
  const points = R.cells
    ? [...R.cells.keys()].filter((cell) => isIn(R.cells[cell], place)).map((cell) => [cell % R.size[0] + 0.5, Math.floor(cell / R.size[0]) + 0.5])
    : R.boxes.filter(([number]) => isIn(number, place) || isIn(place, number)).map(([, x, y, wide, high]) => [x + wide / 2, y + high / 2]);
  return points.length ? [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length) : [R.size[0] / 2, R.size[1] / 2];
}
