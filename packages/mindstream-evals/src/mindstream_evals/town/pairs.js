const { town, pairs } = JSON.parse(document.getElementById("pairs").textContent);
const $ = (id) => document.getElementById(id);
const name = `mindstream pairs ${pairs.map((pair) => pair.id).join("")}`.slice(0, 400);
const verdicts = read();
let at = Math.max(0, pairs.findIndex((pair) => !verdicts[pair.id]));

// Kept in the browser, so that a page that is closed by chance loses nothing; where that is forbidden, in the page alone.
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? "{}");
    return Object.fromEntries(pairs.filter(({ id }) => ["1", "2", "="].includes(kept[id])).map(({ id }) => [id, kept[id]]));
  } catch {
    return {};
  }
}

function keep() {
  try {
    localStorage.setItem(name, JSON.stringify(verdicts));
  } catch { /* the page itself still knows */ }
}

function show() {
  const done = pairs.filter((pair) => verdicts[pair.id]).length;
  const over = at >= pairs.length;
  $("count").textContent = over ? `${done} of ${pairs.length} judged` : `Pair ${at + 1} of ${pairs.length}, ${done} judged`;
  $("bar").max = Math.max(1, pairs.length);
  $("bar").value = done;
  $("save").disabled = $("save-all").disabled = !done;
  for (const id of ["ask", "answers", "hint", "choices", "evidence"]) $(id).hidden = over;
  $("over").hidden = !over;
  $("again").disabled = !pairs.length;
  if (over) {
    $("open").textContent = done < pairs.length ? `Pairs left open: ${pairs.length - done}.` : "All are judged. Save the file, and give it to whoever asked you.";
    return;
  }
  const pair = pairs[at];
  $("who").textContent = `${pair.resident}, ${pair.when}`;
  $("text").textContent = pair.text;
  $("one").lastChild.textContent = pair.answers[0];
  $("two").lastChild.textContent = pair.answers[1];
  for (const [id, verdict] of [["one", "1"], ["two", "2"], ["equal", "="]]) {
    $(id).classList.toggle("chosen", verdicts[pair.id] === verdict);
    $(id).ariaPressed = String(verdicts[pair.id] === verdict);
  }
  $("facts").replaceChildren(...pair.facts.map((fact) => Object.assign(document.createElement("li"), { textContent: fact })));
  $("back").disabled = at === 0;
}

function go(step) {
  at = Math.min(pairs.length, Math.max(0, at + step));
  show();
  scrollTo(0, 0);
}

function judge(verdict) {
  if (at >= pairs.length) return;
  verdicts[pairs[at].id] = verdict;
  keep();
  go(1);
}

const cell = (text) => `"${text.replaceAll('"', '""')}"`;

function csv() {
  const rows = pairs.filter((pair) => verdicts[pair.id])
    .map((pair) => [pair.id, pair.resident, pair.question, verdicts[pair.id]].map(cell).join(","));
  return ["pair,resident,question,verdict", ...rows, ""].join("\n");
}

function save() {
  if (!Object.keys(verdicts).length) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "judged.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function theme() {
  const root = document.documentElement;
  const dark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !dark);
  root.classList.toggle("light", dark);
}

const KEYS = { 1: () => judge("1"), 2: () => judge("2"), "=": () => judge("="), ArrowLeft: () => go(-1), ArrowRight: () => go(1), s: save, d: theme };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
const CLICKS = { one: () => judge("1"), two: () => judge("2"), equal: () => judge("="), back: () => go(-1), skip: () => go(1), save, "save-all": save, again: () => go(-pairs.length), theme };
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener("click", act);
if (matchMedia("(max-width: 42rem)").matches) $("evidence").open = false;
show();
document.documentElement.dataset.ready = "";
