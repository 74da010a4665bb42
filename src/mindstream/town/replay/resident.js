// A resident: what it does and why, its plan, what it saw, remembers and said, who it is.

const MEMORIES = { "": "All", observation: "Seen", chat: "Said", thought: "Thoughts", note: "Notes" };
const REASONS = { plan: "as planned", talk: "they talk", wait: "it waits", react: "because of what it saw", "": "" };

function residentView(number) {
  const person = R.people[number];
  const tabs = { now: ["Now", nowView], mind: ["Memory", mindView], talks: ["Talks", talksView], about: ["About", aboutView] };
  const follow = make("button", { type: "button", id: "follow", "aria-pressed": String(state.follow), onclick: () => setFollow(!state.follow) }, "Follow");
  const own = [false, true].map((value) => make("button", { type: "button", "aria-pressed": String(state.own === value), onclick: () => setOwn(value) },
    value ? "Experienced" : "Happened"));
  const title = titled(said(person.name), make("p", { class: "soft" }, person.age ? `${person.age} · ` : "", said(person.innate)));
  title.prepend(make("span", { class: "face big", hue: person.hue, "aria-hidden": "true" }, said(person.initials)));
  title.append(title.querySelector(".back"));
  const bar = make("div", { class: "row" }, follow, make("div", { class: "switch", role: "group", "aria-label": "The town as it happened, or as this resident experienced it" }, own));
  const body = tabbed(tabs, state.tab, (name) => { state.tab = name; }, person);
  return { node: make("div", {}, title, bar, body.node), update: body.update };
}

/** Views of which one is shown; `tabs` is {name: [label, build]}. */
function tabbed(tabs, first, remember, ...handed) {
  const body = make("div", { class: "body", role: "tabpanel" });
  const buttons = new Map();
  let view = null;
  const open = (name) => {
    remember(name);
    buttons.forEach((button, each) => { button.setAttribute("aria-selected", each === name); button.tabIndex = each === name ? 0 : -1; });
    body.setAttribute("aria-label", tabs[name][0]);
    view = tabs[name][1](...handed);
    body.replaceChildren(view.node);
    view.update(Math.floor(state.t));
  };
  const names = Object.keys(tabs);
  const bar = make("div", { class: "tabs", role: "tablist" }, names.map((name) => {
    const button = make("button", { type: "button", role: "tab", onclick: () => open(name) }, tabs[name][0]);
    buttons.set(name, button);
    return button;
  }));
  bar.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.stopPropagation();
    const next = names[(names.findIndex((name) => buttons.get(name) === document.activeElement) + move + names.length) % names.length];
    open(next);
    buttons.get(next).focus();
  });
  open(tabs[first] ? first : names[0]);
  return { node: make("div", { class: "tabbed" }, bar, body), update: (step) => view.update(step) };
}

function decisionOf(person, step) {
  const decision = entryAt(person.decisions, step);
  if (!decision) return null;
  const [at, about, , p, yes, recalled] = decision;
  const memories = recalled.map(([number, score]) => make("li", {}, said(textOf(person.records[number][2])), make("small", {}, ` ${score.toFixed(2)}`)));
  return make("details", { class: "decision" },
    make("summary", {}, `Last decision, ${timeOf(at)}: `, said(textOf(about)), ` — ${yes ? "yes" : "no"} (a yes was ${Math.round(p * 100)} % likely)`),
    memories.length ? [make("p", { class: "soft" }, "What came to mind, and how strongly:"), make("ol", { class: "list recalled" }, memories)]
      : make("p", { class: "soft" }, "Nothing came to mind."));
}

function nowView(person) {
  const doing = make("div", { class: "doing" }), plan = make("ol", { class: "plan", tabindex: 0, "aria-label": "Today’s plan" }), seen = make("ol", { class: "list" }), mind = make("div");
  let key = "";
  return {
    node: make("div", {}, doing, mind, make("h3", {}, "Today’s plan"), plan, make("h3", {}, "Noticed lately"), seen),
    update(step) {
      const act = actAt(person, step), minute = minuteOf(step), here = placeAt(spotAt(person, step));
      const upTo = lastAt(person.seen, step);
      if (key === (key = [lastAt(person.acts, step), isWalking(act, step), lastAt(person.plans, step), lastAt(person.decisions, step), upTo, here,
        planAt(person, step).findIndex((block) => block.start <= minute && minute < block.end)].join())) return;
      doing.replaceChildren(...doingNow(person, act, step, here));
      const decision = decisionOf(person, step);
      mind.replaceChildren(...(decision ? [decision] : []));
      plan.replaceChildren(...planned(person, step, minute));
      requestAnimationFrame(() => { plan.scrollTop = (plan.querySelector(".present")?.offsetTop ?? 0) - 80; });
      const noticed = [];
      for (let i = upTo; i >= 0 && noticed.length < 10; i--) noticed.push(noticedEntry(person.seen[i]));
      seen.replaceChildren(...(noticed.length ? noticed : [make("li", { class: "nothing" }, "Nothing yet.")]));
    },
  };
}

function doingNow(person, act, step, here) {
  if (!act) return [make("p", { class: "what" }, "Not here yet.")];
  const target = act[3], reason = textOf(act[5]) || REASONS[WHYS[act[4]]];
  const where = isWalking(act, step) && target > 0 ? ["on the way to ", placeLink(target)] : target > 0 ? ["at ", placeLink(target)] : here > 0 ? ["in ", placeLink(here)] : ["outdoors"];
  return [
    make("p", { class: "what" }, glyphOf(act, step), " ", said(textOf(act[2]))),
    make("p", { class: "soft" }, where, `, ${timeOf(act[0])}–${timeOf(act[0] + act[1])}`),
    reason ? make("p", { class: "why" }, make("b", {}, "Why: "), said(reason)) : null,
  ].filter(Boolean);
}

/** The day's plan; what follows upon itself is one line. */
function planned(person, step, minute) {
  const blocks = [];
  for (const block of planAt(person, step)) {
    const before = blocks[blocks.length - 1];
    if (before && before.what === block.what && before.place === block.place) before.end = block.end;
    else blocks.push(block);
  }
  if (!blocks.length) return [make("li", { class: "nothing" }, "No plan yet.")];
  return blocks.map((block) => {
    const now = block.start <= minute && minute < block.end;
    return make("li", { class: now ? "present" : block.end <= minute ? "past" : "", "aria-current": now ? "time" : null },
      make("span", { class: "when" }, clockOf(block.start)), make("span", {}, said(block.what), block.place > 0 ? make("small", {}, " ", said(nameOf(arenaOf(block.place)))) : null));
  });
}

function noticedEntry([step, who, place, what]) {
  const subject = who >= 0 ? personLink(who) : place > 0 ? placeLink(place) : "something";
  return make("li", {}, timeLink(step), " ", subject, who >= 0 ? " was " : ": ", said(textOf(what)));
}

function mindView(person) {
  let kind = "", order = "newest", key = "";
  const search = make("input", { type: "search", placeholder: "Search what it remembers", "aria-label": "Search memories" });
  const sort = make("select", { "aria-label": "Order" }, make("option", { value: "newest" }, "Newest"), make("option", { value: "weight" }, "Most important"));
  const count = make("p", { class: "soft", role: "status" });
  const list = growing((each) => make("li", { class: `memory ${each[1]}` }, make("p", {}, each[4] >= 0 ? make("b", {}, said(R.people[each[4]].name), ": ") : null, said(textOf(each[2]))),
    make("small", {}, timeLink(each[0]), ` ${(MEMORIES[each[1]] ?? each[1]).toLowerCase()}${each[3] ? ` · importance ${each[3]}` : ""}`)), "Nothing of the kind.");
  const filters = make("div", { class: "filters", role: "group", "aria-label": "Kind of memory" }, Object.entries(MEMORIES).map(([name, label]) => make("button",
    { type: "button", "aria-pressed": String(name === kind), onclick: (event) => {
      kind = name;
      for (const button of filters.children) button.setAttribute("aria-pressed", button === event.currentTarget);
      change();
    } }, label)));
  const view = {
    node: make("div", {}, make("div", { class: "row" }, search, sort), filters, count, list.node),
    update(step) {
      const upTo = lastAt(person.records, step) + 1, wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      if (key === (key = JSON.stringify([upTo, wanted, kind, order]))) return;
      const found = person.records.slice(0, upTo).reverse().filter((each) => (!kind || each[1] === kind)
        && wanted.every((word) => textOf(each[2]).toLowerCase().includes(word)));
      if (order === "weight") found.sort((a, b) => b[3] - a[3]);
      count.textContent = `${found.length} of ${upTo} memories`;
      list.show(found);
    },
  };
  const change = () => { list.reset(); view.update(Math.floor(state.t)); };
  search.addEventListener("input", change);
  sort.addEventListener("change", () => { order = sort.value; change(); });
  return view;
}

function talksView(person) {
  let key = "";
  const list = growing(([step, other, , lines]) => make("li", {}, make("p", { class: "head" }, "with ", personLink(other), " ", timeLink(step)), linesOf(lines)), "No talks yet.");
  return {
    node: list.node,
    update(step) {
      const upTo = lastAt(person.talks, step) + 1;
      if (key === (key = String(upTo))) return;
      list.show(person.talks.slice(0, upTo).reverse());
    },
  };
}

function aboutView(person) {
  const node = make("div", { class: "about" });
  let key = null;
  return {
    node,
    update(step) {
      const day = entryAt(person.days, step);
      if (key === (key = String(lastAt(person.days, step)))) return;
      const told = [["Who", person.learned], ["These days", day ? textOf(day[1]) : person.currently], ["Habits", person.lifestyle], ["Routine", person.routine]];
      node.replaceChildren(
        ...told.filter(([, text]) => text).flatMap(([name, text]) => [make("h3", {}, name), make("p", {}, said(text))]),
        ...(day && day[2].length ? [make("h3", {}, "The day in broad strokes"), make("ul", {}, day[2].map((each) => make("li", {}, said(textOf(each)))))] : []),
        ...(person.relations.length ? [make("h3", {}, "Knows"), make("ul", {}, person.relations.map(([who, name, what]) => make("li", {}, who >= 0 ? personLink(who) : said(name), ", ", said(what))))] : []),
        ...(person.lives > 0 ? [make("h3", {}, "Lives at"), make("p", {}, placeLink(person.lives))] : []),
        make("p", { class: "soft" }, `Knows ${knownPlaces(person, step).size - 1} places by now.`),
      );
    },
  };
}
