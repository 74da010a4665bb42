/** The page Plan: solved tasks and their costs; a task with its runs by different strategies, side by side. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { base, params } from "../state.js";
import { Head } from "../parts/shell.js";
import { ReadFailure } from "../parts/failure.js";
import { AskForm } from "./plan/ask.js";
import { MOVING } from "./plan/shapes.js";
import { TaskList } from "./plan/task_list.js";
import { TaskView } from "./plan/task_view.js";
import { Waiting, useOperations } from "./plan/waiting.js";

/** @typedef {import("./plan/shapes.js").Run} Run */

export function Page() {
  const { data, problem, again } = useQuery({ path: "/users/{user}/plans" }, { on: [...MOVING, "operation"] });
  const runs = /** @type {{runs: Run[]} | undefined} */ (data)?.runs;
  const operations = useOperations();
  const shown = (params.value.runs ?? "").split(",").filter(Boolean);
  return html`
    <div class="page plan-page">
      <${Head} title="Plan">How a task is solved with tools: the plan, what each step found, and what it cost.<//>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${!shown.length && !base.value && html`<${AskForm} />`}
      <${Waiting} operations=${shown.length ? operations.filter(({ run }) => shown.includes(run)) : operations} />
      ${runs && (shown.length ? html`<${TaskView} shown=${shown} runs=${runs} operations=${operations} />` : html`<${TaskList} runs=${runs} />`)}
    </div>`;
}
