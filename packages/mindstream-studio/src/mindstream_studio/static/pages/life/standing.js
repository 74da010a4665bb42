/** The state of a life: goal, activity and cost; pause, resume, stop, run it, or send it a message. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, askAndWait } from "../../api.js";
import { counted, dollars, whole } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {import("./shapes.js").Life} Life */

/** Return the activity in words. @param {Life} life @param {boolean} editable whether the page has the button that runs the life */
export function standingOf({ lived, halted, turn, in_turn, tasks }, editable) {
  if (halted) return `Halted: ${halted}.`;
  if (lived) return in_turn ? `At work, in turn ${turn}.` : `Running, after turn ${turn}; waiting for the next event.`;
  /** @param {string} which */
  const some = (which) => tasks.some(({ standing }) => standing === which);
  if (some("open")) return `Not running, with tasks left${editable ? ": start it below" : ""}.`;
  return some("waiting") ? "Not running: each remaining task is waiting for a time or for a person." : "Nothing is left to do.";
}

/** @param {{life: Life, editable: boolean}} props */
export function Standing({ life, editable }) {
  const { spent } = life;
  return html`
    <section class="stack" aria-label="State of the life">
      <p class="goal words">${life.goal}</p>
      <p role="status">${standingOf(life, editable)} <span class="soft small number">${counted(life.turn, "turn")}, ${counted(spent.calls, "model call")}, ${whole(spent.tokens)} tokens${spent.usd > 0 && `, ${dollars(spent.usd)}`}</span></p>
      ${editable && html`<${Acts} life=${life} /><${Say} />`}
    </section>`;
}

/** @param {"pause" | "resume" | "stop"} order */
const give = (order) => ask({ path: "/users/{user}/life/pause", body: { order } }).then(askAllAgain);

/** @param {{life: Life}} props */
function Acts({ life }) {
  const [told, tell] = useState("");
  const [turns, setTurns] = useState(5);
  const live = async () => {
    tell("It begins …");
    try {
      const done = /** @type {{ended: string}} */ (await askAndWait({ path: "/users/{user}/life/live", body: { turns } }, tell));
      tell(ENDS[done.ended] ?? done.ended);
    } catch (error) {
      tell(/** @type {Error} */ (error).message);
    }
    askAllAgain();
  };
  const stop = () => askChange({
    title: "Stop this life?", verb: "Stop it", grave: true,
    preview: async () => html`<p>The mind stops before its next step. Its memories, task list (ledger) and diary stay; you can resume it.</p>`,
    act: () => give("stop"),
  });
  return html`
    <div class="row">
      ${life.halted
        ? html`<button class="main" onClick=${() => give("resume")}>Resume</button>`
        : html`
          ${!life.lived && html`
            <button class="main" onClick=${live}>Let it live</button>
            <label class="row"><span class="small soft">at most</span>
              <input class="short" type="number" min="1" max="1000" value=${turns} onInput=${(/** @type {any} */ event) => setTurns(Number(event.target.value) || 1)} />
              <span class="small soft">turns</span></label>`}
          <button onClick=${() => give("pause")}>Pause</button>
          <button class="grave" onClick=${stop}>Stop</button>`}
      <span class="soft small" role="status">${told}</span>
    </div>`;
}

/** @type {Record<string, string>} */
const ENDS = { done: "Nothing is left to do.", turns: "The requested number of turns has run.", time: "The time limit is reached.", halted: "The life is halted.", waiting: "The life waits for a time or an event." };

function Say() {
  const [text, type] = useState("");
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const say = (event) => {
    event.preventDefault();
    ask({ path: "/users/{user}/life/say", body: { text } }).then(() => { type(""); tell(null); askAllAgain(); }, tell);
  };
  return html`
    <form class="row" onSubmit=${say}>
      <input class="grow" aria-label="Say something to the mind" placeholder="Say something to the mind" value=${text} maxlength="100000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button disabled=${!text.trim()}>Say</button>
    </form>
    ${problem && html`<${ReadFailure} problem=${problem} />`}`;
}
