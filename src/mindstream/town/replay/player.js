// What is chosen, the clock that runs, the slider, the keys and the address of a moment.

const SPEEDS = [1, 10, 60, 300];
const state = { t: 0, playing: false, speed: 60, who: null, place: 0, own: false, follow: false, tab: "now", list: "feed" };
const NARROW = matchMedia("(max-width: 760px)");
let view = null, drawn = -1, before = 0, linked = 0;

function choose({ who = null, place = 0 }) {
  Object.assign(state, { who, place });
  if (who === null) Object.assign(state, { own: false, follow: false });
  openPanel();
  refresh(true);
}

function openPanel() {
  const lists = { feed: ["Happenings", feedView], people: ["People", peopleView], places: ["Places", placesView] };
  view = state.who !== null ? residentView(state.who) : state.place ? placeView(state.place) : tabbed(lists, state.list, (name) => { state.list = name; });
  byId("panel").replaceChildren(view.node);
  byId("panel").scrollTop = 0;
  byId("panel").classList.toggle("detail", state.who !== null || state.place > 0);
}

function setFollow(value) {
  state.follow = value && state.who !== null;
  byId("follow")?.setAttribute("aria-pressed", state.follow);
  if (state.follow) lookAt(pointOf(spotAt(R.people[state.who], Math.floor(state.t))), Math.min(stage.view.wide, 44));
  refresh(true);
}

function setOwn(value) {
  state.own = value;
  openPanel();
  refresh(true);
}

function seek(t) {
  state.t = Math.max(R.first, Math.min(R.last, t));
  if (state.t >= R.last) setPlaying(false);
  refresh(true);
}

function setPlaying(value) {
  state.playing = value;
  byId("play").classList.toggle("playing", value);
  byId("play").setAttribute("aria-label", value ? "Pause" : "Play");
  if (value && state.t >= R.last) state.t = R.first;
  before = performance.now();
  if (value) requestAnimationFrame(run);
  else refresh(true);
}

function setSpeed(speed) {
  state.speed = speed;
  for (const button of byId("speeds").children) button.setAttribute("aria-pressed", Number(button.value) === speed);
}

function run(now) {
  if (!state.playing) return;
  state.t = Math.min(R.last, state.t + ((Math.min(now - before, 500) / 1000) * state.speed) / R.seconds);
  before = now;
  refresh(false);
  if (state.t >= R.last) setPlaying(false);
  else requestAnimationFrame(run);
}

/** Show the moment: residents in every frame, everything else once a step, and not more often than eyes can follow. */
function refresh(all) {
  const step = Math.floor(state.t), now = performance.now();
  if (state.follow) {
    const [found] = [placesOfAll()[state.who]];
    lookAt(found.at);
  } else drawDots(all);
  if (!all && (step === drawn || now - linked < 120)) return;
  [drawn, linked] = [step, now];
  byId("date").textContent = NARROW.matches ? shortDayOf(step) : dayOf(step);
  byId("time").textContent = timeOf(step);
  byId("slider").value = step;
  byId("slider").setAttribute("aria-valuetext", `${dayOf(step)}, ${timeOf(step)}`);
  const person = state.who === null ? null : R.people[state.who];
  byId("mode").hidden = !(person && state.own);
  if (person) byId("mode").replaceChildren("As ", said(person.name), " experienced it: in the light what is in sight, pale what was seen before.");
  drawGround(step);
  view.update(step);
  writeAddress(all && !state.playing);
}

/** The address of a moment, of somebody or of a place. */
function addressOf({ t = null, who = null, place = 0, own = false }) {
  const parts = new URLSearchParams();
  if (t !== null) parts.set("t", whenOf(t).toISOString().slice(0, 19));
  if (who !== null) parts.set("who", R.people[who].name);
  if (place) parts.set("place", around(place).map(nameOf).join(":"));
  if (own) parts.set("see", "own");
  return `#${parts}`;
}

/** Let the page's address name this moment, so that it can be handed on. */
function writeAddress(inPlace) {
  const hash = addressOf({ ...state, t: Math.floor(state.t) });
  byId("link").setAttribute("href", hash);
  try {
    if (inPlace && location.hash !== hash) history.replaceState(null, "", hash);
  } catch { /* some browsers allow it only so often */ }
}

/** Open the moment that the address names: t (a moment of the town, or a step), who, place, see=own, tab, list. */
function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const t = parts.get("t"), who = R.people.findIndex((person) => person.name === parts.get("who"));
  const place = R.places.findIndex((_, number) => number > 0 && around(number).map(nameOf).join(":") === parts.get("place"));
  const at = t === null ? NaN : /^\d{1,9}$/.test(t) ? Number(t) : (Date.parse(`${t}${/\dZ?$/.test(t) && !t.endsWith("Z") ? "Z" : ""}`) / 1000 - R.start) / R.seconds;
  const lost = [t !== null && !Number.isFinite(at) && "moment", parts.get("who") !== null && who < 0 && "person", parts.get("place") !== null && place < 0 && "place"];
  if (lost.some(Boolean)) notify(`The link names a ${lost.filter(Boolean).join(" and a ")} that is not in this recording.`);
  state.t = Number.isFinite(at) ? Math.max(R.first, Math.min(R.last, at)) : state.t;
  for (const name of ["tab", "list"]) if (parts.get(name)) state[name] = parts.get(name);
  state.own = parts.get("see") === "own" && who >= 0;
  choose(who >= 0 ? { who } : place > 0 ? { place } : {});
  if (who >= 0 && parts.get("follow") !== null) setFollow(true);
}

/** Where to begin: shortly before the first gets up, where most are asleep at first. */
function firstMorning() {
  const sleepers = R.people.filter((person) => person.acts[0]?.[6]);
  const ups = sleepers.flatMap((person) => person.acts.filter((act) => !act[6]).slice(0, 1).map((act) => act[0]));
  return sleepers.length * 2 < R.people.length ? R.first : Math.max(R.first, Math.min(R.last, ...ups.map((step) => step - 30)));
}

/** Say something for a moment; what went wrong stays. */
function notify(text) {
  const notice = byId("notice");
  notice.textContent = text;
  notice.className = "passing";
  setTimeout(() => { if (notice.textContent === text) notice.textContent = ""; }, 4000);
}

async function copyLink(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  writeAddress(true);
  try {
    await navigator.clipboard.writeText(event.currentTarget?.href ?? byId("link").href);
    notify("The link to this moment is copied.");
  } catch {
    notify("This page’s address is the link to this moment.");
  }
}

function toHappening(way) {
  const step = Math.floor(state.t), own = R.feed.filter((each) => state.who === null || concerns(each, state.who));
  const found = way > 0 ? own.find((each) => each.step > step) : own.findLast((each) => each.step < step);
  if (found) seek(found.step);
}

function buildTimeline() {
  Object.assign(byId("slider"), { min: R.first, max: R.last, step: 1 });
  byId("slider").addEventListener("input", (event) => seek(Number(event.target.value)));
  const length = R.last - R.first, hour = 3600 / R.seconds, place = (step) => `${(100 * (step - R.first)) / length}%`;
  const hours = length / hour, every = [1, 2, 3, 6, 12, 24].find((each) => hours / each <= (byId("hours").clientWidth || 800) / 56) ?? 24;
  const bins = 160, counts = new Array(bins).fill(0);
  for (const each of R.feed) if (each.step >= R.first && each.step < R.last) counts[Math.floor(((each.step - R.first) / length) * bins)]++;
  const most = Math.max(1, ...counts);
  counts.forEach((count, i) => {
    if (!count) return;
    const mark = make("i");
    Object.assign(mark.style, { left: `${(100 * i) / bins}%`, width: `${90 / bins}%`, height: `${20 + (80 * count) / most}%` });
    byId("marks").append(mark);
  });
  const offset = (60 - (minuteOf(R.first) % 60)) % 60 * 60 / R.seconds;
  for (let step = R.first + offset; step <= R.last; step += hour) {
    const at = Math.round(minuteOf(Math.round(step)) / 60) % 24;
    const tick = make("i", { class: at === 0 ? "midnight" : at % every === 0 ? "major" : "" });
    tick.style.left = place(step);
    if (at % every === 0) tick.append(make("span", {}, at === 0 ? SHORT_DAY.format(whenOf(Math.round(step))) : two(at)));
    byId("hours").append(tick);
  }
}

function buildKeys() {
  const keys = {
    " ": () => setPlaying(!state.playing), ArrowRight: (event) => seek(state.t + (event.shiftKey ? 3600 : 60) / R.seconds),
    ArrowLeft: (event) => seek(state.t - (event.shiftKey ? 3600 : 60) / R.seconds), "[": () => toHappening(-1), "]": () => toHappening(1),
    ArrowUp: () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(state.speed) + 1)]),
    ArrowDown: () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf(state.speed) - 1)]),
    Escape: () => choose({}), f: () => setFollow(!state.follow), d: changeTheme, 0: showWhole, "+": () => zoom(0.7), "-": () => zoom(1 / 0.7),
  };
  document.addEventListener("click", (event) => { // a button that a pointer has pressed does not keep the space bar
    if (event.detail > 0) event.target.closest("button, summary")?.blur();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=range]), select, textarea");
    const pressing = event.key === " " && event.target.closest("button, summary");
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape") || pressing || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key](event);
  });
}

/** Light or dark, whatever the system prefers: the rules for dark, the page's and the map's, hold always or never. */
function changeTheme() {
  const dark = !(document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (!(rule instanceof CSSMediaRule)) continue;
      rule.isForDark ??= rule.media.mediaText.includes("prefers-color-scheme: dark");
      if (rule.isForDark) rule.media.mediaText = dark ? "all" : "not all";
    }
  }
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    byId("notice").textContent = "This browser is too old to unpack the recording: one of 2023 or later is wanted.";
    return;
  }
  R = prepare(await unpack(byId("recording").textContent));
  state.t = firstMorning();
  for (const speed of SPEEDS) byId("speeds").append(make("button", { type: "button", value: speed, title: `${speed} times as fast as the town's clock`, onclick: () => setSpeed(speed) }, `${speed}×`));
  setSpeed(state.speed);
  buildStage();
  buildTimeline();
  buildKeys();
  byId("play").addEventListener("click", () => setPlaying(!state.playing));
  byId("earlier").addEventListener("click", () => toHappening(-1));
  byId("later").addEventListener("click", () => toHappening(1));
  byId("theme").addEventListener("click", changeTheme);
  byId("link").addEventListener("click", copyLink);
  addEventListener("hashchange", readAddress);
  readAddress();
  document.documentElement.dataset.ready = "";
}

start().catch((error) => { byId("notice").textContent = `The recording cannot be played: ${error.message}`; });
