/** The forms that create a pool and offer an answer to it. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, askAndWait } from "../../api.js";
import { change, keepLink } from "../../state.js";
import { whole } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { pathOf } from "./shapes.js";

export function Create() {
  const [name, setName] = useState("");
  const [domain, setDomain] = useState("");
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const create = async (event) => {
    event.preventDefault();
    const isHere = keepLink();
    try {
      await ask({ path: pathOf(name.trim()), body: { domain } });
      if (isHere()) change({ pool: name.trim() });
      askAllAgain();
    } catch (error) {
      tell(/** @type {Error} */ (error));
    }
  };
  return html`
    <form class="stack narrow" onSubmit=${create}>
      <h2>Begin a pool</h2>
      <label><span>Its name: letters, digits, spaces and . _ : | @ + / ' -, beginning with a letter or digit</span><input value=${name} maxlength="60" placeholder="tongues" onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <label><span>What its answers are about</span><input value=${domain} maxlength="300" placeholder="Short answers to language learners" onInput=${(/** @type {any} */ event) => setDomain(event.target.value)} /></label>
      <div><button class="main" disabled=${!name.trim()}>Begin it</button></div>
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </form>`;
}

/** @param {{pool: string}} props */
export function OfferPair({ pool }) {
  const [query, setQuery] = useState("");
  const [answer, setAnswer] = useState("");
  const [state, tell] = useState(/** @type {{busy?: boolean, problem?: Error, judged?: any}} */ ({}));
  /** @param {Event} event */
  const offer = async (event) => {
    event.preventDefault();
    tell({ busy: true });
    try {
      tell({ judged: await askAndWait({ path: `${pathOf(pool)}/offer`, body: { query, answer } }) });
      askAllAgain();
    } catch (error) {
      tell({ problem: /** @type {Error} */ (error) });
    }
  };
  const { judged } = state;
  return html`
    <details>
      <summary>Offer an answer</summary>
      <form class="stack narrow" onSubmit=${offer}>
        <label><span>The question</span><textarea rows="2" maxlength="100000" value=${query} onInput=${(/** @type {any} */ event) => setQuery(event.target.value)} /></label>
        <label><span>The answer</span><textarea rows="4" maxlength="100000" value=${answer} onInput=${(/** @type {any} */ event) => setAnswer(event.target.value)} /></label>
        <div><button class="main" disabled=${!query.trim() || !answer.trim() || state.busy}>Offer it, to be judged</button></div>
        ${state.busy && html`<p class="soft" role="status">Grading …</p>`}
        ${judged && html`<p role="status">${judged.verdict === "admitted" ? "It was let in" : "It was refused"}, with ${whole(judged.score)} points of 100: <span class="words">${judged.reasons.join("; ")}</span></p>`}
        ${state.problem && html`<${ReadFailure} problem=${state.problem} />`}
      </form>
    </details>`;
}
