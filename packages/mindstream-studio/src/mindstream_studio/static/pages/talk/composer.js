/** The input of a conversation: send a message, stop an answer, or return from an earlier moment to the newest. */
import { html, useRef, useState } from "../../html.js";
import { ask, newKey } from "../../api.js";
import { held } from "../../network.js";
import { base, change, keepLink, seq } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { isThoughtAbout, setStopped, talkerState } from "./exchanges.js";

/** @typedef {import("./shapes.js").Session} Session @typedef {import("./shapes.js").Exchange} Exchange */

/** @param {{session: Session, pack: string, exchanges: Exchange[]}} props */
export function Composer({ session, pack, exchanges }) {
  const [text, type] = useState("");
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const tried = useRef({ said: "", key: "" }); // the text sent last, with its idempotency key: if it is sent again after an error, it is stored only once
  if (base.value) return html`<p class="small soft">This is a recorded talk. ${!held && html`<a href="#/talk">Begin a talk of your own</a>`}</p>`;
  if (seq.value !== "newest") {
    return html`<div class="row"><p class="small soft">This is an earlier moment of the talk.</p><button onClick=${() => change({ seq: "" })}>Return to the newest moment</button></div>`;
  }
  const say = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    tell(null);
    const isHere = keepLink();
    const body = { text, session: session.session, pack };
    const said = JSON.stringify(body);
    if (tried.current.said !== said) tried.current = { said, key: newKey() };
    try {
      await ask({ path: "/users/{user}/send", body, key: tried.current.key });
      tried.current = { said: "", key: "" };
      type("");
      if (isHere()) change({ talk: session.session }, { quietly: true });
    } catch (error) {
      tell(/** @type {Error} */ (error));
    }
    setBusy(false);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    say();
  };
  return html`
    <form class="composer stack" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); say(); }}>
      <textarea rows="2" aria-label="What you say" placeholder="Say something. Enter sends it." value=${text} maxlength="100000"
        onInput=${(/** @type {any} */ event) => type(event.target.value)} onKeyDown=${press} />
      <div class="row">
        <button class="main" disabled=${!text.trim() || busy}>Say it</button>
        ${exchanges.length > 0 && html`<${Stop} session=${session} exchanges=${exchanges} tell=${tell} />`}
      </div>
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </form>`;
}

/** @param {{session: Session, exchanges: Exchange[], tell: (problem: Error | null) => void}} props */
function Stop({ session, exchanges, tell }) {
  const last = exchanges.at(-1);
  const speaks = last && ["speaks", "waits"].includes(talkerState(last));
  const thinks = last && isThoughtAbout(last, exchanges);
  if (!speaks && !thinks) return null;
  const stop = () => ask({ path: "/users/{user}/cancel", body: { session: session.session } }).then(() => {
    tell(null);
    if (speaks) setStopped(last.heard.seq, true);
  }, tell);
  return html`<button type="button" onClick=${stop}>${speaks ? "Stop the answer" : "Stop thinking"}</button>`;
}
