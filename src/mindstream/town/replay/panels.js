// The panel's lists: what happened, who lives here, the places. A view is {node, update(step)}.

const KINDS = { talk: ["💬", "Talks"], reaction: ["⚡", "Reactions"], reflection: ["💭", "Thoughts"], thing: ["🔧", "Things"] };
const SHOWN = 60; // entries of a list; more on demand

/** A list that shows its newest entries; `draw` makes one, `find` gives all that hold. */
function growing(draw, nothing) {
  const list = make("ol", { class: "list" });
  const more = make("button", { type: "button", class: "more", onclick: () => { most += SHOWN; render(); } }, "Show more");
  let most = SHOWN, all = [];
  const render = () => {
    list.replaceChildren(...all.slice(0, most).map(draw));
    more.hidden = all.length <= most;
    if (!all.length) list.append(make("li", { class: "nothing" }, nothing));
  };
  return { node: make("div", {}, list, more), show(found) { all = found; render(); }, reset() { most = SHOWN; } };
}

const chip = (person) => make("span", { class: "chip", hue: person.hue, "aria-hidden": "true" }, said(person.initials));

/** A link to another view of this page; it flows with the text around it, as a button does not. */
const link = (className, parts, go, ...children) => make("a", { class: className, href: addressOf(parts), onclick: (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go();
} }, ...children);

const personLink = (number) => (number < 0 ? make("span", {}, "somebody")
  : link("name", { who: number }, () => choose({ who: number }), said(R.people[number].name)));

const timeLink = (step) => link("time", { t: step }, () => seek(step), momentOf(step));

const placeLink = (place) => link("name", { place }, () => choose({ place }), said(wordsOf(place)));

function linesOf(lines) {
  return make("ol", { class: "lines" }, lines.map(([by, text]) => make("li", { hue: by < 0 ? 0 : R.people[by].hue },
    make("b", {}, said(by < 0 ? "somebody" : R.people[by].name.split(" ")[0])), " ", said(textOf(text)))));
}

function headline(happening) {
  const [first, other] = happening.who;
  const names = { talk: () => [personLink(first), " and ", personLink(other), " talk"] };
  const subject = (names[happening.kind] ?? (() => [first === undefined ? "Somebody who watches" : personLink(first)]))();
  const body = {
    talk: () => make("details", {}, make("summary", {}, said(textOf(happening.lines[0]?.[1] ?? -1))), linesOf(happening.lines)),
    reaction: () => make("p", {}, said(happening.because || ""), happening.because ? " → " : "", said(happening.text)),
    reflection: () => make("p", {}, said(happening.text), happening.more?.length ? ` (and ${happening.more.length} more)` : ""),
    thing: () => make("p", {}, said(happening.text), happening.place > 0 ? make("small", {}, " ", placeLink(happening.place)) : null),
  }[happening.kind]();
  return make("li", { class: `happening ${happening.kind}` }, make("span", { class: "kind", "aria-hidden": "true" }, KINDS[happening.kind][0]),
    make("div", {}, make("p", { class: "head" }, subject, " ", timeLink(happening.step)), body));
}

/** Whether a resident took part in a happening or noticed it. */
const concerns = (happening, number) => happening.who.includes(number);

function feedView() {
  const shown = new Set(Object.keys(KINDS));
  const list = growing(headline, "Nothing has happened yet.");
  let key = "";
  const filters = make("div", { class: "filters", role: "group", "aria-label": "What to show" }, Object.entries(KINDS).map(([kind, [glyph, name]]) => {
    const button = make("button", { type: "button", "aria-pressed": "true", onclick: () => {
      if (!shown.delete(kind)) shown.add(kind);
      button.setAttribute("aria-pressed", shown.has(kind));
      key = "";
      view.update(Math.floor(state.t));
    } }, `${glyph} ${name}`);
    return button;
  }));
  const view = {
    node: make("div", {}, filters, list.node),
    update(step) {
      const until = lastAt(R.feedSteps, step) + 1;
      if (key === (key = String(until))) return;
      list.show(R.feed.slice(0, until).filter((each) => shown.has(each.kind)).reverse());
    },
  };
  return view;
}

function row(person, step) {
  const act = actAt(person, step), place = act && act[3] > 0 ? arenaOf(act[3]) : 0;
  return make("li", {}, make("button", { type: "button", class: "person", onclick: () => choose({ who: person.number }) }, chip(person),
    make("span", {}, make("b", {}, said(person.name)), make("small", {}, said(act ? textOf(act[2]) : "not here yet"), place ? (isWalking(act, step) ? " · on the way to " : " · ") : "", place ? said(nameOf(place)) : ""))));
}

function peopleView() {
  const list = make("ul", { class: "people" });
  const search = make("input", { type: "search", placeholder: "Find somebody", "aria-label": "Find somebody" });
  let key = "";
  const view = {
    node: make("div", {}, search, list),
    update(step) {
      const wanted = search.value.trim().toLowerCase();
      const found = R.people.filter((person) => `${person.name} ${textOf((actAt(person, step) ?? [])[2])}`.toLowerCase().includes(wanted));
      if (key === (key = wanted + found.map((person) => `${person.number}.${lastAt(person.acts, step)}.${isWalking(actAt(person, step), step)}`).join())) return;
      list.replaceChildren(...found.map((person) => row(person, step)));
    },
  };
  search.addEventListener("input", () => view.update(Math.floor(state.t)));
  return view;
}

const whoIsIn = (place, step) => R.people.filter((person) => isIn(placeAt(spotAt(person, step)), place));

function placesView() {
  const list = make("ul", { class: "places" });
  let key = "";
  return {
    node: list,
    update(step) {
      const sectors = R.places.map((_, number) => number).filter((number) => R.places[number][0] === 0);
      const counts = sectors.map((place) => whoIsIn(place, step));
      if (key === (key = counts.map((each) => each.map((person) => person.number).join(".")).join("|"))) return;
      list.replaceChildren(...sectors.map((place, i) => make("li", {}, make("button", { type: "button", class: "place", onclick: () => choose({ place }) },
        make("b", {}, said(nameOf(place))), make("span", { class: "chips" }, counts[i].slice(0, 8).map(chip), counts[i].length > 8 ? `+${counts[i].length - 8}` : "")))));
    },
  };
}

/** A place: what it is in, who is there, what stands there and how it is. */
function placeView(place) {
  const here = make("ul", { class: "people" }), things = make("ul", { class: "things" });
  let key = "";
  const inside = R.children[place].map((child) => make("li", {}, link("name", { place: child }, () => choose({ place: child }), said(nameOf(child)))));
  const isThing = around(place).length >= 3;
  const node = make("div", {}, titled(said(nameOf(place)), around(place).length > 1 ? make("p", { class: "soft" }, "in ", placeLink(R.places[place][0])) : null),
    make("h3", {}, isThing ? "At it now" : "Here now"), here, make("h3", {}, "Condition"), things,
    inside.length ? [make("h3", {}, around(place).length === 1 ? "Rooms" : "In it"), make("ul", { class: "inside" }, inside)] : null);
  const thingsOf = (outer) => (around(outer).length >= 3 ? [outer] : R.children[outer].flatMap(thingsOf));
  return {
    node,
    update(step) {
      const present = isThing
        ? R.people.filter((person) => { const act = actAt(person, step); return act && act[3] === place && !isWalking(act, step); })
        : whoIsIn(place, step);
      const odd = thingsOf(place).map((thing) => [thing, conditionOf(thing, step)]).filter(([, condition]) => condition);
      if (key === (key = JSON.stringify([present.map((person) => [person.number, lastAt(person.acts, step)]), odd]))) return;
      here.replaceChildren(...(present.length ? present.map((person) => row(person, step)) : [make("li", { class: "nothing" }, "Nobody.")]));
      things.replaceChildren(...(odd.length ? odd.map(([thing, condition]) => make("li", {}, make("b", {}, said(nameOf(thing))), ": ", said(condition)))
        : [make("li", { class: "nothing" }, "All is as it should be.")]));
    },
  };
}

const titled = (name, under) => make("div", { class: "title" },
  make("button", { type: "button", class: "back", "aria-label": "Back to the town", title: "Back (Esc)", onclick: () => choose({}) }, "←"),
  make("div", {}, make("h2", {}, name), under));
